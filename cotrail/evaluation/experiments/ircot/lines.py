"""Lines of results: means over their runs (IRCoT, section 4.1), and the rows and columns that tables have of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import Any

from msgspec.structs import replace

from cotrail.evaluation.experiments.ircot import cells
from cotrail.evaluation.experiments.report_tables import (
    Column,
    Mean,
    ReportTable,
    Share,
    TableRow,
    Value,
    merged_rows,
    shown_interval,
)
from cotrail.evaluation.experiments.sources import Layout
from cotrail.evaluation.metrics.answer_metrics import METRICS as ALL_METRICS
from cotrail.evaluation.metrics.repeated_scores import mean_and_deviation
from cotrail.evaluation.metrics.stop_rules import interval_of

CellResults = Sequence[cells.CellResult]
"""Results of several runs; of one line, there is one per demonstration set."""

METRICS: dict[cells.Goal, str] = {"retrieval": "paragraph_recall", "qa": "answer_f1"}
"""The metric that the paper reports for each goal, a field of `QuestionScores`."""


def runs_by_line(results: CellResults) -> dict[cells.Line, tuple[cells.CellResult, ...]]:
    """Group the runs on test questions by line, in the order of the results."""
    lines: dict[cells.Line, list[cells.CellResult]] = {}
    for result in results:
        if result.cell.stage == "test":
            lines.setdefault(result.cell.line, []).append(result)
    return {line: tuple(runs) for line, runs in lines.items()}


def is_answered(result: cells.CellResult) -> bool:
    """Return whether every question of a run has an answer; failed, open and unasked ones have none."""
    return result.finished == len(result.scores) + result.unasked


def mean_score(runs: CellResults, metric: str, kind: str | None = None) -> Mean | None:
    """Mean of a metric of `QuestionScores` over all questions or one kind; None where no question has it."""
    means = [fmean(scores) for run in runs if (scores := list(_scores(run, metric, kind).values()))]
    if not means:
        return None
    spread = mean_and_deviation(means)
    answered = all(map(is_answered, runs))
    computed = interval_of(is_fixed=not any(run.unasked for run in runs))
    reached = computed(ALL_METRICS[metric], tuple(question_means(runs, metric, kind).values()))
    interval = shown_interval(reached)
    return Mean(mean=spread.mean, deviation=spread.deviation, sets=len(means), answered=answered, interval=interval)


def question_means(runs: CellResults, metric: str, kind: str | None = None) -> dict[str, float]:
    """Mean of each question over the demonstration sets."""
    by_question: dict[str, list[float]] = {}
    for run in runs:
        for question, score in _scores(run, metric, kind).items():
            by_question.setdefault(question, []).append(score)
    return {question: fmean(scores) for question, scores in by_question.items()}


def annotated(runs: CellResults) -> Share | None:
    """Share of the annotated chains with an untrue sentence (figure 7); None where none is annotated."""
    marks = [untrue for run in runs for untrue in run.factual_errors.values()]
    return Share(count=sum(marks), of=len(marks)) if marks else None


def names_of(line: cells.Line) -> dict[str, Value]:
    """Label values of a line; no reader for retrieval, which needs none."""
    reader = None if line.goal == "retrieval" else line.reader
    return {
        "goal": line.goal,
        "place": cells.place_of(line),
        "model": line.model,
        "system": line.system,
        "reader": reader,
    }


def run_names(runs: CellResults) -> tuple[str, ...]:
    """The names of the runs in their experiment."""
    return tuple(run.cell.name for run in runs)


def by_place(
    layout: Layout, rows: Sequence[TableRow], *notes: str, order: Callable[[TableRow], Any] | None = None
) -> ReportTable | None:
    """A table with a column for each dataset of the own rows; None where they have none."""
    own = [row for row in rows if any(row.values[name] is not None for name in row.values.keys() - {*layout.labels})]
    values = [(name, value) for row in own for name, value in row.values.items() if name not in layout.labels]
    places = cells.in_order(name for name, value in values if value is not None)
    columns = [Column(place, cells.place_title(place), "score") for place in places]
    return layout.filled(own, *notes, across=columns, order=order)


def line_rows(
    results: CellResults,
    layout: Layout,
    goal: cells.Goal,
    values: Callable[[cells.Line, CellResults], Mapping[str, Value]],
    *,
    transfer: bool = False,
) -> list[TableRow]:
    """Merge all lines with equal labels into one row, which has the values of each of them.

    transfer: whether to take the lines with another dataset's demonstrations, or the others.
    """
    return merged_rows(
        ({label: getattr(line, label) for label in layout.labels}, values(line, runs), run_names(runs))
        for line, runs in runs_by_line(results).items()
        if line.goal == goal and (line.demonstrations != line.dataset) == transfer
    )


def _scores(run: cells.CellResult, metric: str, kind: str | None = None) -> Mapping[str, float]:
    """The questions of that kind that have the metric."""
    by_question = {
        question: scores[metric]
        for question, scores in run.scores.items()
        if kind is None or kind in run.kinds.get(question, {}).values()
    }
    return {question: score for question, score in by_question.items() if score is not None}


# Example chains of NoR, OneR and IRCoT side by side, for questions that a rule selects (IRCoT, tables 2 and 5).

EXAMPLES = 3
"""Number of questions shown per dataset and model, which the table's note says."""

UNTRUE_NOTE = "[untrue: ...] is a sentence that people found untrue (`cotrail annotate`)."

SIDE_BY_SIDE: tuple[str, ...] = ("no-retrieval", "one-step", "ircot")


def contrasts(results: CellResults) -> Iterator[tuple[CellResults, tuple[str, ...]]]:
    """Yield runs that differ only in their system, in the order of `SIDE_BY_SIDE`, and the questions to show of them.

    The runs have a chain-of-thought reader and the first demonstration set; the questions are those that IRCoT alone
    answers correctly, in the dataset's order.
    """
    lines = runs_by_line(results)
    for line in lines:
        if (line.goal, line.system, line.reader) == ("qa", "ircot", "cot") and line.demonstrations == line.dataset:
            compared = [lines.get(replace(line, system=system), ()) for system in SIDE_BY_SIDE]
            runs = tuple(run for of_line in compared for run in of_line if run.cell.demonstration_set == 1)
            if len(runs) == len(SIDE_BY_SIDE):
                yield runs, _told_apart(*runs)


def examples(results: CellResults) -> ReportTable | None:
    """Table of the selected questions with each system's chain (tables 2 and 5)."""
    rows = [row for runs, questions in contrasts(results) for row in _rows(runs, questions)]
    texts = (str(value) for row in rows for value in row.values.values())
    marked = any("[untrue:" in text for text in texts)
    return cells.LAYOUTS["examples"].filled(rows, *([UNTRUE_NOTE] if marked else []))


def _told_apart(without: cells.CellResult, once: cells.CellResult, interleaved: cells.CellResult) -> tuple[str, ...]:
    def right(run: cells.CellResult, question: str) -> bool:
        return question in run.scores and run.scores[question]["answer_em"] == 1

    return tuple(
        question
        for question in interleaved.scores
        if right(interleaved, question) and not right(once, question) and not right(without, question)
    )


def _rows(runs: CellResults, questions: Sequence[str]) -> Iterator[TableRow]:
    line = runs[-1].cell.line
    chained = (question for question in questions if all(question in run.chains for run in runs))
    for question in islice(chained, EXAMPLES):
        chains = [run.chains[question] for run in runs]
        question_text = chains[-1].question
        if answers := " / ".join(chains[-1].answers):
            question_text = f"{question_text} ({answers})"
        values: dict[str, Value] = dict(zip(SIDE_BY_SIDE, map(_written, chains), strict=True))
        yield TableRow(values={"place": line.dataset, "model": line.model, "question": question_text, **values})


def _written(chain: cells.ExampleChain) -> str:
    marked = (
        f"[untrue: {sentence}]" if position in chain.untrue else sentence
        for position, sentence in enumerate(chain.sentences)
    )
    return " ".join(marked)
