"""The exact prompts of steps."""

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.errors import InputError
from cotrail.models.queries.runs import resolve_run
from cotrail.models.queries.traces import find_step, rebuild_prompt

NAMED = "a step is named by RUN QUESTION STEP, or by its id alone"
"""What is said where it isn't."""


class StepPrompt(Struct, frozen=True, kw_only=True):
    """The exact prompt of a step."""

    run: str
    question: str
    step: int
    prompt: str


def step_prompt(connection: Connection, run: str, question: str | None = None, step: int | None = None) -> StepPrompt:
    """The prompt of a step, which is named by its run, question and number, or by its id in the table `steps` alone.

    Raises InputError where it has no prompt, and CotrailError where the store no longer holds what the model saw.
    """
    if question is not None and step is not None:
        named = resolve_run(connection, run), question, step
    elif question is None and run.isascii() and run.isdigit() and len(run) < 19:
        named = find_step(connection, int(run))
    else:
        raise InputError(NAMED)
    return StepPrompt(run=named[0], question=named[1], step=named[2], prompt=rebuild_prompt(connection, *named))
