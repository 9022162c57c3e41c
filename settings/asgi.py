"""The ASGI entry point: `settings.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.local")
# Each request has a thread of its own here: a connection that it kept would serve nobody.
os.environ.setdefault("DATABASE_POOL", "true")

application = get_asgi_application()
