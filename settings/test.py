"""The test suite. tests/conftest.py points the database and the broker at private servers.

It does so when the first test asks for them, so that unit tests run without either. What stands
here is what a process started by a test gets from its environment.
"""

import environ

from settings.base import *
from settings.databases import from_url

env = environ.Env()

INSTALLED_APPS += ["examples.orders", "examples.flights"]

DEBUG = False
SECRET_KEY = "tests-only-" + "0" * 50
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Port 1 answers nobody: a test that reaches it has not asked for a database.
DATABASES = {
    "default": from_url(
        env.str("DATABASE_URL", default="postgres://nobody@127.0.0.1:1/workflows"),
        pool=env.bool("DATABASE_POOL", default=False),
        # A busy machine answers late.
        connect_seconds=env.int("TEST_CONNECT_SECONDS", default=20),
    ),
}

CELERY_BROKER_URL = env.str("REDIS_URL", default="memory://")
if CELERY_BROKER_URL.startswith("memory:"):
    CELERY_BROKER_TRANSPORT_OPTIONS = {"polling_interval": 0.01}
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 0.0
