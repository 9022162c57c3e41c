"""The fault test: orders run to their right end whatever is killed meanwhile.

    python -m tests.e2e.faults --orders 500 --kills 30

Real worker processes and beat on a PostgreSQL and a Redis of their own. Processes that hold a claim
are killed with SIGKILL, Redis is emptied, PostgreSQL crashes. Then the ledger that the activities
wrote, the journal, the histories and the shop's tables must agree.
"""
