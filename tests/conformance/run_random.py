"""Run random workflow programs on our engine; a model, a real server and Temporal's SDK judge it.

    python -m tests.conformance.run_random --ports memory --out DIR [--seeds 1-60] [--size 12]

The model says how each program must end; `diff.py` holds the histories against those that the real
server wrote; Temporal's Replayer must accept them. What the first two disagree with is run again,
at most twice: a busy machine loses tasks and lets timeouts strike. Histories and verdict.json go to
DIR/random/<ports>-<seeds>-<size>. Exit status 1 when one of the judges disagrees.
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


class Judges:
    """The model and the real server's histories, asked about programs that have run.

    Args:
        runner: knows what came of the programs.
        expected: the folder of the server's histories; None if there are none.
        scratch: an empty folder.
    """

    def __init__(self, tools: Tools, runner: Any, expected: Path | None, scratch: Path) -> None:
        self._tools = tools
        self._runner = runner
        self._expected = expected
        self._scratch = scratch

    def wrong(self, program: dict[str, Any]) -> list[str]:
        """What the model says against its end; where the model errs, only that there is none."""
        seed = program["seed"]
        if (program["size"], seed) in MODEL_ERRS:
            return [self._runner.broken[seed]] if seed in self._runner.broken else []
        found: list[str] = self._runner.judge(program)
        return found

    def differ(self, program: dict[str, Any]) -> dict[str, list[str]]:
        """Its histories that are not as the server's, with what differs."""
        if self._expected is None:
            return {}
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            keep(self._runner, [program], Path(folder), self._tools)
            # There are no sticky queues here.
            found = self._tools.diff.compare_folders(
                self._expected, Path(folder), {program["seed"]}, any_queue=True
            )
            return {name: lines for name, lines in found if lines}

    def complaint(self, program: dict[str, Any]) -> str:
        """The first of all that is wrong; empty when nothing is."""
        for line in self.wrong(program):
            return line
        for name, lines in self.differ(program).items():
            return f"{name}: {lines[0]}"
        return ""


async def drive(
    programs: list[dict[str, Any]],
    tools: Tools,
    folder: Path,
    expected: Path | None,
    args: argparse.Namespace,
) -> tuple[Any, Judges, list[str]]:
    """Run all programs; what came of each, its judges, and why some were repeated."""
    from tests.conformance import scenario_sdk

    servers = scenario_sdk.Servers()
    repeated: list[str] = []
    log_file = folder / "told"
    log_file.touch()
    os.environ["PROGRAM_LOG"] = str(log_file)
    try:
        connection = await tools.sdk.connect(await servers.address("default"))
        runner = tools.run.Runner(connection, tools.driver.Told(log_file))
        judges = Judges(tools, runner, expected, folder)
        worker = tools.sdk.make_worker(
            connection,
            tools.driver.QUEUE,
            workflows=[tools.interpreter.Program],
            activities=tools.interpreter.ACTIVITIES,
            cached=not args.uncached,
            max_heartbeat_throttle_interval=timedelta(milliseconds=100),
            max_concurrent_activities=400,
        )
        todo = programs
        async with worker:
            for attempt in range(args.again + 1):
                limit = asyncio.Semaphore(max(1, args.parallel >> attempt))
                runner.told.restart()
                await asyncio.gather(*(runner.one(program, limit) for program in todo))
                complaints = [(p, line) for p in todo if (line := judges.complaint(p))]
                todo = [program for program, _ in complaints]
                if not todo or attempt == args.again:
                    break
                repeated += [f"{p['seed']}: {line[:300]}" for p, line in complaints]
    finally:
        servers.stop()
    return runner, judges, repeated


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


def recording(numbers: list[int], size: int, folder: Path) -> Path | None:
    """Where the real server's histories of these programs were unpacked; None: not recorded."""
    for archive in sorted((PROGRAMS / "recorded").glob("*.tar.xz")):
        first, last, of_size = map(int, archive.name.removesuffix(".tar.xz").split("-"))
        if of_size == size and set(numbers) <= set(range(first, last + 1)):
            expected = folder / "expected"
            with tarfile.open(archive) as members:
                members.extractall(expected, filter="data")
            return expected
    return None


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
    chosen = [program for program in programs if (args.size, program["seed"]) not in UNDETERMINED]
    histories = out / "histories"
    histories.mkdir(parents=True, exist_ok=True)
    for old in histories.glob("*.json"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="programs-") as scratch:
        folder = Path(scratch)
        expected = args.expected or (recording(numbers, args.size, folder) if numbers else None)
        began = time.monotonic()
        runner, judges, repeated = asyncio.run(drive(chosen, tools, folder, expected, args))
        verdict: dict[str, Any] = {
            "ports": args.ports,
            "seeds": args.seeds,
            "size": args.size,
            "programs": len(chosen),
            "undetermined": [n for n in numbers if (args.size, n) in UNDETERMINED],
            "seconds": round(time.monotonic() - began),
            "repeated": repeated,
            "wrong": {p["seed"]: lines for p in chosen if (lines := judges.wrong(p))},
            **keep(runner, chosen, histories, tools),
        }
        if expected is not None:
            found = [judges.differ(program) for program in chosen]
            verdict["differ"] = {name: lines for each in found for name, lines in each.items()}
        verdict["refused"] = replayed(histories)
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
        f"model says ({len(verdict['repeated'])} runs repeated, {verdict['seconds']} s)"
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
    parser.add_argument(
        "--uncached", action="store_true", help="in memory: each workflow task is a full replay"
    )
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
