"""`make demo`: both examples, live, with a worker killed on the way.

    python -m tools.demo                    PostgreSQL, Redis, Celery workers, beat, web server
    python -m tools.demo --stack embedded   one process: SQLite and a broker in its memory

All that it starts ends with it. KEEP=600 leaves the pages up for ten minutes.
"""
