"""Tables of own results as in the IRCoT paper, next to what the paper reports."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import Any

from msgspec.structs import replace

from cotrail.evaluation.comparison.differences import compared_questions, differences_of
from cotrail.evaluation.experiments.costs import DOLLARS, PER_QUESTION_NOTE, SPENT_COLUMNS, STEPS, spent, totals
from cotrail.evaluation.experiments.ircot import cells
from cotrail.evaluation.experiments.report_tables import (
    Column,
    EMAndF1,
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

# Lines of results: means over their runs (IRCoT, section 4.1), and the rows and columns that tables have of them.

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


LineValues = Callable[[cells.Line, CellResults], Mapping[str, Value]]
"""What a table has of a line, by place."""

BASELINES = {"ircot": "one-step", "one-step": "no-retrieval"}
"""Which system is compared with which."""

TRIED_METRICS: dict[cells.Goal, tuple[str, ...]] = {
    "retrieval": ("paragraph_recall", "title_recall"),
    "qa": ("answer_f1", "tuning_f1"),
}
COUNTED_NOTE = "Some of these questions have no answer (yet): F1 counts them 0."
UNFIXED_NOTE = (
    "Without p are runs that go on or were ended early: compared are the first questions that have ended in all of "
    "them, and the interval holds at every stop."
)
SUPPORT = (
    *("paragraph_recall", "title_recall", "paragraph_precision", "paragraph_f1", "paragraph_em"),
    "answer_support_recall",
)


def build_tables(results: Sequence[cells.CellResult]) -> tuple[ReportTable, ...]:
    """Build all tables for which there are results, that of unanswered questions first."""
    tables = (
        cells.LAYOUTS["unanswered"].filled([_unanswered(run) for run in results if not is_answered(run)]),
        by_place(cells.LAYOUTS["answers"], line_rows(results, cells.LAYOUTS["answers"], "qa", _agreement)),
        readers(results),
        without_reader(results),
        by_place(cells.LAYOUTS["recall"], line_rows(results, cells.LAYOUTS["recall"], "retrieval", _recall)),
        transferred("transferred_recall", results, "retrieval", _recall),
        transferred("transferred_answers", results, "qa", _answer_f1),
        differences(results),
        errors(results),
        examples(results),
        support(results),
        searched(results),
        costs(results),
        totals({stage: [run.cost for run in results if run.cell.stage == stage] for stage in ("search", "test")}),
    )
    return tuple(replace(table, names=cells.names_in(table)) for table in tables if table)


def readers(results: CellResults) -> ReportTable | None:
    """F1 of answers by system, reader and model (table 4)."""
    layout = cells.LAYOUTS["readers"]
    own = [row for row in line_rows(results, layout, "qa", _answer_f1) if row.values["reader"] != "none"]
    kinds = {_kind(row) for row in own}
    theirs = tuple(row for row in layout.rows if _kind(row) in kinds)
    return by_place(replace(layout, rows=theirs), own, order=_rank)


def without_reader(results: CellResults) -> ReportTable | None:
    """F1 of IRCoT's answers with a reader, and as its own chain states them (table 6)."""
    layout = cells.LAYOUTS["without_reader"]
    rows = line_rows([run for run in results if run.cell.line.system == "ircot"], layout, "qa", _answer_f1)
    models = {row.values["model"] for row in rows if row.values["reader"] == "none"}
    return by_place(layout, [row for row in rows if row.values["model"] in models])


def transferred(name: str, results: CellResults, goal: cells.Goal, values: LineValues) -> ReportTable | None:
    """Scores with another dataset's demonstrations (figures 5 and 6); a note explains the pairs in the headings."""
    own = line_rows(results, cells.LAYOUTS[name], goal, values, transfer=True)
    datasets = cells.in_order(each for row in own for place in row.values if "→" in place for each in place.split("→"))
    names = ", ".join(f"{cells.dataset_short(each)} is {cells.place_title(each)}" for each in datasets)
    return by_place(cells.LAYOUTS[name], own, f"X→Y: demonstrations of X, questions and corpus of Y; {names}.")


def differences(results: CellResults) -> ReportTable | None:
    """Differences between each system and the next simpler one, next to those of section 5."""
    layout, lines = cells.LAYOUTS["differences"], runs_by_line(results)
    pairs = [
        (line, runs, others)
        for line, runs in lines.items()
        if (others := lines.get(replace(line, system=BASELINES.get(line.system, ""))))
    ]
    own = [row for pair in pairs if (row := _difference(*pair))]
    compared = [run for _, runs, others in pairs for run in (*runs, *others)]
    notes = [
        *([] if all(map(is_answered, compared)) else [COUNTED_NOTE]),
        *([] if all(run.reach.is_fixed for run in compared) else [UNFIXED_NOTE]),
    ]
    # Published are only those of IRCoT, for the datasets and metrics that own rows compare it by.
    own_places = {(row.values["metric"], row.values["place"]) for row in own if row.values["system"] == "ircot"}
    theirs = tuple(row for row in layout.rows if (row.values["metric"], row.values["place"]) in own_places)
    places = cells.in_order(str(row.values["place"]) for row in own)

    def order(row: TableRow) -> tuple[str, int]:
        return str(row.values["metric"]), places.index(str(row.values["place"]))

    return replace(layout, rows=theirs).filled(own, *notes, order=order)


def errors(results: CellResults) -> ReportTable | None:
    """Share of the annotated chains with an untrue sentence (figure 7)."""
    goals: tuple[cells.Goal, ...] = ("qa", "retrieval")
    own = [row for goal in goals for row in line_rows(results, cells.LAYOUTS["errors"], goal, _untrue)]
    return by_place(cells.LAYOUTS["errors"], own)


def support(results: CellResults) -> ReportTable | None:
    """All metrics of the collected paragraphs, by line."""
    metrics = (*SUPPORT, "paragraphs_collected")
    rows = [
        TableRow(
            values=names_of(line) | _tried(runs[0]) | {name: mean_score(runs, name) for name in metrics},
            runs={"paragraph_recall": run_names(runs)},
        )
        for line, runs in runs_by_line(results).items()
        if line.system != "no-retrieval" and mean_score(runs, "paragraph_recall")
    ]
    return cells.LAYOUTS["support"].filled(rows, across=_metric_columns(metrics))


def searched(results: CellResults) -> ReportTable | None:
    """The search runs by which K and M were chosen (section 4.1)."""
    tried = [run for run in results if run.cell.stage == "search"]
    taken = {_choice(run) for run in results if run.cell.stage == "test"}
    rows = [
        TableRow(
            values=names_of(run.cell.line)
            | _tried(run)
            | {name: mean_score((run,), name) for name in TRIED_METRICS[run.cell.line.goal]},
            chosen=_choice(run) in taken,
            runs={TRIED_METRICS[run.cell.line.goal][0]: (run.cell.name,)},
        )
        for run in tried
    ]
    metrics = [name for names in TRIED_METRICS.values() for name in names]
    undecided = {run.cell.line for run in tried} - {line for line, _, _ in taken}
    notes = ("Lines without a chosen row haven't chosen yet.",) if undecided else ()
    return cells.LAYOUTS["search"].filled(rows, *notes, across=_metric_columns(metrics))


def costs(results: CellResults) -> ReportTable | None:
    """Average cost of an answered question, by line."""
    rows = [
        TableRow(
            values=names_of(line) | spent([run.cost for run in runs], sum(run.finished for run in runs)),
            runs={"steps": run_names(runs)},
        )
        for line, runs in runs_by_line(results).items()
    ]
    return cells.LAYOUTS["costs"].filled(rows, PER_QUESTION_NOTE, across=(*SPENT_COLUMNS, DOLLARS, *STEPS))


def _unanswered(run: cells.CellResult) -> TableRow:
    return TableRow(
        values={
            "cell": run.cell.name,
            "run": run.run,
            "finished": run.finished,
            "questions": len(run.scores) + run.unasked,
            "unasked": run.unasked or None,
        }
    )


def _agreement(line: cells.Line, runs: CellResults) -> dict[str, Value]:
    """EM and F1 on the dataset and on those of its subsets that have questions."""
    kinds = {name: each.kind for name, each in cells.NAMES.subsets.items() if each.dataset == line.dataset}
    pairs = {
        place: EMAndF1(em=mean_score(runs, "answer_em", kind), f1=mean_score(runs, "answer_f1", kind))
        for place, kind in (*kinds.items(), (line.dataset, None))
    }
    return {place: pair for place, pair in pairs.items() if pair.f1}


def _answer_f1(line: cells.Line, runs: CellResults) -> dict[str, Value]:
    return {cells.place_of(line): mean_score(runs, "answer_f1")}


def _recall(line: cells.Line, runs: CellResults) -> dict[str, Value]:
    return {cells.place_of(line): mean_score(runs, "paragraph_recall")}


def _untrue(line: cells.Line, runs: CellResults) -> dict[str, Value]:
    return {cells.place_of(line): annotated(runs)}


def _difference(line: cells.Line, runs: CellResults, others: CellResults) -> TableRow | None:
    """The difference of two lines that differ only in their system, over the questions that all their runs have."""
    metric = METRICS[line.goal]
    ours, theirs = question_means(runs, metric), question_means(others, metric)
    found = compared_questions([run.reach for run in (*runs, *others)])
    shared = [question for question in found.keys if question in ours and question in theirs]
    if not shared:
        return None
    family = [[ours[q] - theirs[q] for q in shared]]
    [compared] = differences_of(family, ALL_METRICS[metric].span, is_fixed=found.is_fixed)
    values: dict[str, Value] = {
        "metric": metric,
        "against": BASELINES[line.system],
        "difference": compared.mean,
        "interval": shown_interval(compared.interval),
        "p_value": compared.corrected,
        "questions": len(shared),
    }
    return TableRow(values=names_of(line) | values, runs={"difference": run_names((*runs, *others))})


def _choice(run: cells.CellResult) -> tuple[cells.Line, int | None, int | None]:
    return run.cell.line, run.cell.retrieval_count, run.cell.distractors


def _tried(run: cells.CellResult) -> dict[str, Value]:
    return {"retrieval_count": run.cell.retrieval_count, "distractors": run.cell.distractors}


def _kind(row: TableRow) -> tuple[Value, Value]:
    return row.values["system"], row.values["reader"]


def _rank(row: TableRow) -> tuple[int, ...]:
    """Systems and readers in the paper's order, then those that it doesn't have."""
    orders = zip((tuple(cells.SYSTEMS), tuple(cells.READERS)), map(str, _kind(row)), strict=True)
    return tuple(order.index(name) if name in order else len(order) for order, name in orders)


def _metric_columns(names: Sequence[str]) -> tuple[Column, ...]:
    metrics = (ALL_METRICS[name] for name in names)
    return tuple(Column(each.name, each.title, "decimal" if each.is_count else "mean") for each in metrics)
