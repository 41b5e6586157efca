"""Tables of own runs as in Rethinking with Retrieval, beside what the paper reports, and the effect of N."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from msgspec.structs import asdict

from cotrail.common.humanize import count
from cotrail.data.datasets.registry import TASK_OF
from cotrail.evaluation.experiments.costs import per_run, totals
from cotrail.evaluation.experiments.report_tables import (
    Chart,
    Column,
    ExperimentReport,
    Panel,
    ReportTable,
    Series,
    Shade,
    TableRow,
    Value,
    beside,
    listing,
    point_of_share,
)
from cotrail.evaluation.experiments.rethinking import published
from cotrail.evaluation.experiments.rethinking.published import METHODS, SOURCE, TASKS
from cotrail.evaluation.experiments.rethinking.runs import (
    Method,
    RethinkingRun,
    accuracy_of,
    chain_alone,
    contrast,
    faithfulness_of,
    growth,
)

MethodRuns = Sequence[RethinkingRun]
LabelledRuns = Sequence[tuple[str, RethinkingRun]]
"""Runs with the labels of their rows."""

RUN, METHOD, MODEL = Column("run", "Run"), Column("label", "Method"), Column("model", "Model")
KNOWLEDGE, QUESTIONS = Column("knowledge", "Knowledge"), Column("questions", "Questions", "count")
TASK, SETTINGS = Column("task", "Task"), Column("settings", "Settings")
BY_TASK = tuple(Column(task, title, "percent") for task, title in TASKS.items())
ACCURACY, FAITHFULNESS = Column("accuracy", "Accuracy", "percent"), Column("faithfulness", "Faithfulness", "percent")
OVERVIEW = (
    RUN,
    METHOD,
    SETTINGS,
    TASK,
    MODEL,
    QUESTIONS,
    Column("answered", "Answered", "count"),
    ACCURACY,
    Column("adjusted", "Adjusted", "percent"),
    FAITHFULNESS,
)
CHAINS = (
    RUN,
    Column("chains", "Chains", "count"),
    Column("voted", "Self-consistency", "percent"),
    Column("faithful", "Rethinking", "percent"),
    QUESTIONS,
)
CONTRASTS = (
    RUN,
    Column("against", "against"),
    TASK,
    QUESTIONS,
    Column("ours", "only the first right", "count"),
    Column("theirs", "only the second right", "count"),
    Column("p_value", "p", "probability"),
)

UNFIXED_NOTE = (
    "There is no p where a budget or a person ended one of the runs: then the number of questions wasn't fixed "
    "beforehand. `cotrail compare` has an interval that holds at every stop."
)
ADJUSTED_NOTE = (
    "Accuracy is exact match for temporal reasoning. Adjusted: answers that are neither of the two words count half. "
    "Faithfulness: how far the evidence entails the facts behind the answer."
)
OWN_QUESTIONS = (
    "Runs on other questions than StrategyQA's, TempQuestions' and INFOTABS' are in no table with published figures, "
    "which are of those."
)
MISPRINT_NOTE = (
    'The paper heads the published temporal column of this table "Tabular"; section 5.2 and the numbers of table 1 say '
    "that it is the temporal task's."
)
CHAIN_ALONE = "A sampled chain alone"
CHAIN_ALONE_NOTE = (
    f"{CHAIN_ALONE}: chain-of-thought prompting with one of the run's chains, on average over them. Runs of "
    "chain-of-thought prompting look for no evidence, so they have no faithfulness."
)
SAME_CHAINS_NOTE = "Both with the first chains of each question, as they were drawn and scored."

WITH_FACTS = "strategyqa-facts"
"""The dataset whose questions show their annotators' facts, which only table 7 is about."""

QUERIED = {"question": "Query-based", "sentence": "Decomposition-based"}
KNOWLEDGE_NAMES = {(True, False): "External", (False, True): "Background", (True, True): "Background + External"}
VARIANTS = {"selection": "Variant I", "generation": "Variant II"}
EVIDENCE_NOTE = (
    "Own runs are listed if they use only the paragraphs that the dataset annotates as evidence, and weigh by function "
    "(3), as in section 5.3 of the paper. With one chain at temperature 0 that is chain-of-thought prompting, with its "
    "faithfulness."
)
READINGS = {"zero-shot": "zero-shot", "chain-of-thought": "CoT", "cot": "CoT", "unifiedqa": "UnifiedQA's form"}
EMPTY, GOLD, GENERATED = "Empty facts", "Gold facts", "Generated facts"


def comparison(runs: Sequence[RethinkingRun]) -> ExperimentReport:
    """Any runs of the paper's methods; the figure has a panel for each with several chains."""
    return report_of(runs, runs)


def report_of(runs: Sequence[RethinkingRun], drawn: Sequence[RethinkingRun], progress: str = "") -> ExperimentReport:
    """The tables of these runs; drawn: those that have a panel in the figure; progress: what the summary says of it."""
    tables, plot = build_tables(runs), chains_chart(drawn)
    source = f" {SOURCE}" if any(row.published for table in tables for row in table.rows) else ""
    summary = f"{count(len(runs), 'run')}{progress}.{source}"
    return ExperimentReport(summary=summary, tables=tables, plots=(plot,) if plot else ())


def build_tables(runs: MethodRuns) -> tuple[ReportTable, ...]:
    """Build all tables for which there are runs; those with published figures only of runs on the paper's datasets."""
    comparable = [run for run in runs if run.dataset in TASK_OF]
    tables = (
        overview(runs),
        methods(comparable),
        retrieval(comparable),
        knowledge(comparable),
        variants(comparable),
        inference(comparable),
        effect_of_chains(runs),
        contrasts(runs),
        per_run((run.id, run.cost, run.answered) for run in runs),
        totals({None: [run.cost for run in runs if run.cost]}),
    )
    return tuple(table for table in tables if table)


def overview(runs: MethodRuns) -> ReportTable | None:
    """All runs with their accuracies."""
    notes = (ADJUSTED_NOTE,) if all(run.dataset in TASK_OF for run in runs) else (ADJUSTED_NOTE, OWN_QUESTIONS)
    return listing("runs", "Runs", OVERVIEW, [_overview(run) for run in runs], notes=notes)


def methods(runs: MethodRuns) -> ReportTable | None:
    """Methods by task (table 1); rethinking is represented by its basic approach with retrieved knowledge."""
    placed = [(title, run) for run in runs if (title := _method(run))]
    return _by_task("methods", "Methods (table 1)", placed, published.METHODS_BY_TASK)


def retrieval(runs: MethodRuns) -> ReportTable | None:
    """Evidence for each sentence, or for the question (table 3)."""
    placed = [(QUERIED[run.method.query], run) for run in runs if _is_whole(run)]
    return _by_task("retrieval", "Retrieval (table 3)", placed, published.RETRIEVAL_BY_TASK, notes=(MISPRINT_NOTE,))


def knowledge(runs: MethodRuns) -> ReportTable | None:
    """Knowledge for tabular reasoning (table 4)."""
    tabular = [run for run in runs if run.task == "tabular" and run.method.is_basic and run.method.query == "sentence"]
    placed = [(label, run) for run in tabular if (label := _knowledge(run.method))]
    return _by_task("knowledge", "Knowledge for tabular reasoning (table 4)", placed, published.KNOWLEDGE)


def variants(runs: MethodRuns) -> ReportTable | None:
    """Accuracy and faithfulness of the variants (table 5)."""
    commonsense = [run for run in runs if run.task == "commonsense" and run.dataset != WITH_FACTS]
    placed = [(label, run) for run in commonsense if (label := _variant(run.method))]
    own = [
        _own(label, run, {"accuracy": accuracy_of(run).share, "faithfulness": faithfulness_of(run)} | _infers(run))
        for label, run in placed
    ]
    alone = [row for label, run in placed if label.startswith("Basic") for row in _alone(run)]
    has_variants = any(run.method.system == "rethinking" for _, run in placed)
    columns = (METHOD, MODEL, KNOWLEDGE, ACCURACY, FAITHFULNESS, QUESTIONS, RUN)
    rows = [*own, *alone] if has_variants else []
    notes = (EVIDENCE_NOTE, CHAIN_ALONE_NOTE) if alone else (EVIDENCE_NOTE,)
    return beside("variants", "Variants (table 5)", columns, rows, published.VARIANTS, notes)


def inference(runs: MethodRuns) -> ReportTable | None:
    """Final inference from facts (table 7), if a run generates them or is given the annotators'."""
    commonsense = [run for run in runs if run.task == "commonsense"]
    placed = [(label, run) for run in commonsense if (label := _given(run))]
    own = [_own(label, run, {"accuracy": accuracy_of(run).share, "model": _inferring(run)}) for label, run in placed]
    if all(label == EMPTY for label, _ in placed):
        own = []
    columns = (Column("label", "Facts"), MODEL, ACCURACY, QUESTIONS, RUN)
    return beside("inference", "Inference with facts (table 7)", columns, own, published.INFERENCE)


def effect_of_chains(runs: MethodRuns) -> ReportTable | None:
    """Accuracy with the first n chains, by vote and by faithfulness."""
    return listing(
        "chains",
        "The effect of the number of chains",
        CHAINS,
        [row for run in runs for row in _growing(run)],
        notes=(SAME_CHAINS_NOTE,),
    )


def contrasts(runs: MethodRuns) -> ReportTable | None:
    """Significance of the differences between runs of a task."""
    rows = [row for ours, theirs in combinations(runs, 2) for row in _contrasted(ours, theirs)]
    notes = (UNFIXED_NOTE,) if any(run.unasked for run in runs) else ()
    return listing("contrasts", "Differences between runs (McNemar's exact test)", CONTRASTS, rows, notes=notes)


def chains_chart(runs: MethodRuns) -> Chart | None:
    """Chart of the effect of the number of chains, a panel per run; None where no run has several chains."""
    panels = tuple(panel for run in runs if (panel := _panel(run)))
    if not panels:
        return None
    return Chart(
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


def _infers(run: RethinkingRun) -> dict[str, Value]:
    """The model and its way of inference, for a variant; empty where chains alone decide."""
    return {"model": _inferring(run)} if run.method.inference else {}


def _inferring(run: RethinkingRun) -> str:
    """The model that infers, and its way of doing so."""
    how = "unifiedqa" if run.method.layout == "unifiedqa" else run.method.inference or run.method.system
    return f"{run.inferrer or run.model} ({READINGS.get(how, how)})"


def _by_task(
    name: str, title: str, placed: LabelledRuns, theirs: Sequence[TableRow], notes: Sequence[str] = ()
) -> ReportTable | None:
    """Make a table with a column for each task of the own runs."""
    tasks = {run.task for _, run in placed}
    columns = (METHOD, MODEL, KNOWLEDGE, *(column for column in BY_TASK if column.name in tasks), QUESTIONS, RUN)
    own = [_own(label, run, {run.task: accuracy_of(run).share}) for label, run in placed]
    return beside(name, title, columns, own, theirs, notes)


def _own(label: str, run: RethinkingRun, scores: Mapping[str, Value]) -> TableRow:
    labels = {"label": label, "model": run.model, "knowledge": ", ".join(run.method.knowledge) or None}
    return TableRow(values={**labels, **scores, "questions": len(run.questions), "run": run.id})


def _alone(run: RethinkingRun) -> Iterator[TableRow]:
    if result := chain_alone(run):
        yield _own(CHAIN_ALONE, run, dict(zip(("accuracy", "faithfulness"), result, strict=True)))


def _overview(run: RethinkingRun) -> TableRow:
    accuracy = accuracy_of(run)
    values: dict[str, Value] = {
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


def _growing(run: RethinkingRun) -> Iterator[TableRow]:
    if grown := growth(run):
        for place, share in enumerate(grown.voted):
            faithful = grown.faithful[place] if grown.faithful else None
            values: dict[str, Value] = {"run": run.id, "chains": place + 1, "questions": grown.questions}
            yield TableRow(values={**values, "voted": share, "faithful": faithful})


def _contrasted(ours: RethinkingRun, theirs: RethinkingRun) -> Iterator[TableRow]:
    if comparison := contrast(ours, theirs):
        # A budget that ends a run decides how many questions there are, for which the test holds no more.
        fixed = {} if ours.unasked or theirs.unasked else {"p_value": comparison.p_value}
        counts = {name: value for name, value in asdict(comparison).items() if name != "p_value"}
        yield TableRow(
            values={"run": ours.id, "against": theirs.id, "task": TASKS[ours.task], **counts, **fixed},
        )


def _panel(run: RethinkingRun) -> Panel | None:
    grown = growth(run)
    if grown is None:
        return None
    lines: tuple[tuple[str, Shade, tuple[float, ...]], ...] = (
        ("self-consistency", "middle", grown.voted),
        ("rethinking", "strong", grown.faithful),
    )
    questions = grown.questions
    return Panel(
        title=f"{TASKS[run.task]}, {run.model}\n{run.id}",
        labels=tuple(str(count) for count in range(1, len(grown.voted) + 1)),
        series=tuple(
            Series(
                system=system,
                shade=shade,
                points=tuple(point_of_share(round(share * questions), questions, runs=(run.id,)) for share in shares),
            )
            for system, shade, shares in lines
            if shares
        ),
    )
