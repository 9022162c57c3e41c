#!/usr/bin/env python3
"""Runs the recorded steps against a server and compares its answers with exchanges.json.

    python check_http.py http://127.0.0.1:7331 [--groups start,history] [--token TOKEN]
    python check_http.py http://127.0.0.1:7331 --mutate         does this check notice changes?

The workflows of workflows.py must be running there on the task queue http-conformance.
Exit status: 0 all steps as recorded, 1 some differ, 2 bad usage.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conformance.http.exchange import Api, Matcher

HERE = Path(__file__).parent
Counts = Callable[[dict, list[str]], str]


def select(steps: list[dict], groups: str, only: str) -> list[dict]:
    wanted = [name for name in groups.split(",") if name]
    unknown = set(wanted) - {step["group"] for step in steps}
    if unknown:
        sys.exit(f"no such group: {', '.join(sorted(unknown))}")
    chosen = [step for step in steps if not wanted or step["group"] in wanted]
    return [step for step in chosen if only in step["name"]]


def mutate(step: dict, number: int) -> dict:
    """The step with one thing changed in what is expected of the answer."""
    changed = copy.deepcopy(step)
    response = changed["response"]
    body = response.get("body")
    kind = number % 4
    if kind == 1 and isinstance(body, dict):
        body["unheardOf"] = 1
    elif kind == 2 and isinstance(body, dict) and body:
        del body[next(iter(body))]
    elif kind == 3 and isinstance(body, dict) and change_leaf(body):
        pass
    else:
        response["status"] += 1
    return changed


def change_leaf(value: Any) -> bool:
    """Changes the last fixed value of a structure; False if it holds none."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    for key, item in reversed(items):
        if isinstance(item, (dict, list)):
            if change_leaf(item):
                return True
        elif key not in ("message", "@type") and not (isinstance(item, str) and "{{" in item):
            value[key] = not item if isinstance(item, bool) else "changed"
            return True
    return False


def check(step: dict, api: Api, matcher: Matcher) -> list[str]:
    try:
        return matcher.answer(step["response"], api.perform(step))
    except (OSError, KeyError) as error:
        return [f"no answer: {type(error).__name__} {error}"]


def table(results: list[tuple[dict, list[str]]], counts: Counts) -> str:
    groups: dict[str, list[str]] = {}
    for step, differences in results:
        groups.setdefault(step["group"], []).append(counts(step, differences))
    groups["all"] = [counts(step, differences) for step, differences in results]
    width = max(map(len, groups))
    lines = [f"{'group':{width}}  passed  failed  quirks not shared"]
    for name, outcomes in groups.items():
        numbers = [outcomes.count(outcome) for outcome in ("pass", "FAIL", "quirk")]
        lines.append(f"{name:{width}}  {numbers[0]:6}  {numbers[1]:6}  {numbers[2] or '':6}".rstrip())
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("--token", help="sent as Authorization: Bearer TOKEN")
    parser.add_argument("--header", action="append", default=[], metavar="NAME:VALUE")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--groups", default="", help="comma-separated; default all")
    parser.add_argument("--only", default="", help="steps whose name holds this text")
    parser.add_argument("--exchanges", type=Path, default=HERE / "exchanges.json")
    parser.add_argument("--messages", action="store_true", help="compare error messages too")
    parser.add_argument("--strict", action="store_true", help="server details and quirks count")
    parser.add_argument("--mutate", action="store_true", help="change each expectation, demand a failure")
    parser.add_argument("--list-groups", action="store_true")
    parser.add_argument("--quiet", action="store_true", help="the table only")
    options = parser.parse_args()

    document = json.loads(options.exchanges.read_text())
    if options.list_groups:
        print("\n".join(dict.fromkeys(step["group"] for step in document["steps"])))
        return 0
    headers = dict(header.split(":", 1) for header in options.header)
    if options.token:
        headers["Authorization"] = f"Bearer {options.token}"
    names = {"tag": "h" + uuid.uuid4().hex[:9], "ns": options.namespace}
    api = Api(options.base_url, names, headers)
    optional = set() if options.strict else set(document["optional"])
    matcher = Matcher(names, optional, options.messages)

    def outcome(step: dict, differences: list[str]) -> str:
        if bool(differences) == options.mutate:
            return "pass"
        return "quirk" if "quirk" in step and not (options.strict or options.mutate) else "FAIL"

    results = []
    for number, step in enumerate(select(document["steps"], options.groups, options.only)):
        differences = check(mutate(step, number) if options.mutate else step, api, matcher)
        results.append((step, differences))
        result = outcome(step, differences)
        if result != "pass" and not options.quiet:
            request = step["request"]
            print(f"{result} {step['name']}  {request['method']} {request['path']}")
            for difference in differences or ["the change was not noticed"]:
                print(f"     {difference}")
            if "quirk" in step:
                print(f"     recorded habit: {step['quirk']}")
    print(table(results, outcome))
    return 1 if any(outcome(*result) == "FAIL" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
