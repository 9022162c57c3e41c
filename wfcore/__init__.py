"""Durable workflows: the engine and the authoring API, without Django and without Celery."""
