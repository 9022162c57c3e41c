"""The ASGI entry point: `settings.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.local")

application = get_asgi_application()
