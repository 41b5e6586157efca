"""Tables of own results as in the IRCoT paper, next to what the paper reports."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from cotrail.evaluation.comparison.differences import compared_questions, differences_of
from cotrail.evaluation.experiments.costs import DOLLARS, PER_QUESTION_NOTE, SPENT_COLUMNS, STEPS, spent, totals
from cotrail.evaluation.experiments.ircot import cells
from cotrail.evaluation.experiments.ircot.lines import (
    METRICS,
    CellResults,
    annotated,
    by_place,
    examples,
    is_answered,
    line_rows,
    mean_score,
    names_of,
    question_means,
    run_names,
    runs_by_line,
)
from cotrail.evaluation.experiments.report_tables import Column, EMAndF1, ReportTable, TableRow, Value, shown_interval
from cotrail.evaluation.metrics.answer_metrics import METRICS as ALL_METRICS

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
    "paragraph_recall",
    "title_recall",
    "paragraph_precision",
    "paragraph_f1",
    "paragraph_em",
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
