"""Development and demo: SQLite and a broker within the process, or what the environment names.

DATABASE_URL and REDIS_URL bring PostgreSQL and Redis. The broker within the process reaches nobody
else: worker and web server share one process, or both get a REDIS_URL.
"""

import environ

from settings.base import *
from settings.databases import from_url, sqlite

env = environ.Env()

INSTALLED_APPS += ["examples.orders", "examples.flights"]

DEBUG = True
# Known to everybody, and good for nothing but a machine of one's own.
SECRET_KEY = "local-development-only-" + "0" * 40
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]

DATABASE_URL = env.str("DATABASE_URL", default="")
DATABASES = {
    "default": from_url(DATABASE_URL, pool=env.bool("DATABASE_POOL", default=False))
    if DATABASE_URL
    else sqlite(BASE_DIR / "db.sqlite3"),
}

CELERY_BROKER_URL = env.str("REDIS_URL", default="memory://")
if CELERY_BROKER_URL.startswith("memory:"):
    # The options of base.py are those of Redis.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"polling_interval": 0.05}
