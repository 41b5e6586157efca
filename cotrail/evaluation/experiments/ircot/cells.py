"""Cells of an IRCoT experiment: one run each, with the parameters that it varies and its results."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Literal

import msgspec
from msgspec import Struct

from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.experiments.costs import Cost
from cotrail.evaluation.experiments.report_tables import Mean, ReportTable, Shade, TableRow
from cotrail.evaluation.experiments.sources import Method, PublishedRow, PublishedTable, Source, printed
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.systems.parts.reading import Reader

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
    """A question's chain of thought, for an example next to those of other systems.

    answers: the dataset's; untrue: positions of the sentences that annotators marked untrue, from 0.
    """

    question: str
    answers: tuple[str, ...]
    sentences: tuple[str, ...]
    untrue: frozenset[int] = frozenset()


class CellResult(Struct, frozen=True, kw_only=True):
    """Results of a run.

    scores: by question id, in the dataset's order; kinds: those of each question, by name.
    finished: number of answered questions; unasked: of those that were cancelled or left over by a budget, which have
    no scores; reach: how far it is with all of them. factual_errors: for annotated questions (by id), whether the chain
    has an untrue sentence.
    chains: those that may be shown as examples (`cotrail.evaluation.experiments.ircot.tables`), by id.
    """

    cell: Cell
    run: str
    scores: Mapping[str, QuestionScores]
    kinds: Mapping[str, Mapping[str, str]]
    finished: int
    cost: Cost
    reach: Reach
    unasked: int = 0
    factual_errors: Mapping[str, bool] = {}
    chains: Mapping[str, ExampleChain] = {}


# What the paper prints: its tables, and its names of what it measures.

PRINTED = printed("ircot")
LAYOUTS = PRINTED.layouts


class Dataset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The paper's names for a dataset: in full, and in figures 5 and 6."""

    title: str
    short: str


class Subset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a dataset that the paper scores separately: the questions of one kind."""

    title: str
    dataset: str
    kind: str


class Names(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the paper distinguishes.

    datasets: in the paper's order; parameters: number of a model's parameters in billions, in ascending order.
    readers: the reader of each model in the figures (section 4.2).
    """

    datasets: Mapping[str, Dataset]
    subsets: Mapping[str, Subset]
    parameters: Mapping[str, float]
    readers: Mapping[str, Reader]


NAMES = msgspec.convert(PRINTED.names, Names)


def printed_means(row: TableRow) -> dict[str, float]:
    """The means that a row of the paper has, by dataset."""
    return {place: value.mean for place, value in row.values.items() if isinstance(value, Mean)}


# Display names of systems, readers, datasets and models in reports, as in the IRCoT paper where it has them.

SYSTEMS = {"no-retrieval": "NoR", "one-step": "OneR", "ircot": "IRCoT"}
"""The names that the paper's tables print (`SystemSpec.title`), in the order of its figures."""

SHADES: dict[str, Shade] = {"no-retrieval": "light", "one-step": "middle", "ircot": "strong"}
"""How the systems stand out in figures."""

GOALS = {"retrieval": "paragraph recall", "qa": "answers"}
"""Display names of the criteria for choosing K and M."""

READERS = {"direct": "direct", "cot": "CoT", "none": "no reader"}

_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_SEPARATOR = re.compile("[-_ ]")


def names_in(table: ReportTable) -> dict[str, str]:
    """Display names of the goals, systems, readers, places and metrics in a table."""
    titles: dict[str, Callable[[str], str | None]] = {
        "goal": GOALS.get,
        "system": SYSTEMS.get,
        "reader": READERS.get,
        "metric": lambda name: METRICS[name].title,
        "place": place_title,
    }
    pairs = ((str(row.values[c.name]), titles[c.unit]) for row in table.rows for c in table.columns if c.unit in titles)
    return {value: title for value, title_of in pairs if (title := title_of(value)) not in (None, value)}


def place_title(place: str) -> str:
    """The title of a dataset, of a subset (`hotpotqa_bridge`) or of a pair that `place_of` names."""
    if place in NAMES.subsets:
        return NAMES.subsets[place].title
    if "→" in place:
        return "→".join(dataset_short(dataset) for dataset in place.split("→"))
    return NAMES.datasets[place].title if place in NAMES.datasets else place


def dataset_short(dataset: str) -> str:
    """The dataset's short name in figures 5 and 6, or its own name."""
    dataset_names = NAMES.datasets.get(dataset)
    return dataset_names.short if dataset_names else dataset


def place_of(line: Line) -> str:
    """The dataset of a line's scores, or `X→Y` for X's demonstrations on Y's questions (figure 5)."""
    return line.dataset if line.demonstrations == line.dataset else f"{line.demonstrations}→{line.dataset}"


def in_order(places: Iterable[str]) -> list[str]:
    """Sort datasets by the paper's order, each after its subsets; unknown ones come last, in the given order."""
    order = []
    for dataset in NAMES.datasets:
        order += [name for name, subset in NAMES.subsets.items() if subset.dataset == dataset]
        order.append(dataset)
    ranks = {name: rank for rank, name in enumerate(order)}
    return sorted(dict.fromkeys(places), key=lambda place: [ranks.get(each, len(ranks)) for each in place.split("→")])


def model_key(model: str) -> str:
    """Key that is equal for different names of the same model, such as `google/flan-t5-xl` and `Flan-T5-XL`."""
    return _SEPARATOR.sub("", model.rsplit("/", 1)[-1].lower())


def parameters(model: str) -> float | None:
    """A model's parameters in billions, if its name contains them (`smollm2-135m`) or is in figure 8 (`Flan-T5-XL`)."""
    for name, size in NAMES.parameters.items():
        if model_key(model) == model_key(name):
            return size
    if match := _SIZE.search(model):
        return float(match[1]) / (1000 if match[2] in "mM" else 1)
    return None


@cache
def ircot() -> Source:
    """Answer F1 (tables 4 and 6) as a source of figures for comparisons."""
    return Source(
        name="ircot",
        title="IRCoT",
        cited="IRCoT: Trivedi et al., 2023 (aclanthology.org/2023.acl-long.557)",
        tables=tuple(_table(where, LAYOUTS[name].rows) for name, where in TABLES_OF_F1.items()),
        notes=("Published F1 is the mean of three demonstration sets. K was chosen on 100 other questions.",),
    )


TABLES_OF_F1 = {"readers": "table 4", "without_reader": "table 6"}


def _table(where: str, rows: Iterable[TableRow]) -> PublishedTable:
    return PublishedTable(
        name=where.replace(" ", "-"),
        heading="Answer F1",
        where=where,
        metric="answer_f1",
        datasets=tuple(NAMES.datasets),
        rows=tuple(map(_row, rows)),
    )


def _row(row: TableRow) -> PublishedRow:
    searched = {"hotpotqa": "its abstracts of Wikipedia (BM25)", "others": "the dataset's paragraphs (BM25)"}
    system, reader, model = (str(row.values.get(name)) for name in ("system", "reader", "model"))
    return PublishedRow(
        label=f"{SYSTEMS[system]}, {READERS[reader]}",
        where=row.published,
        methods=(Method(system=system, settings={"reading": {"reader": reader}}),),
        backbone=model,
        corpus="" if system == "no-retrieval" else searched,
        questions="500",
        scores=printed_means(row),
    )
