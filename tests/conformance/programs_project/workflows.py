"""The one workflow, free of guards: it tells its driver through a file how far it is."""

from typing import Any

import interpreter

from wfcore import workflow


@workflow.defn(name="Program", sandboxed=False)
class Program(interpreter.Program):
    @workflow.run
    async def run(self, program: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        return await super().run(program, state)
