"""The runs of an experiment: what each varies, and what came out of it."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from cotrail.evaluation.experiments.costs import Cost
from cotrail.evaluation.metrics.question_scores import QuestionScores
from cotrail.systems.settings import Reader

Stage = Literal["search", "test"]
"""`search`: on the development questions, to choose K and M; `test`: with the chosen ones on the test questions."""

Goal = Literal["retrieval", "qa"]
"""What K and M are chosen by: the recall of gold paragraphs, or the F1 of answers (IRCoT, section 4.1)."""


SystemName = Literal["no-retrieval", "one-step", "ircot"]
"""The systems that the paper compares: NoR, OneR and IRCoT."""


class Line(Struct, frozen=True, kw_only=True):
    """A result that the paper would print: a system with a reader and a model on a dataset.

    demonstrations: the dataset whose demonstrations are shown; another than `dataset` is out of distribution.
    reader: `none` for retrieval, and for the answer that IRCoT's own chain states (appendix F).
    """

    goal: Goal
    dataset: str
    demonstrations: str
    model: str
    system: SystemName
    reader: Reader


class Cell(Struct, frozen=True, kw_only=True):
    """One run of an experiment.

    demonstration_set: from 1. retrieval_count (K) and distractors (M): None where the system has none.
    """

    line: Line
    stage: Stage
    demonstration_set: int
    retrieval_count: int | None = None
    distractors: int | None = None

    @property
    def name(self) -> str:
        """What names the run in its experiment, e.g. `search/qa/musique/smollm2-135m/ircot/direct/set1/K4/M2`."""
        line = self.line
        shown = line.dataset if line.demonstrations == line.dataset else f"{line.demonstrations}-to-{line.dataset}"
        varied = (
            f"set{self.demonstration_set}",
            *(f"{letter}{n}" for letter, n in (("K", self.retrieval_count), ("M", self.distractors)) if n is not None),
        )
        return "/".join((self.stage, line.goal, shown, line.model, line.system, line.reader, *varied))


class ExampleChain(Struct, frozen=True, kw_only=True):
    """A question's chain of thought, to be shown beside those of other systems.

    answers: the dataset's; untrue: the places of the sentences that people found untrue, from 0.
    """

    question: str
    answers: tuple[str, ...]
    sentences: tuple[str, ...]
    untrue: frozenset[int] = frozenset()


class CellResult(Struct, frozen=True, kw_only=True):
    """What came out of a run.

    scores: of each question by its id, in the dataset's order; kinds: what the dataset calls each of them.
    finished: how many questions have an answer; factual_errors: of the annotated questions (by id), whether the chain
    holds a sentence that a person found untrue.
    chains: of the questions that serve as examples (`cotrail.evaluation.experiments.ircot.examples`), by id.
    """

    cell: Cell
    run: str
    scores: Mapping[str, QuestionScores]
    kinds: Mapping[str, str]
    finished: int
    cost: Cost
    factual_errors: Mapping[str, bool] = {}
    chains: Mapping[str, ExampleChain] = {}
