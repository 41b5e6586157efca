"""Tables of own results as in the IRCoT paper, beside what the paper reports."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cotrail.common.humanize import percent
from cotrail.evaluation.comparison.differences import compared_questions, differences_of
from cotrail.evaluation.experiments.costs import DOLLARS, PER_QUESTION_NOTE, SPENT_COLUMNS, STEPS, spent, totals
from cotrail.evaluation.experiments.ircot.cells import (
    READERS,
    SYSTEMS,
    CellResult,
    Goal,
    Line,
    dataset_short,
    in_order,
    names_in,
    place_of,
    place_title,
)
from cotrail.evaluation.experiments.ircot.lines import (
    GOAL,
    METRICS,
    MODEL,
    PLACE,
    READER,
    SYSTEM,
    CellResults,
    annotated,
    examples,
    is_answered,
    line_rows,
    matrix,
    mean_score,
    names_of,
    question_means,
    run_names,
    runs_by_line,
)
from cotrail.evaluation.experiments.ircot.published import published
from cotrail.evaluation.experiments.report_tables import (
    Column,
    EMAndF1,
    Interval,
    Mean,
    ReportTable,
    TableRow,
    Value,
    listing,
)
from cotrail.evaluation.metrics.registry import METRICS as ALL_METRICS

BASELINES = {"ircot": "one-step", "one-step": "no-retrieval"}
"""Which system is compared with which."""

CHOSEN_COLUMNS = (Column("retrieval_count", "K", "count"), Column("distractors", "M", "count"))
TRIED_METRICS: dict[Goal, tuple[str, ...]] = {
    "retrieval": ("paragraph_recall", "title_recall"),
    "qa": ("answer_f1", "tuning_f1"),
}
SUPPORT = (
    "paragraph_recall",
    "title_recall",
    "paragraph_precision",
    "paragraph_f1",
    "paragraph_em",
    "answer_support_recall",
)
UNANSWERED = (
    Column("cell", "In the experiment"),
    Column("run", "Run"),
    Column("finished", "Answered", "count"),
    Column("questions", "Questions", "count"),
    Column("unasked", "Not asked", "count"),
)
DIFFERENCE = (
    Column("metric", "Metric", "metric"),
    PLACE,
    SYSTEM,
    Column("against", "against", "system"),
    MODEL,
    READER,
    Column("difference", "Difference", "gain"),
    Column("interval", "95 % interval", "gain"),
    Column("p_value", "p", "probability"),
    Column("questions", "Questions", "count"),
)


def build_tables(results: Sequence[CellResult]) -> tuple[ReportTable, ...]:
    """Build all tables for which there are results, that of unanswered questions first."""
    tables = (
        unanswered(results),
        leaderboard(results),
        readers(results),
        without_reader(results),
        recall(results),
        transferred_recall(results),
        transferred_answers(results),
        differences(results),
        errors(results),
        examples(results),
        support(results),
        searched(results),
        costs(results),
        totals({stage: [run.cost for run in results if run.cell.stage == stage] for stage in ("search", "test")}),
    )
    return tuple(replace(table, names=names_in(table)) for table in tables if table)


def unanswered(results: CellResults) -> ReportTable | None:
    """Runs with unanswered questions."""
    rows = [
        TableRow(
            values={
                "cell": run.cell.name,
                "run": run.run,
                "finished": run.finished,
                "questions": len(run.scores) + run.unasked,
                "unasked": run.unasked or None,
            }
        )
        for run in results
        if not is_answered(run)
    ]
    return listing("unanswered", "Runs with questions that have no answer", UNANSWERED, rows)


def leaderboard(results: CellResults) -> ReportTable | None:
    """EM and F1 of answers (tables 1 and 3)."""
    labels = (SYSTEM, MODEL, READER)
    theirs = [
        TableRow(
            values={"system": rival.system, "model": rival.model, "reader": rival.reader}
            | {place: EMAndF1(em=_reported(each.em), f1=_reported(each.f1)) for place, each in rival.scores.items()},
            published=f"{rival.where} ({rival.reference})" if rival.reference else rival.where,
        )
        for rival in published().leaderboard
    ]
    note = "The published systems had other corpora, search engines and models, and other questions of these datasets."
    own = line_rows(results, "qa", labels, _agreement)
    return matrix("answers", "Answers, EM | F1 (tables 1 and 3)", labels, own, theirs, notes=(note,))


def readers(results: CellResults) -> ReportTable | None:
    """F1 of answers by system, reader and model (table 4)."""
    labels = (SYSTEM, READER, MODEL)
    own = [row for row in line_rows(results, "qa", labels, _answer_f1) if row.values["reader"] != "none"]
    kinds = {_kind(row) for row in own}
    theirs = [row for row in _published_f1("table 4") if _kind(row) in kinds]
    return matrix("readers", "Answer F1 by system and reader (table 4)", labels, own, theirs, order=_rank)


def without_reader(results: CellResults) -> ReportTable | None:
    """F1 of IRCoT's answers with a reader, and as its own chain states them (table 6)."""
    labels = (MODEL, READER)
    rows = line_rows([run for run in results if run.cell.line.system == "ircot"], "qa", labels, _answer_f1)
    models = {row.values["model"] for row in rows if row.values["reader"] == "none"}
    own = [row for row in rows if row.values["model"] in models]
    title = "Answer F1 of IRCoT with and without a separate reader (table 6)"
    return matrix("without_reader", title, labels, own, list(_published_f1("table 6")))


def recall(results: CellResults) -> ReportTable | None:
    """Paragraph recall (figure 3)."""
    own = line_rows(results, "retrieval", (MODEL, SYSTEM), _recall)
    return matrix("recall", "Paragraph recall (figure 3)", (MODEL, SYSTEM), own)


def transferred_recall(results: CellResults) -> ReportTable | None:
    """Recall with another dataset's demonstrations (figure 5)."""
    own = line_rows(results, "retrieval", (MODEL, SYSTEM), _recall, transfer=True)
    title = "Recall of gold paragraphs out of distribution (figure 5)"
    return matrix("transferred_recall", title, (MODEL, SYSTEM), own, notes=_pairs(own))


def transferred_answers(results: CellResults) -> ReportTable | None:
    """F1 of answers with another dataset's demonstrations (figure 6)."""
    labels = (MODEL, READER, SYSTEM)
    own = line_rows(results, "qa", labels, _answer_f1, transfer=True)
    title = "Answer F1 out of distribution (figure 6)"
    return matrix("transferred_answers", title, labels, own, notes=_pairs(own))


def differences(results: CellResults) -> ReportTable | None:
    """Differences between each system and the next simpler one, beside those of section 5."""
    lines = runs_by_line(results)
    pairs = [
        (line, runs, others)
        for line, runs in lines.items()
        if (others := lines.get(replace(line, system=BASELINES.get(line.system, ""))))
    ]
    own = [row for pair in pairs if (row := _difference(*pair))]
    notes = [
        "Interval and p by Gaffke's bounds (exact for scores of 0 and 1) over questions, a question's score being its "
        "mean over the demonstration sets; not corrected for the number of comparisons."
    ]
    if not all(is_answered(run) for _, runs, others in pairs for run in (*runs, *others)):
        notes.append("Some of these questions have no answer (yet): F1 counts them 0.")
    if not all(run.reach.is_fixed for _, runs, others in pairs for run in (*runs, *others)):
        notes.append(
            "Without p are runs that go on or were ended early: compared are the first questions that have ended in "
            "all of them, and the interval holds at every stop."
        )
    rows = [*own, *_published_differences(own)]
    places = in_order(str(row.values["place"]) for row in own)
    rows.sort(key=lambda row: (str(row.values["metric"]), places.index(str(row.values["place"]))))
    title = "Differences between systems on the same questions (section 5)"
    return listing("differences", title, DIFFERENCE, rows, notes=notes)


def errors(results: CellResults) -> ReportTable | None:
    """Share of the annotated chains with an untrue sentence (figure 7)."""
    labels = (MODEL, READER, SYSTEM)
    goals: tuple[Goal, ...] = ("qa", "retrieval")
    own = [row for goal in goals for row in line_rows(results, goal, labels, _untrue)]
    reported = [
        f"{percent(share, 0)} fewer on {place_title(place)}"
        for each in published().error_reductions
        for place, share in each.scores.items()
    ]
    note = f"The paper reports for IRCoT against OneR, with GPT3 on 40 questions each: {', '.join(reported)}."
    return matrix("errors", "Chains with an untrue sentence, of those annotated (figure 7)", labels, own, notes=(note,))


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
    columns = (GOAL, PLACE, MODEL, SYSTEM, READER, *CHOSEN_COLUMNS, *_metric_columns(metrics))
    return listing("support", "The collected paragraphs", columns, rows)


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
    columns = (GOAL, PLACE, MODEL, SYSTEM, READER, *CHOSEN_COLUMNS, *_metric_columns(metrics))
    undecided = {run.cell.line for run in tried} - {line for line, _, _ in taken}
    notes = ("Lines without a chosen row haven't chosen yet.",) if undecided else ()
    return listing("search", "The choice of K and M on the development questions", columns, rows, notes=notes)


def costs(results: CellResults) -> ReportTable | None:
    """Average cost of an answered question, by line."""
    rows = [
        TableRow(
            values=names_of(line) | spent([run.cost for run in runs], sum(run.finished for run in runs)),
            runs={"steps": run_names(runs)},
        )
        for line, runs in runs_by_line(results).items()
    ]
    columns = (GOAL, PLACE, MODEL, SYSTEM, READER, *SPENT_COLUMNS, DOLLARS, *STEPS)
    return listing("costs", "What a question costs", columns, rows, notes=(PER_QUESTION_NOTE,))


def _agreement(line: Line, runs: CellResults) -> dict[str, Value]:
    """EM and F1 on the dataset and on those of its subsets that have questions."""
    kinds = {name: each.kind for name, each in published().subsets.items() if each.dataset == line.dataset}
    pairs = {
        place: EMAndF1(em=mean_score(runs, "answer_em", kind), f1=mean_score(runs, "answer_f1", kind))
        for place, kind in (*kinds.items(), (line.dataset, None))
    }
    return {place: pair for place, pair in pairs.items() if pair.f1}


def _answer_f1(line: Line, runs: CellResults) -> dict[str, Value]:
    return {place_of(line): mean_score(runs, "answer_f1")}


def _recall(line: Line, runs: CellResults) -> dict[str, Value]:
    return {place_of(line): mean_score(runs, "paragraph_recall")}


def _untrue(line: Line, runs: CellResults) -> dict[str, Value]:
    return {place_of(line): annotated(runs)}


def _difference(line: Line, runs: CellResults, others: CellResults) -> TableRow | None:
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
        "interval": Interval(low=compared.interval.low, high=compared.interval.high) if compared.interval else None,
        "p_value": compared.corrected,
        "questions": len(shared),
    }
    return TableRow(values=names_of(line) | values, runs={"difference": run_names((*runs, *others))})


def _pairs(rows: Sequence[TableRow]) -> tuple[str, ...]:
    """Note that explains the pairs of datasets in the headings."""
    datasets = in_order(name for row in rows for place in row.values if "→" in place for name in place.split("→"))
    names = ", ".join(f"{dataset_short(name)} is {place_title(name)}" for name in datasets)
    return (f"X→Y: demonstrations of X, questions and corpus of Y; {names}.",)


def _choice(run: CellResult) -> tuple[Line, int | None, int | None]:
    return run.cell.line, run.cell.retrieval_count, run.cell.distractors


def _tried(run: CellResult) -> dict[str, Value]:
    return {"retrieval_count": run.cell.retrieval_count, "distractors": run.cell.distractors}


def _published_f1(where: str) -> Iterator[TableRow]:
    for each in published().answer_f1:
        if each.where == where:
            scores = {place: Mean(mean=mean, deviation=spread) for place, (mean, spread) in each.scores.items()}
            yield TableRow(
                values={"system": each.system, "reader": each.reader, "model": each.model, **scores}, published=where
            )


def _published_differences(own: Sequence[TableRow]) -> Iterator[TableRow]:
    """Differences of section 5 for the datasets and metrics that the own rows compare."""
    own_places = {(row.values["metric"], row.values["place"]) for row in own if row.values["system"] == "ircot"}
    for each in published().differences:
        for place, points in each.scores.items():
            if (each.metric, place) in own_places:
                reader = None if each.metric == "paragraph_recall" else each.reader
                labels = {"metric": each.metric, "place": place, "model": each.model, "reader": reader}
                compared = {"system": "ircot", "against": "one-step"}
                yield TableRow(values={**labels, **compared, "difference": points}, published=each.where)


def _reported(score: float | None) -> Mean | None:
    return None if score is None else Mean(mean=score)


def _kind(row: TableRow) -> tuple[Value, Value]:
    return row.values["system"], row.values["reader"]


def _rank(row: TableRow) -> tuple[int, ...]:
    """Systems and readers in the paper's order, then those that it doesn't have."""
    orders = zip((tuple(SYSTEMS), tuple(READERS)), map(str, _kind(row)), strict=True)
    return tuple(order.index(name) if name in order else len(order) for order, name in orders)


def _metric_columns(names: Sequence[str]) -> tuple[Column, ...]:
    metrics = (ALL_METRICS[name] for name in names)
    return tuple(Column(each.name, each.title, "decimal" if each.is_count else "mean") for each in metrics)
