"""The record of executions: one line each, written before the search or the generation begins."""

import os
from pathlib import Path
from typing import Any

from msgspec import Struct

from cotrail.core.results import Result
from cotrail.models.execution.leases import Claim
from cotrail.models.records.steps import Dispatch
from cotrail.tasks import step
from cotrail.tasks.runtime import Runtime


class Execution(Struct, frozen=True, order=True):
    """An execution: a step and its epoch."""

    step_id: int
    epoch: int


def install(path: Path) -> None:
    """Records every execution of this process."""
    perform = step.perform

    def noting(message: Dispatch, execute: step.Execute) -> Any:
        def noted(runtime: Runtime, claim: Claim) -> Result:
            _append(path, f"{claim.step_id} {claim.epoch}\n")
            return execute(runtime, claim)

        return perform(message, noted)

    step.perform = noting


def read(path: Path) -> list[Execution]:
    """All executions so far, of all processes."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Execution(*map(int, line.split())) for line in lines]


def _append(path: Path, line: str) -> None:
    """Appends in one write, which no other process interleaves and no `kill -9` undoes."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
