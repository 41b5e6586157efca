"""Runs as they are recorded, which a paper's results are read from, and what these have whatever a paper measures."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from cotrail.core.prompts import Prompt
from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.evaluation.experiments.costs import Cost, QuestionCost
from cotrail.evaluation.metrics.factual_errors import AnnotatedChain
from cotrail.evaluation.metrics.metric import QuestionScores


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
    cost: what its steps asked for so far. ended: whether it has an answer or failed.
    asked: whether it has, or may yet; what was cancelled, or left over by a budget, is in no figure.
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
    cost: QuestionCost = QuestionCost()
    ended: bool = True
    asked: bool = True


class RecordedRun(Struct, frozen=True, kw_only=True):
    """A run as it stands.

    settings: of its system, in the type that it names. dataset: the format of its questions; corpus: the names of its
        corpora; None if nothing is retrieved.
    questions: read while they are iterated over, once; size: how many they are, of which `unasked` were cancelled or
        left over by a budget.
    calls: by the name of a kind of action, the calls of each question that has any, by its key.
    annotations: the chains that people have marked. ends: the number of questions by what ended them.
    until: the rule by which it stops asking questions, empty where it has none.
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
    size: int = 0
    unasked: int = 0
    until: str = ""
    ends: Mapping[str, int] = {}
    pins: Mapping[str, str] = {}


class ReadQuestion(Struct, frozen=True, kw_only=True):
    """A question of a run, as a paper's tables need it."""

    key: str

    @property
    @abstractmethod
    def has_answer(self) -> bool:
        """Whether it has an answer, be it an empty one."""


Q = TypeVar("Q", bound=ReadQuestion)


class ReadRun(Struct, Generic[Q], frozen=True, kw_only=True):
    """A run, as a paper's tables need it; id: its name in tables; questions: those that were asked, `unasked` aside."""

    id: str
    dataset: str
    model: str
    questions: tuple[Q, ...]
    cost: Cost | None = None
    unasked: int = 0

    @property
    def answered(self) -> int:
        """Number of questions that have an answer, including empty ones."""
        return sum(each.has_answer for each in self.questions)

    @property
    def is_answered(self) -> bool:
        """Return whether every question has an answer."""
        return self.answered == len(self.questions) + self.unasked
