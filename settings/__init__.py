"""The project around the app; importing it sets the Celery app, so that shared tasks find it."""

from settings.celery import app as celery_app

__all__ = ["celery_app"]
