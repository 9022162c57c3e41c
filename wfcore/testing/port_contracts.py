"""What every set of ports must keep: a suite that each host runs over its own store and dispatcher.

A host derives a class from each, gives it the fixture `store` or `dispatcher`, and overrides
`callers_transaction` and what else its database needs. Tests share a database: each makes workflow
ids of its own, and asks only about those. Tests look at effects, never at rows.
"""

from wfcore.testing.contracts.activities import ActivityContract
from wfcore.testing.contracts.callers_transactions import CallersTransactionContract
from wfcore.testing.contracts.dispatcher import DispatcherPorts
from wfcore.testing.contracts.finding import FindingContract
from wfcore.testing.contracts.inbox import InboxContract
from wfcore.testing.contracts.reading import ReadingContract
from wfcore.testing.contracts.transactions import TransactionContract
from wfcore.testing.contracts.updates import UpdateContract

__all__ = ["DispatcherPorts", "StorePorts"]


class StorePorts(
    TransactionContract,
    CallersTransactionContract,
    InboxContract,
    ActivityContract,
    UpdateContract,
    FindingContract,
    ReadingContract,
):
    """All that a store must keep."""
