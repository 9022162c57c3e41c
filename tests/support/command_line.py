"""`manage.py workflow` in this process: what it prints, and its exit code."""

import json
from dataclasses import dataclass
from io import StringIO
from typing import Any

from django.core.management import call_command


@dataclass(frozen=True)
class Answer:
    """What a verb printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def workflow(*arguments: str) -> Answer:
    """Run a verb."""
    out, err, code = StringIO(), StringIO(), 0
    try:
        call_command("workflow", *arguments, stdout=out, stderr=err)
    except SystemExit as end:
        code = int(end.code or 0)
    return Answer(code, out.getvalue(), err.getvalue())
