"""Cells of an IRCoT experiment: one run each, with the parameters that it varies and its results."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from cotrail.evaluation.experiments.costs import Cost
from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.systems.parts.reader_settings import Reader

Stage = Literal["search", "test"]
"""`search`: on the development questions, to choose K and M; `test`: with the chosen ones on the test questions."""

Goal = Literal["retrieval", "qa"]
"""Criterion for choosing K and M: recall of gold paragraphs, or F1 of answers (IRCoT, section 4.1)."""


class Line(Struct, frozen=True, kw_only=True):
    """A result as the paper prints it: a system with a reader and a model on a dataset.

    demonstrations: the dataset whose demonstrations are shown; if it isn't `dataset`, the line is out of distribution.
    reader: `none` for retrieval, and where IRCoT's own chain states the answer (appendix F).
    """

    goal: Goal
    dataset: str
    demonstrations: str
    model: str
    system: str
    reader: Reader


class Cell(Struct, frozen=True, kw_only=True):
    """One run of an experiment.

    demonstration_set: its number, from 1. retrieval_count (K), distractors (M): None if the system has no such setting.
    """

    line: Line
    stage: Stage
    demonstration_set: int
    retrieval_count: int | None = None
    distractors: int | None = None

    @property
    def name(self) -> str:
        """Name of the run in its experiment, e.g. `search/qa/musique/smollm2-135m/ircot/direct/set1/K4/M2`."""
        line = self.line
        datasets = line.dataset if line.demonstrations == line.dataset else f"{line.demonstrations}-to-{line.dataset}"
        varied = (
            f"set{self.demonstration_set}",
            *(f"{letter}{n}" for letter, n in (("K", self.retrieval_count), ("M", self.distractors)) if n is not None),
        )
        return "/".join((self.stage, line.goal, datasets, line.model, line.system, line.reader, *varied))


class ExampleChain(Struct, frozen=True, kw_only=True):
    """A question's chain of thought, for an example beside those of other systems.

    answers: the dataset's; untrue: positions of the sentences that annotators marked untrue, from 0.
    """

    question: str
    answers: tuple[str, ...]
    sentences: tuple[str, ...]
    untrue: frozenset[int] = frozenset()


class CellResult(Struct, frozen=True, kw_only=True):
    """Results of a run.

    scores: by question id, in the dataset's order; kinds: those of each question, by name.
    finished: number of answered questions; factual_errors: for annotated questions (by id), whether the chain has an
    untrue sentence.
    chains: those that may be shown as examples (`cotrail.evaluation.experiments.ircot.examples`), by id.
    """

    cell: Cell
    run: str
    scores: Mapping[str, QuestionScores]
    kinds: Mapping[str, Mapping[str, str]]
    finished: int
    cost: Cost
    factual_errors: Mapping[str, bool] = {}
    chains: Mapping[str, ExampleChain] = {}
