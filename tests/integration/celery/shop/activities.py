"""Activities that are slow, fail, or write rows."""

from django.db import connection

from tests.integration.celery.shop import ledger
from wfapp.dispatch.transactional import transactional_activity
from wfcore import activity
from wfcore.exceptions import ApplicationError


@activity.defn
def greet(name: str) -> str:
    return f"Hello, {name}!"


@activity.defn
async def greet_async(name: str) -> str:
    return f"Hello, {name}!"


@activity.defn
async def add_to_own_workflow(value: int) -> str:
    """Signals the workflow that called it, by the worker's client; gives its namespace."""
    info = activity.info()
    client = activity.client()
    await client.get_workflow_handle(info.workflow_id).signal("add", value)
    return str(client.namespace)


@activity.defn
def work(what: str, seconds: float) -> str:
    """Takes a while and writes itself down."""
    with ledger.entry(what, activity.info().attempt):
        ledger.sleep(seconds)
    return f"{what} done"


@activity.defn
def flaky(what: str, failures: int) -> int:
    """Fails in its first attempts."""
    attempt = activity.info().attempt
    with ledger.entry(what, attempt):
        if attempt <= failures:
            raise ApplicationError(f"attempt {attempt} fails", type="Flaky")
    return attempt


@activity.defn
@transactional_activity
def book(what: str, seconds: float) -> str:
    """Its row and its completion commit together."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger (what, attempt, pid, ended) "
            "VALUES (%s, %s, pg_backend_pid(), clock_timestamp())",
            [what, activity.info().attempt],
        )
    ledger.begin_outside(f"{what} begun")
    ledger.sleep(seconds)
    return f"{what} booked"


@activity.defn
def connections_in_transaction() -> int:
    """How many sessions of this process are in a transaction while activity code runs."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        own = cursor.fetchone()[0]
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE pid <> %s AND state LIKE "
            "'idle in transaction%%' AND datname = current_database()",
            [own],
        )
        count: int = cursor.fetchone()[0]
        return count


@activity.defn
def find_order(what: str) -> int:
    """How many rows the one who started the workflow wrote in its transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM ledger WHERE what = %s AND attempt = 0", [what])
        count: int = cursor.fetchone()[0]
        return count


@activity.defn
def broken_statement() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT no_such_column")


@activity.defn
def wait_outside(what: str) -> str:
    """Begins, and is completed by somebody else."""
    ledger.begin(what, activity.info().attempt)
    activity.raise_complete_async()


@activity.defn
def one_more(done: int) -> int:
    return done + 1


@activity.defn
def pay(what: str, first: float) -> list[str]:
    """Its first attempt takes a while, and goes on after its time is over."""
    info = activity.info()
    with ledger.entry(what, info.attempt):
        ledger.begin(f"{what} key {info.workflow_run_id}/{info.activity_id}", info.attempt)
        if info.attempt == 1:
            ledger.sleep(first)
    return [f"attempt {info.attempt}"]
