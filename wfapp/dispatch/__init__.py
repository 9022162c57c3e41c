"""Work is announced, claimed and run through Celery; the database stays the only truth."""
