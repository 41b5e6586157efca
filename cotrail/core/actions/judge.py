"""Judging: a language model grades an answer by a rubric."""

from functools import partial

import msgspec

from cotrail.core.actions.generate import (
    Prompted,
    PromptedRecord,
    decides_generation,
    generate,
    generation_view,
    model_need,
    model_role,
    prompt_paragraphs,
    prompt_request,
)
from cotrail.core.actions.kind import ActionKind
from cotrail.core.generation import Capability, Until
from cotrail.core.ports.role import EngineRole
from cotrail.core.results import Generated, Json
from cotrail.core.stored_parts import Stored

JUDGING: frozenset[Capability] = frozenset({"turns", "structure"})
"""What judging asks of a language model."""

JUDGE = EngineRole(
    name="judge",
    kind="model",
    work="grades answers",
    capabilities=JUDGING,
)
"""The model that grades inside of a system whose own one answers: `Judge(model=JUDGE.name)`."""


class Judge(Prompted, frozen=True, kw_only=True):
    """Grade an answer by a rubric; the verdict follows the action's `schema`, or is one of its `choices`.

    A text that doesn't is asked for again, and then fails the step: it is never taken for a verdict.
    """

    until: Until = "end"


def _read_judge(request: Json, stored: Stored) -> Judge:
    return Judge(**msgspec.convert(request, PromptedRecord).fields(stored))


JUDGES: ActionKind[Judge, Generated] = ActionKind(
    name="judge",
    action=Judge,
    result=Generated,
    role="generation",
    carry_out=generate,
    decides=decides_generation,
    request=prompt_request,
    read_back=_read_judge,
    paragraphs=prompt_paragraphs,
    pinned=model_role,
    need="the model server",
    named_need=model_need,
    view=partial(generation_view, "verdict"),
)
