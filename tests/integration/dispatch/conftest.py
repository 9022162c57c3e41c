from tests.support.database_probe import probe

__all__ = ["probe"]
