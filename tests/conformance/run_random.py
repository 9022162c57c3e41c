"""Run random workflow programs on our engine; a model, a real server and Temporal's SDK judge it.

    python -m tests.conformance.run_random --ports memory --out DIR [--seeds 1-60] [--size 12]

The model says how each program must end; `diff.py` holds the histories against those that the real
server wrote; Temporal's Replayer must accept them. All goes to DIR/random/<ports>-<seeds>-<size>:
the histories, and verdict.json. What the model disagrees with is run again, at most twice: a busy
machine loses tasks and lets timeouts strike. Exit status 1 when one of the judges disagrees.
"""

import argparse
import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance.run_scenarios import say

PROGRAMS = Path(__file__).resolve().parent / "random_programs"
REPLAY_CHECK = PROGRAMS.parents[1] / "support" / "replay_check.py"
#: Programs of these endings need what does not exist yet.
LATER = {"reset": "reset of workflows"}
#: Programs by size and seed whose course they don't determine, so that they are left out.
UNDETERMINED = {
    (12, 423): "a child is left behind and terminated while its first workflow task is on its way; "
    "the driver waits for that task, on the real server too sometimes in vain",
}
#: Programs by size and seed about which the model errs; they must end as on the real server.
MODEL_ERRS = {
    (
        40,
        590,
    ): "two branches set the same memo field; the model takes one branch after the other",
}
#: Programs that are driven at once, and how often those that went wrong are run again.
PARALLEL = 10
AGAIN = 2


class Tools(NamedTuple):
    """The programs' own modules."""

    run: Any
    driver: Any
    diff: Any
    interpreter: Any
    sdk: Any


def load(ports: str) -> Tools:
    """The programs' tools, with our module in the SDK's place."""
    os.environ["SCENARIO_PORTS"] = ports
    os.environ["SCENARIO_SDK"] = "tests.conformance.scenario_sdk"
    sys.path.insert(0, str(PROGRAMS))
    import diff
    import driver
    import interpreter
    import run
    import sdk

    return Tools(run=run, driver=driver, diff=diff, interpreter=interpreter, sdk=sdk)


async def drive(
    programs: list[dict[str, Any]], tools: Tools, log_file: Path, *, parallel: int, again: int
) -> tuple[Any, list[str]]:
    """Run all programs; the runner that knows what came of each, and why some were repeated."""
    from tests.conformance import scenario_sdk

    servers = scenario_sdk.Servers()
    repeated: list[str] = []
    try:
        connection = await tools.sdk.connect(await servers.address("default"))
        runner = tools.run.Runner(connection, tools.driver.Told(log_file))
        worker = tools.sdk.make_worker(
            connection,
            tools.driver.QUEUE,
            workflows=[tools.interpreter.Program],
            activities=tools.interpreter.ACTIVITIES,
            max_heartbeat_throttle_interval=timedelta(milliseconds=100),
            max_concurrent_activities=400,
        )
        todo = programs
        async with worker:
            for attempt in range(again + 1):
                limit = asyncio.Semaphore(max(1, parallel >> attempt))
                runner.told.restart()
                await asyncio.gather(*(runner.one(program, limit) for program in todo))
                todo = [program for program in todo if complaints(runner, program)]
                if not todo:
                    break
                if attempt < again:
                    repeated += [f"{p['seed']}: {complaints(runner, p)[0][:300]}" for p in todo]
    finally:
        servers.stop()
    return runner, repeated


def complaints(runner: Any, program: dict[str, Any]) -> list[str]:
    """What is wrong with the end of a program; where the model errs, only that there is none."""
    seed = program["seed"]
    if (program["size"], seed) in MODEL_ERRS:
        return [runner.broken[seed]] if seed in runner.broken else []
    found: list[str] = runner.judge(program)
    return found


def keep(runner: Any, programs: list[dict[str, Any]], out: Path, tools: Tools) -> dict[str, int]:
    """Write the histories and their manifest; how many there are."""
    cases, outcomes = [], {}
    for program in programs:
        seed = program["seed"]
        found = runner.found.get(seed, {})
        outcomes[seed] = {key: value for key, value in found.items() if key != "histories"}
        for name, events in found.get("histories", {}).items():
            file = f"{seed:04}.{name}.json"
            (out / file).write_text(tools.run.dump(events))
            cases.append(
                {
                    "file": file,
                    "seed": seed,
                    "class": program["class"],
                    "events": len(events),
                    "workflow_id": tools.driver.attributes(events[0])["workflowId"],
                }
            )
    tools.run.write_manifest(out, cases, outcomes)
    return {"histories": len(cases), "events": sum(case["events"] for case in cases)}


def recording(numbers: list[int], size: int, into: Path) -> bool:
    """Unpack the real server's histories of these programs; False if they were not recorded."""
    for archive in sorted((PROGRAMS / "recorded").glob("*.tar.xz")):
        first, last, of_size = map(int, archive.name.removesuffix(".tar.xz").split("-"))
        if of_size == size and set(numbers) <= set(range(first, last + 1)):
            with tarfile.open(archive) as members:
                members.extractall(into, filter="data")
            return True
    return False


def replayed(histories: Path) -> list[str]:
    """What Temporal's own Replayer says against our histories."""
    done = subprocess.run(
        [sys.executable, REPLAY_CHECK, "--manifest", histories / "manifest.json", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SCENARIO_SDK": "sdk_temporal"},
    )
    return (done.stdout + done.stderr).splitlines() if done.returncode else []


def judge(args: argparse.Namespace, tools: Tools, numbers: list[int], out: Path) -> dict[str, Any]:
    """Run the programs and say what came of them."""
    if args.program:
        programs = [json.loads(args.program.read_text())]
    else:
        programs = [tools.run.programs.generate(seed, args.size) for seed in numbers]
    chosen = [
        program
        for program in programs
        if program["ending"] not in LATER and (args.size, program["seed"]) not in UNDETERMINED
    ]
    histories = out / "histories"
    histories.mkdir(parents=True, exist_ok=True)
    for old in histories.glob("*.json"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="programs-") as folder:
        log_file = Path(folder) / "told"
        log_file.touch()
        os.environ["PROGRAM_LOG"] = str(log_file)
        began = time.monotonic()
        runner, repeated = asyncio.run(
            drive(chosen, tools, log_file, parallel=args.parallel, again=args.again)
        )
        verdict: dict[str, Any] = {
            "ports": args.ports,
            "seeds": args.seeds,
            "size": args.size,
            "programs": len(chosen),
            "later": {
                reason: [p["seed"] for p in programs if p["ending"] == ending]
                for ending, reason in LATER.items()
            },
            "undetermined": [n for n in numbers if (args.size, n) in UNDETERMINED],
            "seconds": round(time.monotonic() - began),
            "repeated": repeated,
            "wrong": {p["seed"]: lines for p in chosen if (lines := complaints(runner, p))},
            **keep(runner, chosen, histories, tools),
        }
        verdict["refused"] = replayed(histories)
        expected = args.expected or Path(folder) / "expected"
        if args.expected or (numbers and recording(numbers, args.size, expected)):
            # There are no sticky queues here.
            found = tools.diff.compare_folders(
                expected, histories, {p["seed"] for p in chosen}, any_queue=True
            )
            verdict["differ"] = {name: lines for name, lines in found if lines}
    return verdict


def tell(verdict: dict[str, Any]) -> None:
    """The account in lines."""
    for kind in ("wrong", "differ"):
        for name, lines in verdict.get(kind, {}).items():
            say(f"{kind.upper():8} {name}")
            for line in lines[:8]:
                say(f"         {line[:500]}")
    for line in verdict["refused"][:40]:
        say(f"REFUSED  {line}")
    for line in verdict["repeated"]:
        say(f"again    {line}")
    say(
        f"{verdict['programs'] - len(verdict['wrong'])} of {verdict['programs']} programs as the "
        f"model says ({len(verdict['repeated'])} runs repeated, "
        f"{sum(map(len, verdict['later'].values()))} left for later, {verdict['seconds']} s)"
    )
    differ = len(verdict["differ"]) if "differ" in verdict else "an unknown number"
    say(f"of {verdict['histories']} histories {differ} differ from the server's")


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ports", choices=("memory", "celery"), default="memory")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="1-60", help="1-60 or 3,7,20-30")
    parser.add_argument("--size", type=int, default=12)
    parser.add_argument("--program", type=Path, help="a file instead of seeds, as shrink.py makes")
    parser.add_argument("--parallel", type=int, default=PARALLEL)
    parser.add_argument("--again", type=int, default=AGAIN)
    parser.add_argument("--expected", type=Path, help="another recording than those kept here")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # and end what was started
    if not args.verbose:
        logging.disable(logging.CRITICAL)  # failing activities are what the programs ask for
    tools = load(args.ports)
    numbers = [] if args.program else tools.run.parse_seeds(args.seeds)
    name = args.program.stem if args.program else f"{args.seeds}-{args.size}"
    out = args.out / "random" / f"{args.ports}-{name}"
    verdict = judge(args, tools, numbers, out)
    (out / "verdict.json").write_text(json.dumps(verdict, indent=1))
    tell(verdict)
    return 1 if verdict["wrong"] or verdict.get("differ") or verdict["refused"] else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Threads of activities that outlive their timeouts; nothing is left for them to do.
    os._exit(code)
