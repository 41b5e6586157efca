"""Runs as they are recorded, which a paper's results are read from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Prompt
from cotrail.core.questions import GoldParagraph
from cotrail.evaluation.experiments.costs import Cost
from cotrail.evaluation.metrics.factual_errors import AnnotatedChain
from cotrail.evaluation.metrics.scores import QuestionScores


class ModelCall(Struct, frozen=True, kw_only=True):
    """A finished call of a language model; prompt: as it was asked for, before it was cut to the model's context."""

    prompt: Prompt
    written: str


class RecordedQuestion(Struct, frozen=True, kw_only=True):
    """A question of a run as it stands.

    answer: None if there is none (yet); scores: by the metrics of the run's dataset.
    details: of the answer, in the type that the system names. chain: the sentences of its chain of thought, or of its
        reader's; empty while it isn't finished.
    paragraphs: all that its searches found, in their order.
    """

    key: str
    text: str
    answers: tuple[str, ...]
    answer: str | None
    kinds: Mapping[str, str]
    scores: QuestionScores
    details: Struct | None = None
    chain: tuple[str, ...] = ()
    gold: tuple[GoldParagraph, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()


class RecordedRun(Struct, frozen=True, kw_only=True):
    """A run as it stands.

    settings: of its system, in the type that it names. dataset: the format of its questions; corpus: the names of its
        corpora; None if nothing is retrieved.
    questions: read while they are iterated over, once.
    calls: by the name of a kind of action, the calls of each question that has any, by its key.
    annotations: the chains that people have marked. ends: the number of questions by what ended them.
    pins: the identities of the engines of further roles, and the revisions of knowledge sources; see `Binding`.
    """

    id: str
    system: str
    settings: Any
    dataset: str
    model: str
    corpus: str | None
    questions: Iterable[RecordedQuestion]
    calls: Callable[[str], Iterable[tuple[str, Sequence[ModelCall]]]]
    annotations: tuple[AnnotatedChain, ...]
    finished: int
    cost: Cost
    ends: Mapping[str, int] = {}
    pins: Mapping[str, str] = {}
