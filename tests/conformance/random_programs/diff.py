#!/usr/bin/env python3
"""Compares the histories of the same programs from two systems.

    python diff.py EXPECTED_DIR ACTUAL_DIR [--seeds 1-60] [--any-queue] [-q]

A sequential program (and every child) must have the same events in the same order with the same
attributes. Where branches run side by side, only what the program determines is compared:
  entities   each activity's, timer's, child's, update's, signal's own events, with all attributes
  threads    the order of events within each branch, and that branches lie between their neighbours
  batches    the order of the first commands of the branches of a gather
  tasks      the workflow tasks' cycle, that each has a cause, and that commands follow their task
  outcomes   results, statuses, calls of activities, answers to the driver
Both sides are also linted (replay_check.py). Exit status: 0 equal, 1 different, 2 bad usage.
"""

import argparse
import base64
import json
import re
import sys
from pathlib import Path
from typing import Any, Iterator, Optional

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1] / "support"), str(HERE.parent / "recorded")]

from compare import Comparison, compare, normalize  # noqa: E402
from entities import Entities, Threads, milliseconds, shape, value_of  # noqa: E402
from replay_check import lint  # noqa: E402

Json = dict[str, Any]
#: in a child of a program whose event order is free
PARENT_IDS = ["WORKFLOW_EXECUTION_STARTED.parentInitiatedEventId",
              "WORKFLOW_EXECUTION_CANCEL_REQUESTED.externalInitiatedEventId"]


def without_clocks(history: Json, any_queue: bool = False) -> Json:
    """Leaves out what depends on the clock alone: readings in a local activity's marker and how its worker
    batched the work; the wait before a run that follows one of less than a second; who took a workflow task
    (left out by the server when the task was first made for an update alone and then turned into a full one)."""

    def clean(event: Json) -> Json:
        event = dict(event)
        for field, name in (("workflowExecutionStartedEventAttributes", "firstWorkflowTaskBackoff"),
                            ("workflowExecutionContinuedAsNewEventAttributes", "backoffStartInterval")):
            given = event.get(field, {})
            if given.get("initiator", "").endswith("_WORKFLOW") and milliseconds(given.get(name, "0s")) < 1000:
                event[field] = {k: v for k, v in given.items() if k != name}
        if "workflowTaskStartedEventAttributes" in event:
            given = event["workflowTaskStartedEventAttributes"]
            event["workflowTaskStartedEventAttributes"] = {k: v for k, v in given.items() if k != "identity"}
        if any_queue and "workflowTaskScheduledEventAttributes" in event:
            given = event["workflowTaskScheduledEventAttributes"]
            event["workflowTaskScheduledEventAttributes"] = {
                k: v for k, v in given.items() if k not in ("taskQueue", "attempt")}
        marker = event.get("markerRecordedEventAttributes", {})
        if marker.get("markerName") != "core_local_activity":
            return event
        payload = marker["details"]["data"]["payloads"][0]
        data = json.loads(base64.b64decode(payload["data"]))
        data = {k: "<time>" if k in ("complete_time", "original_schedule_time") and v else v for k, v in data.items()
                if k != "activation_index"}
        text = base64.b64encode(json.dumps(data).encode()).decode()
        return {**event, "markerRecordedEventAttributes": {**marker, "details": {
            **marker["details"], "data": {"payloads": [{**payload, "data": text}]}}}}

    return {"events": [clean(e) for e in history["events"]]}


def compare_concurrent(expected: Json, actual: Json, program: Json) -> list[str]:
    threads = Threads(program)
    a, b = Entities(expected, threads), Entities(actual, threads)
    out = [f"expected side: {f}" for f in a.findings] + b.findings
    out += b.tasks(sum("reject" in r["do"].get("update", []) for r in program["rules"]))
    result = Comparison()
    for key in sorted(set(a.groups) | set(b.groups)):
        x, y = a.groups.get(key, []), b.groups.get(key, [])
        types = [e["type"] for e in x], [e["type"] for e in y]
        if types[0] != types[1]:
            result.findings.append(f"{key}: events {types[1]}, expected {types[0]}")
            continue
        for left, right in zip(x, y):
            result.values(f"{key} {left['type']}", left, right)
    out += result.findings
    for thread in threads.above:
        p, q = a.projection(thread), b.projection(thread)
        if p != q:
            at = next((i for i, (x, y) in enumerate(zip(p, q)) if x != y), min(len(p), len(q)))
            out.append(f"thread {thread or 'main'}: item {at + 1} is {q[at:at + 1]}, expected {p[at:at + 1]}")
    firsts = dict(b.first_batches())
    for block, order in a.first_batches():
        if firsts.get(block) != order:
            out.append(f"block {block}: branches begin {firsts.get(block)}, expected {order}")
    shapes = [sorted({json.dumps(shape(e), sort_keys=True) for e in side.events
                      if e["type"].startswith("WORKFLOW_TASK_")}) for side in (a, b)]
    for text in set(shapes[1]) - set(shapes[0]):
        out.append(f"workflow task of another shape: {text}")
    return out


# ---- folders -------------------------------------------------------------------------------------------


def read(path: Path) -> Json:
    return json.loads(path.read_text())


def program_of(history: Json) -> Json:
    return value_of(normalize({"events": history["events"][:1]}, [])[0]["input"])[0]


def compare_file(expected: Json, actual: Json, program: Json, is_main: bool, any_queue: bool = False) -> list[str]:
    """Findings for one history; empty when equal."""
    out = [f"lint: {f}" for f in lint(actual) if not re.search(r"EXTERNAL_WORKFLOW_EXECUTION_FAILED.*is missing", f)]
    try:
        expected, actual = without_clocks(expected, any_queue), without_clocks(actual, any_queue)
        if program["class"] == "concurrent" and is_main:
            return out + compare_concurrent(expected, actual, program)
        return out + compare(expected, actual, {"varies": PARENT_IDS if program["class"] == "concurrent" else []})
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as err:
        return out + [f"cannot be read as a history of this program: {type(err).__name__}: {err}"]


def outcomes(folder: Path) -> Json:
    path = folder / "manifest.json"
    return read(path).get("outcomes", {}) if path.exists() else {}


def compare_folders(one: Path, two: Path, seeds: Optional[set[int]], any_queue: bool = False) -> Iterator[
        tuple[str, list[str]]]:
    names = {f.name for f in [*one.glob("[0-9]*.json"), *two.glob("[0-9]*.json")]}
    told = outcomes(one), outcomes(two)
    for name in sorted(names):
        seed = name.split(".")[0]
        if seeds and int(seed) not in seeds:
            continue
        if not (one / name).exists() or not (two / name).exists():
            yield name, ["only in " + str(one if (one / name).exists() else two)]
            continue
        program = program_of(read(one / f"{seed}.main.1.json"))
        is_main = ".main." in name
        findings = compare_file(read(one / name), read(two / name), program, is_main, any_queue)
        if name.endswith(".main.1.json") and told[0].get(str(int(seed))) != told[1].get(str(int(seed))):
            findings.append("the outcomes differ (see the manifests)")
        yield name, findings


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ap.add_argument("expected", type=Path)
    ap.add_argument("actual", type=Path)
    ap.add_argument("--seeds", help="1-60 or 3,7")
    ap.add_argument("--any-queue", action="store_true", help="workflow tasks may come by the worker's own (sticky) "
                    "queue on one side and by the normal one on the other")
    ap.add_argument("-q", "--quiet", action="store_true", help="only the totals")
    args = ap.parse_args()
    from run import parse_seeds

    seeds = set(parse_seeds(args.seeds)) if args.seeds else None
    total = bad = 0
    wrong = set()
    for name, findings in compare_folders(args.expected, args.actual, seeds, args.any_queue):
        total += 1
        if findings:
            bad += 1
            wrong.add(name.split(".")[0])
            if not args.quiet:
                print(f"DIFFERS {name}")
                for text in findings[:8]:
                    print(f"    {text}")
                if len(findings) > 8:
                    print(f"    ... and {len(findings) - 8} more")
    print(f"{total} histories, {bad} differ, in {len(wrong)} programs {sorted(wrong)[:30] or ''}")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
