"""Tables of own runs as in Rethinking with Retrieval, next to what the paper reports, and the effect of N."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from msgspec.structs import asdict

from cotrail.common.humanize import count
from cotrail.data.datasets.registry import TASK_OF
from cotrail.evaluation.experiments import report_tables
from cotrail.evaluation.experiments.costs import spending
from cotrail.evaluation.experiments.rethinking.runs import (
    Method,
    RethinkingRun,
    accuracy_of,
    chain_alone,
    contrast,
    faithfulness_of,
    growth,
)
from cotrail.evaluation.experiments.sources import printed, source
from cotrail.faithfulness.tasks import Task

MethodRuns = Sequence[RethinkingRun]
LabelledRuns = Sequence[tuple[str, RethinkingRun]]
"""Runs with the labels of their rows."""

PRINTED = printed("rethinking", places=TASK_OF)
LAYOUTS = PRINTED.layouts

METHODS = {method.system: row.label for row in source("rethinking").table("methods").rows for method in row.methods}
"""The systems, in the order of table 1."""

TASKS: Mapping[Task, str] = PRINTED.names["tasks"]

NOTES: Mapping[str, str] = PRINTED.names["notes"]

WITH_FACTS = "strategyqa-facts"
"""The dataset whose questions show their annotators' facts, which only table 7 is about."""

QUERIED, VARIANTS, READINGS = (PRINTED.names[each] for each in ("queried", "variants", "readings"))
KNOWLEDGE_NAMES = {(True, False): "External", (False, True): "Background", (True, True): "Background + External"}
CHAIN_ALONE = "A sampled chain alone"
EMPTY, GOLD, GENERATED = "Empty facts", "Gold facts", "Generated facts"


def comparison(runs: MethodRuns) -> report_tables.ExperimentReport:
    """Any runs of the paper's methods; the figure has a panel for each with several chains."""
    return _report(f"{count(len(runs), 'run')}.", runs, runs)


def report(runs: MethodRuns) -> report_tables.ExperimentReport:
    """The tables of an experiment; the figure has a panel for each run of the basic approach."""
    return _report(
        report_tables.summary_of([run.is_answered for run in runs]), runs, [run for run in runs if run.method.is_basic]
    )


def _report(summary: str, runs: MethodRuns, drawn: MethodRuns) -> report_tables.ExperimentReport:
    """The tables of these runs; drawn: those that have a panel in the figure."""
    tables, plot = build_tables(runs), chains_chart(drawn)
    is_beside = any(row.published for table in tables for row in table.rows)
    said = f"{summary} {PRINTED.said}" if is_beside else summary
    return report_tables.ExperimentReport(summary=said, tables=tables, plots=(plot,) if plot else ())


def build_tables(runs: MethodRuns) -> tuple[report_tables.ReportTable, ...]:
    """Build all tables for which there are runs; those with published figures only of runs on the paper's datasets."""
    comparable = [run for run in runs if run.dataset in TASK_OF]
    own_questions = (NOTES["own_questions"],) if len(comparable) < len(runs) else ()
    unfixed = (NOTES["unfixed"],) if any(run.unasked for run in runs) else ()
    tables = (
        LAYOUTS["runs"].filled([_overview(run) for run in runs], *own_questions),
        _by_task("methods", [(title, run) for run in comparable if (title := _method(run))]),
        _by_task("retrieval", [(QUERIED[run.method.query], run) for run in comparable if _is_whole(run)]),
        _by_task("knowledge", [(label, run) for run in comparable if (label := _tabular(run))]),
        _variants(comparable),
        _inferences(comparable),
        LAYOUTS["chains"].filled([row for run in runs for row in _growing(run)]),
        LAYOUTS["contrasts"].filled([row for pair in combinations(runs, 2) for row in _contrasted(*pair)], *unfixed),
        *spending([(run.id, run.cost, run.answered) for run in runs]),
    )
    return tuple(table for table in tables if table)


def _variants(runs: MethodRuns) -> report_tables.ReportTable | None:
    """Accuracy and faithfulness of the variants (table 5)."""
    commonsense = [run for run in runs if run.task == "commonsense" and run.dataset != WITH_FACTS]
    placed = [(label, run) for run in commonsense if (label := _variant(run.method))]
    if not any(run.method.system == "rethinking" for _, run in placed):
        return None
    own = [
        _own(label, run, {"accuracy": accuracy_of(run).share, "faithfulness": faithfulness_of(run)} | _infers(run))
        for label, run in placed
    ]
    alone = [row for label, run in placed if label.startswith("Basic") for row in _alone(run)]
    return LAYOUTS["variants"].filled([*own, *alone], *([NOTES["chain_alone"]] if alone else []))


def _inferences(runs: MethodRuns) -> report_tables.ReportTable | None:
    """Final inference from facts (table 7), if a run generates them or is given the annotators'."""
    placed = [(label, run) for run in runs if run.task == "commonsense" and (label := _given(run))]
    if all(label == EMPTY for label, _ in placed):
        return None
    scored = ((label, run, accuracy_of(run).share) for label, run in placed)
    return LAYOUTS["inference"].filled(
        [_own(label, run, {"accuracy": share, "model": _inferring(run)}) for label, run, share in scored]
    )


def chains_chart(runs: MethodRuns) -> report_tables.Chart | None:
    """Chart of the effect of the number of chains, a panel per run; None where no run has several chains."""
    panels = tuple(panel for run in runs if (panel := _panel(run)))
    if not panels:
        return None
    return report_tables.Chart(
        name="chains",
        title="The effect of the number of chains",
        axis="Accuracy (%)",
        kind="lines",
        panels=panels,
        across="Chains",
    )


def _method(run: RethinkingRun) -> str | None:
    if run.dataset == WITH_FACTS:
        return None
    if run.method.system != "rethinking":
        return METHODS.get(run.method.system)
    return METHODS["rethinking"] if _is_whole(run) and run.method.query == "sentence" else None


def _is_whole(run: RethinkingRun) -> bool:
    """Return whether the run is table 1's basic approach: without annotated evidence, and with all knowledge."""
    is_part = run.task == "tabular" and _knowledge(run.method) in (
        KNOWLEDGE_NAMES[True, False],
        KNOWLEDGE_NAMES[False, True],
    )
    return run.method.is_basic and not (run.method.has_evidence or run.method.is_greedy or is_part)


def _tabular(run: RethinkingRun) -> str | None:
    """What a tabular run of the basic approach is given to know, under table 4's label."""
    is_one = run.task == "tabular" and run.method.is_basic and run.method.query == "sentence"
    return _knowledge(run.method) if is_one else None


def _knowledge(method: Method) -> str | None:
    kinds = set(method.knowledge)
    return KNOWLEDGE_NAMES.get((not kinds.isdisjoint({"wordnet", "conceptnet"}), "table" in kinds))


def _variant(method: Method) -> str | None:
    if method.system == "chain-of-thought":
        return "CoT prompting"
    if method.system != "rethinking" or not method.is_on_evidence:
        return None
    if method.variant in VARIANTS:
        return VARIANTS[method.variant] if method.inference else None
    if method.is_greedy:
        return "CoT prompting"
    return "Basic (with voting)" if method.voting else "Basic (w/o voting)"


def _given(run: RethinkingRun) -> str | None:
    """The facts that a run infers from, under table 7's label."""
    method = run.method
    if method.system in ("zero-shot", "chain-of-thought"):
        return GOLD if run.dataset == WITH_FACTS else EMPTY
    infers = method.variant == "generation" and method.is_on_evidence and method.inference
    return GENERATED if infers else None


def _infers(run: RethinkingRun) -> dict[str, report_tables.Value]:
    """The model and its way of inference, for a variant; empty where chains alone decide."""
    return {"model": _inferring(run)} if run.method.inference else {}


def _inferring(run: RethinkingRun) -> str:
    """The model that infers, and its way of doing so."""
    how = "unifiedqa" if run.method.layout == "unifiedqa" else run.method.inference or run.method.system
    return f"{run.inferrer or run.model} ({READINGS.get(how, how)})"


def _by_task(name: str, placed: LabelledRuns) -> report_tables.ReportTable | None:
    """Make a table with a column for each task of the own runs."""
    tasks = {run.task for _, run in placed}
    columns = [report_tables.Column(task, title, "percent") for task, title in TASKS.items() if task in tasks]
    own = [_own(label, run, {run.task: accuracy_of(run).share}) for label, run in placed]
    return LAYOUTS[name].filled(own, across=columns)


def _own(label: str, run: RethinkingRun, scores: Mapping[str, report_tables.Value]) -> report_tables.TableRow:
    labels = {"label": label, "model": run.model, "knowledge": ", ".join(run.method.knowledge) or None}
    return report_tables.TableRow(values={**labels, **scores, "questions": len(run.questions), "run": run.id})


def _alone(run: RethinkingRun) -> Iterator[report_tables.TableRow]:
    if result := chain_alone(run):
        yield _own(CHAIN_ALONE, run, dict(zip(("accuracy", "faithfulness"), result, strict=True)))


def _overview(run: RethinkingRun) -> report_tables.TableRow:
    accuracy = accuracy_of(run)
    values: dict[str, report_tables.Value] = {
        "settings": _settings(run.method) or None,
        "task": TASKS[run.task],
        "answered": run.answered,
        "accuracy": accuracy.share,
        "adjusted": None if run.task == "temporal" else accuracy.adjusted,
        "faithfulness": faithfulness_of(run),
    }
    return _own(METHODS.get(run.method.system, run.method.system), run, values)


def _settings(method: Method) -> str:
    phrases = [f"{method.chains} chains"] if method.chains else []
    if method.system == "rethinking":
        phrases += [VARIANTS[method.variant]] if method.variant in VARIANTS else []
        phrases += [] if method.voting else ["no voting"]
        phrases += [f"by {method.query}", *method.knowledge]
    return ", ".join(phrases)


def _growing(run: RethinkingRun) -> Iterator[report_tables.TableRow]:
    if grown := growth(run):
        for place, share in enumerate(grown.voted):
            faithful = grown.faithful[place] if grown.faithful else None
            values: dict[str, report_tables.Value] = {"run": run.id, "chains": place + 1, "questions": grown.questions}
            yield report_tables.TableRow(values={**values, "voted": share, "faithful": faithful})


def _contrasted(ours: RethinkingRun, theirs: RethinkingRun) -> Iterator[report_tables.TableRow]:
    if comparison := contrast(ours, theirs):
        # A budget that ends a run decides how many questions there are, for which the test holds no more.
        fixed = {} if ours.unasked or theirs.unasked else {"p_value": comparison.p_value}
        counts = {name: value for name, value in asdict(comparison).items() if name != "p_value"}
        yield report_tables.TableRow(
            values={"run": ours.id, "against": theirs.id, "task": TASKS[ours.task], **counts, **fixed}
        )


def _panel(run: RethinkingRun) -> report_tables.Panel | None:
    grown = growth(run)
    if grown is None:
        return None
    lines: tuple[tuple[str, report_tables.Shade, tuple[float, ...]], ...] = (
        ("self-consistency", "middle", grown.voted),
        ("rethinking", "strong", grown.faithful),
    )
    questions = grown.questions
    return report_tables.Panel(
        title=f"{TASKS[run.task]}, {run.model}\n{run.id}",
        labels=tuple(str(count) for count in range(1, len(grown.voted) + 1)),
        series=tuple(
            report_tables.Series(
                system=system,
                shade=shade,
                points=tuple(
                    report_tables.point_of_share(round(share * questions), questions, runs=(run.id,))
                    for share in shares
                ),
            )
            for system, shade, shares in lines
            if shares
        ),
    )
