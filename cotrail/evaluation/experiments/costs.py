"""Runs of experiments as they are recorded, and their costs: model calls, searches, tokens and time."""

import tomllib
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct

from cotrail.core.money import NOTHING_SPENT, Spent
from cotrail.core.money import total as total_spent
from cotrail.core.prompts import Prompt
from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.evaluation.experiments.report_tables import Column, ReportTable, TableRow, Value, listing
from cotrail.evaluation.metrics.factual_errors import AnnotatedChain
from cotrail.evaluation.metrics.metric import QuestionScores

_WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SPENT_COLUMNS, (DOLLARS,), STEPS, TOTALS = (
    tuple(Column(*column) for column in columns) for columns in _WORDS["columns"].values()
)
PER_QUESTION_NOTE, PER_ASKED_NOTE, ADOPTED_NOTE, LOST_NOTE = _WORDS["notes"].values()


class Work(Struct, frozen=True, kw_only=True):
    """Ended steps and what they took; model_seconds: the time of model calls alone, as part of `seconds`."""

    steps: int = 0
    model_calls: int = 0
    searches: int = 0
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    generated_tokens: int = 0
    model_seconds: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Work") -> "Work":
        return Work(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class QuestionCost(Struct, frozen=True, kw_only=True):
    """What a question asked for; dollars: None where a price isn't known, or another run paid for steps of it."""

    work: Work = Work()
    dollars: float | None = None

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.work.prompt_tokens + self.work.generated_tokens


class Cost(Struct, frozen=True, kw_only=True):
    """What a run asked for and what it spent.

    asked: all its steps, `adopted` and `made` together.
    adopted: those that another run computed, with what they took there; made: those that were computed for this run.
    limited: the number of questions that a limit ended.
    lost_requests: those that providers lost with their batches and may have charged; lost_tokens: about how many they
        read for these.
    spent: tokens and money of all calls of language models that were paid, those without an answer too.
    lost: the number of executions that ended without a result, by outcome; spent as well, and part of none of the
        others.
    """

    asked: Work
    adopted: Work
    made: Work
    lost: Mapping[str, int]
    lost_seconds: float
    spent: Spent = NOTHING_SPENT
    limited: int = 0
    lost_requests: int = 0
    lost_tokens: int = 0


def cost(made: Work, adopted: Work, lost: Mapping[str, int], lost_seconds: float, **further: Any) -> Cost:
    """Return the cost of a run with this work; further: its other fields."""
    return Cost(asked=made + adopted, adopted=adopted, made=made, lost=lost, lost_seconds=lost_seconds, **further)


def total(costs: Sequence[Cost]) -> Cost:
    """Sum the costs of several runs."""
    return cost(
        made=reduce(Work.__add__, (each.made for each in costs), Work()),
        adopted=reduce(Work.__add__, (each.adopted for each in costs), Work()),
        lost=sum((Counter(each.lost) for each in costs), Counter()),
        lost_seconds=sum(each.lost_seconds for each in costs),
        spent=total_spent(each.spent for each in costs),
        limited=sum(each.limited for each in costs),
        lost_requests=sum(each.lost_requests for each in costs),
        lost_tokens=sum(each.lost_tokens for each in costs),
    )


def spent(costs: Sequence[Cost], shared_by: int) -> dict[str, Value]:
    """Sum what several runs asked for, and divide it by `shared_by` questions; None where that is 0."""
    all_of_them, asked = total(costs), reduce(Work.__add__, (each.asked for each in costs), Work())
    sums = {each.name: getattr(asked, each.name) for each in SPENT_COLUMNS}
    shares = {name: value / shared_by if shared_by else None for name, value in sums.items()}
    money = all_of_them.spent.dollars
    each = None if money is None or not shared_by else float(money / shared_by)
    steps = {"steps": asked.steps, "adopted": all_of_them.adopted.steps}
    return {**shares, "dollars": each, **steps, "limited": all_of_them.limited or None}


def per_run(runs: Iterable[tuple[str, Cost | None, int]], note: str = PER_QUESTION_NOTE) -> ReportTable | None:
    """Average cost of a question, by run: its name, cost, and the number of questions that share it; note: which."""
    rows = [TableRow(values={"run": name, **spent((each,), shared_by)}) for name, each, shared_by in runs if each]
    columns = (Column("run", "Run"), *SPENT_COLUMNS, DOLLARS, *STEPS)
    return listing("costs", "What a question costs", columns, rows, notes=(note,))


def spending(runs: Sequence[tuple[str, Cost | None, int]]) -> Iterator[ReportTable | None]:
    """What a question of each run costs, as in `per_run`, and all of them together."""
    yield per_run(runs)
    yield totals({None: [each for _, each, _ in runs if each]})


def totals(stages: Mapping[str | None, Sequence[Cost]]) -> ReportTable | None:
    """Total cost of the runs of each stage; None for the stage of a protocol that has one only."""
    rows = [row for stage, costs in stages.items() if costs for row in _stage_rows(stage, costs)]
    lost = total([each for costs in stages.values() for each in costs]).lost
    notes = [ADOPTED_NOTE, *([LOST_NOTE.format(outcomes(lost))] if lost else [])]
    return listing("totals", "What the experiment took", TOTALS, rows, notes=notes)


def outcomes(counts: Mapping[str, int]) -> str:
    """Executions without a result, in words."""
    return ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(counts.items()))


def _stage_rows(stage: str | None, costs: Sequence[Cost]) -> Iterator[TableRow]:
    of_all = total(costs)
    about: dict[str, Value] = {"stage": stage, "runs": len(costs)}
    for name, work in (("asked for", of_all.asked), ("adopted", of_all.adopted), ("made", of_all.made)):
        counts = {each: getattr(work, each) for each in Work.__struct_fields__}
        money = of_all.spent.dollars if name == "made" else None
        yield TableRow(values={**about, "work": name, **counts, "dollars": None if money is None else float(money)})
    if of_all.lost:
        executions = sum(of_all.lost.values())
        yield TableRow(
            values={**about, "work": "without a result", "executions": executions, "seconds": of_all.lost_seconds}
        )


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
