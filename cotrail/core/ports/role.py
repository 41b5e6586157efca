"""Roles of engines: the parts that engines play in a run, which pins one for each that its system needs."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from cotrail.core.generation import Capability

EngineT = TypeVar("EngineT")
RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")


class EngineRole(Struct, frozen=True, kw_only=True):
    """A part that an engine plays in a run.

    name: in run files, options and pins, and `Reason(model=NAME)` where a language model plays it.
    kind: the kind of engine that can play it, as the tables `[KINDs.NAME]` of `models.toml` have it.
    work: what it does, behind "the model that".
    has_default: whether a run may name none. It then takes the first built-in engine that is installed, or, where a
        language model is wanted, its own.
    capabilities: what its actions ask of a language model beyond the continuation of plain text.
    """

    name: str
    kind: str
    work: str
    has_default: bool = False
    capabilities: frozenset[Capability] = frozenset()


class BatchedRole(EngineRole, Generic[EngineT, RequestT, ResultT], frozen=True, kw_only=True):
    """A role whose engine answers requests in batches (`Engines.ask`).

    carry_out: the engine's results for a batch, in its order; what steps ask for meanwhile is the next batch.
    """

    carry_out: Callable[[EngineT, Sequence[RequestT]], Sequence[ResultT]]


# The role of a second language model, which infers an answer from facts that the run's own model wrote.

INFERRER = EngineRole(name="inferrer", kind="model", work="infers answers from facts")
"""Rethinking with Retrieval has UnifiedQA-v2 in it (section 5.3 and appendix A.5)."""

JUDGING: frozenset[Capability] = frozenset({"turns", "structure"})
"""What grading asks of a language model."""

JUDGE = EngineRole(name="judge", kind="model", work="grades answers", capabilities=JUDGING)
"""The model that grades inside of a system whose own one answers: `Judge(model=JUDGE.name)`."""
