"""Production: all that differs between installations comes from the environment.

Required: SECRET_KEY, ALLOWED_HOSTS, DATABASE_URL, REDIS_URL. A missing one ends the process.
"""

import environ

from settings.base import *
from settings.databases import from_url

env = environ.Env()

DEBUG = False
SECRET_KEY = env.str("SECRET_KEY")
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

DATABASES = {
    "default": from_url(env.str("DATABASE_URL"), pool=env.bool("DATABASE_POOL", default=False)),
}
CELERY_BROKER_URL = env.str("REDIS_URL")

STATIC_ROOT = env.str("STATIC_ROOT", default=str(BASE_DIR / "staticfiles"))

# TLS ends at the proxy, which must set or strip this header on every request.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=True)
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=31_536_000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", default=True)
SECURE_HSTS_PRELOAD = env.bool("SECURE_HSTS_PRELOAD", default=True)
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True

LOGGING["root"]["level"] = env.str("LOG_LEVEL", default="INFO")
