"""Named sets of rules: where the authors' released code departs from the paper; and the most that a system asks for."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Protocol

from msgspec import Struct

from cotrail.core.demonstrations import AnswerForm
from cotrail.core.results import Failure, Result
from cotrail.core.system import LimitReached

Rules = Literal["paper", "released"]
"""`paper`, or what the authors' `released` code does; single rules are set by hand in a system's settings."""


class Released(Protocol):
    """The settings of a system that make it follow its authors' released code, where demonstrations decide them."""

    def __call__(self, *, instructed: bool) -> dict[str, Any]:
        """Settings that differ from the defaults.

        instructed: whether the demonstrations have an instruction before the question, as for Flan-T5.
        """


def released_reading(*, instructed: bool) -> dict[str, Any]:
    """The settings by which a reader and its prompts follow the released code of IRCoT."""
    # Flan-T5's context has no fixed limit in the released code, which therefore drops no demonstrations as it loads
    # them; and the passage that a question of IIRC pins is last, as in its demonstrations.
    tokens = released_tokens(instructed=instructed)
    return {
        "reading": {
            "instruction": "released",
            "answers": "released",
            "max_answer_tokens": tokens,
            "max_chain_tokens": tokens,
        },
        "prompting": {"drop": "first" if instructed else "released", "pinned": "bottom" if instructed else "top"},
    }


def released_retrieval(*, instructed: bool) -> dict[str, Any]:
    """The settings by which searches follow the released code of IRCoT."""
    return {
        "retrieval": {"duplicates": "released", "distinct_texts": True, "pinned": "released"},
        "pages": {"scope": "after", "found": "released", "max_tokens": released_tokens(instructed=instructed)},
    }


def released_tokens(*, instructed: bool) -> int:
    """The most tokens that a step of the released code of IRCoT writes.

    Flan-T5 writes at most 200 at every step (`max_length` in `base_configs`) and GPT-3 300 (`gpt3generator.py`).
    """
    return 200 if instructed else 300


RELEASED_CHAINS: Mapping[str, Any] = {"chain_rules": "released", "until": "end"}
"""The settings by which chains are read and weighed as in the released code of Rethinking with Retrieval."""


# The most that a system asks for, by the limits in its settings: for an estimate before anything is spent.


class StepBound(Struct, frozen=True, kw_only=True):
    """Steps of one kind that a question has at most.

    times: how many; in_turn: how many of these follow one another, None for all. output: the tokens that each writes at
    most; words: those that its prompt shows at most, in addition to the question and the demonstrations of `form`.
    """

    kind: str
    times: int
    in_turn: int | None = None
    output: int = 0
    words: int = 0
    form: AnswerForm | None = None


def words_in(own: Mapping[str, str]) -> int:
    """How many words all prompts of a system have together, which a single one never exceeds."""
    return sum(len(each.split()) for each in own.values())


# Where a limit ends a part of a system: one of its own settings, or a budget, whose `LimitReached` is caught here.


class Limited:
    """A part of a system that a limit may end; what stands behind it answers from what was found.

    limit: the name of the limit, which the part sets where it is one of its own; empty where it comes to its end.
    outcomes: how those of the actions yielded together ended that a budget had room for; see `LimitReached`.
    """

    def __init__(self, limit: str = "") -> None:
        self.limit = limit
        self.outcomes: tuple[Result | Failure, ...] = ()

    def __enter__(self) -> "Limited":
        return self

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> bool:
        if not isinstance(error, LimitReached):
            return False
        self.limit, self.outcomes = error.limit, error.outcomes
        return True
