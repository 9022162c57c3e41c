from tests.support.database_probe import probe
from tests.support.people import person

__all__ = ["person", "probe"]
