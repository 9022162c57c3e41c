"""The Django app: ORM store, Celery dispatch, ticker, admin, API and command line."""
