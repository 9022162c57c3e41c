"""Run the recorded scenarios on our engine and hold the histories against the server's.

    python -m tests.conformance.run_scenarios --ports memory --out DIR [NAME ...]

NAME is a scenario or a group; without one, all in scope. Histories go to DIR/<ports>, the verdicts
to DIR/<ports>/verdicts.json. What differs unexpectedly is run once more, alone and in a process of
its own: some scenarios need a machine that has time for them. Exit status 1 when a scenario in
scope differs without a known reason.
"""

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.conformance import scope

#: So many differences may come from a busy machine.
FEW = 5
RECORDED = Path(__file__).resolve().parent / "recorded"


def load(ports: str) -> tuple[Any, Any, Any, Any]:
    """The recording tools, with our module in the SDK's place."""
    os.environ["SCENARIO_PORTS"] = ports
    os.environ["SCENARIO_SDK"] = "tests.conformance.scenario_sdk"
    sys.path.insert(0, str(RECORDED))
    import compare
    import record
    import scenario
    import sdk

    record.load_scenarios()
    compare.sticky_as_normal = True
    return record, scenario, sdk, compare


def say(text: str) -> None:
    """A line of the account."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def verdict(name: str, cases: list[dict[str, Any]], out: Path, compare: Any) -> list[str]:
    """What differs, over all histories of a scenario."""
    findings: list[str] = []
    for case in cases:
        path = out / case["file"]
        if not path.exists():
            findings.append(f"{case['file']}: no history")
            continue
        found = compare.compare(compare.read(RECORDED / case["file"]), compare.read(path), case)
        findings += [f"{case['file']}: {text}" for text in found]
    return findings


async def run(
    chosen: list[Any], tools: tuple[Any, Any, Any, Any], out: Path, jobs: int
) -> dict[str, Any]:
    """Drive each scenario; its verdict by name."""
    record, _, sdk, compare = tools
    cases: dict[str, list[dict[str, Any]]] = {}
    for case in compare.manifest():
        cases.setdefault(case["scenario"], []).append(case)
    servers = sdk.Servers("", 0)
    limit = asyncio.Semaphore(jobs)
    verdicts: dict[str, Any] = {}
    clients: dict[str, Any] = {}

    async def one(spec: Any) -> None:
        async with limit:
            began = time.monotonic()
            try:
                await record.run_one(spec, spec.profile, clients[spec.profile], out)
                findings = verdict(spec.name, cases[spec.name], out, compare)
            except Exception as err:  # noqa: BLE001 - whatever a scenario meets is its verdict
                findings = [f"{type(err).__name__}: {err}"]
            verdicts[spec.name] = {"group": spec.group, "shows": spec.shows, "findings": findings}
            state = "equal" if not findings else "DIFFERS"
            say(f"{state:8} {spec.group}/{spec.name} ({time.monotonic() - began:.1f}s)")
            for text in findings[:6]:
                say(f"         {text}")

    try:
        for profile in dict.fromkeys(spec.profile for spec in chosen):
            clients[profile] = await sdk.connect(await servers.address(profile))
        await asyncio.gather(*map(one, chosen))
    finally:
        servers.stop()
    return verdicts


def unexpected(verdicts: dict[str, Any], ports: str) -> list[str]:
    """Scenarios that differ without a known reason."""
    known = scope.different(ports)
    return [
        name
        for name, found in verdicts.items()
        if found["findings"] and name not in known and not scope.is_race(name, found["findings"])
    ]


def run_again(names: list[str], ports: str, out: Path) -> dict[str, Any]:
    """The verdicts of a second run of these scenarios, one after the other; few, or it's no use."""
    if not names or len(names) > FEW:
        return {}
    command = [sys.executable, "-m", "tests.conformance.run_scenarios", "--jobs", "1"]
    # Servers of its own: those of this run have ended.
    environment = {k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "REDIS_URL"}}
    subprocess.run(
        [*command, "--ports", ports, "--out", str(out), *names], check=False, env=environment
    )
    again: dict[str, Any] = json.loads((out / ports / "verdicts.json").read_text())
    return again


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ports", choices=("memory", "postgres"), default="memory")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--all", action="store_true", help="scenarios that need later features too")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    if not args.verbose:
        logging.disable(logging.CRITICAL)
    tools = load(args.ports)
    chosen = [
        spec
        for spec in tools[1].SCENARIOS.values()
        if (
            spec.name in args.names
            or spec.group in args.names
            or (not args.names and spec.group in scope.GROUPS)
        )
        and (args.all or spec.name in args.names or spec.name not in scope.LATER_REASON)
    ]
    out = args.out / args.ports
    out.mkdir(parents=True, exist_ok=True)
    verdicts = asyncio.run(run(chosen, tools, out, args.jobs))
    if not args.names:
        verdicts |= run_again(unexpected(verdicts, args.ports), args.ports, args.out)
    (out / "verdicts.json").write_text(json.dumps(verdicts, indent=1))
    differ = [name for name, found in verdicts.items() if found["findings"]]
    say(f"{len(verdicts) - len(differ)} of {len(verdicts)} equal; differ: {' '.join(differ)}")
    return 1 if unexpected(verdicts, args.ports) else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Threads of an embedded Celery worker may outlive it; nothing is left for them to do.
    os._exit(code)
