"""The wrong answers of a run, with their causes."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from cotrail.evaluation.causes.cause import Cause as Cause
from cotrail.evaluation.causes.cause import Sign
from cotrail.evaluation.causes.cause_counts import CauseCount as CauseCount
from cotrail.evaluation.causes.cause_label import CauseLabel as CauseLabel
from cotrail.evaluation.causes.label_agreement import LabelAgreement as LabelAgreement

Outcome = Literal["right", "wrong", "open", "unscored"]
"""Of a question: `open`, it has steps to come; `unscored`, nothing published says whether its answer is right. A
question without an answer that has no steps to come is wrong."""


class WrongAnswer(Struct, frozen=True, kw_only=True):
    """A wrong answer with its cause.

    number: of the question in the run, from 1; answer: None where there is none.
    facts: behind the cause, in a sentence; signs: all causes that apply, the cause first.
    labels: what people say of it.
    """

    question_id: str
    number: int
    question: str
    kinds: Mapping[str, str]
    answers: tuple[str, ...]
    answer: str | None
    cause: Cause
    facts: str
    signs: tuple[Sign, ...]
    labels: tuple[CauseLabel, ...] = ()


class CheckedQuestion(Struct, frozen=True, kw_only=True):
    """A question that was looked at; wrong: where its answer is."""

    outcome: Outcome
    wrong: WrongAnswer | None = None


class RunErrors(Struct, frozen=True, kw_only=True):
    """The wrong answers of a run by their causes.

    outcomes: the number of questions by how they came out.
    causes: all of them in the order of precedence; none where no answer is wrong.
    kinds: how many wrong answers of each kind of questions have a cause, by that sort of kinds and the kind.
    agreements: with each person who labelled causes.
    """

    run: str
    system: str
    dataset: str
    questions: int
    outcomes: dict[Outcome, int]
    causes: tuple[CauseCount, ...]
    kinds: dict[str, dict[str, dict[Cause, int]]]
    wrong: tuple[WrongAnswer, ...]
    agreements: tuple[LabelAgreement, ...]
