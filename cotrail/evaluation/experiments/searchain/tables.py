"""Tables of own runs as in Search-in-the-Chain, beside what the paper reports."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import asdict

from cotrail.evaluation.experiments.costs import per_run, totals
from cotrail.evaluation.experiments.report_tables import (
    Column,
    ReportTable,
    TableRow,
    Value,
    beside,
    listing,
    merged_rows,
)
from cotrail.evaluation.experiments.searchain import published
from cotrail.evaluation.experiments.searchain.experiment import Variation
from cotrail.evaluation.experiments.searchain.published import DATASETS
from cotrail.evaluation.experiments.searchain.runs import (
    Effect,
    SearChainRun,
    citations,
    effect,
    efficiency,
    nodes_by_hops,
    sources,
)

SearChainRuns = Sequence[SearChainRun]

METHODS: Mapping[Variation, str] = {
    "": published.SEARCHAIN,
    "without-retrieval": published.WITHOUT_RETRIEVAL,
    "without-verification": published.WITHOUT_VERIFICATION,
    "without-completion": published.WITHOUT_COMPLETION,
}

RUN, METHOD, MODEL = Column("run", "Run"), Column("label", "Method"), Column("model", "Model")
DATASET, QUESTIONS = Column("label", "Dataset"), Column("questions", "Questions", "count")
OVERVIEW = (
    RUN,
    METHOD,
    Column("dataset", "Dataset"),
    MODEL,
    Column("corpus", "Corpus"),
    Column("reader", "Reader"),
    Column("duplicates", "Duplicates by"),
    QUESTIONS,
    Column("answered", "Answered", "count"),
    Column("score", "Final content", "percent"),
    Column("stated", "Stated answer", "percent"),
)
SOURCES = (
    DATASET,
    MODEL,
    Column("llm", "LLM", "percent"),
    Column("corrected", "Corrected", "percent"),
    Column("completed", "Completed", "percent"),
    Column("nodes", "Nodes", "count"),
    RUN,
)
EFFECT = (
    DATASET,
    MODEL,
    Column("without", "w/o IR (S)", "percent"),
    Column("helped_without", "w/o IR (S_IR)", "percent"),
    Column("helped_with", "w/ IR (S_IR)", "percent"),
    QUESTIONS,
    Column("helped", "of them S_IR", "count"),
    RUN,
)
HOPS = (2, 3, 4)
REASONING = (METHOD, MODEL, *(Column(str(hops), f"{hops}-hop", "average") for hops in HOPS), RUN)
EFFICIENCY = (
    METHOD,
    MODEL,
    Column("read", "Words in", "count"),
    Column("read_again", "in every call", "count"),
    Column("written", "Words out", "count"),
    Column("rounds", "Interactions", "average"),
    Column("seconds", "Computed in", "seconds"),
    QUESTIONS,
    RUN,
)
CITATIONS = (
    RUN,
    Column("contents", "Final contents", "count"),
    Column("marked", "marked", "percent"),
    Column("references", "Marks checked", "count"),
    Column("gold", "gold", "percent"),
    Column("path", "Nodes of paths", "count"),
    Column("named", "named", "percent"),
)

SCORES_NOTE = (
    "Scores are cover-EM of the final content, without its marks, and of the answer that it states behind "
    '"answer is"; for ELI5, ROUGE-L.'
)
PATH_NOTE = (
    "Shares of the nodes on the paths (R of algorithm 1), which have each query once, with its last answer. Neither "
    "duplicates nor nodes behind the feedback of their round are on a path."
)
S_IR = (
    "S: the questions that have an answer with and without IR. S_IR: those of them where IR corrected or completed a "
    "node."
)
MISLED = "Wrong with IR, of the questions that are right without IR."
NODES = "The mean number of nodes of the chains that the model writes without IR, by the hops of MuSiQue's questions."
WORDS_NOTE = (
    "Words are separated by white space, before any prompt is cut to a model's context. Words in: the prompt once, the "
    "feedbacks and the request for the final content. So the paper's 390 must have been counted, which cannot be those "
    "of 2.21 calls together. In every call: all prompts, which repeat what was said before. Interactions: chains that "
    "the model wrote. Prompts by which a model reads answers from documents don't count. Published figures are of the "
    "four multi-hop datasets together."
)
CITATIONS_NOTE = (
    "Marked: final contents in which the model wrote a mark. Gold: marks that lead to a document with the title of a "
    "gold paragraph, where the dataset publishes these. Named: nodes of the path that a mark names. The paper's "
    "version of WWW 2024 reports SKC, how many marked items of an answer their documents support (2.882), and AMP, "
    "whether marks stand where they belong (0.80). SKC needs a judgement of entailment and AMP three graders, so "
    "neither is here."
)


def build_tables(runs: SearChainRuns) -> tuple[ReportTable, ...]:
    """Build all tables for which there are runs."""
    tables = (
        overview(runs),
        performance(runs),
        knowledge_sources(runs),
        effect_of_retrieval(runs),
        misleading(runs),
        reasoning_steps(runs),
        words_and_interactions(runs),
        marks(runs),
        per_run((run.id, run.cost, run.answered) for run in runs),
        totals({None: [run.cost for run in runs if run.cost]}),
    )
    return tuple(table for table in tables if table)


def overview(runs: SearChainRuns) -> ReportTable | None:
    """All runs with their scores."""
    return listing("runs", "Runs", OVERVIEW, [_overview(run) for run in runs], notes=(SCORES_NOTE,))


def performance(runs: SearChainRuns) -> ReportTable | None:
    """Methods by dataset (table 1)."""
    placed = [(run, run.score) for run in runs]
    return _by_dataset("performance", "Performance (table 1)", placed, published.PERFORMANCE, SCORES_NOTE)


def knowledge_sources(runs: SearChainRuns) -> ReportTable | None:
    """Shares of nodes by the source of their answers (table 2)."""
    own = [_sources(run) for run in _of("", runs) if sources(run.trees).nodes]
    return beside("sources", "Sources of knowledge (table 2)", SOURCES, own, published.SOURCES, [PATH_NOTE])


def effect_of_retrieval(runs: SearChainRuns) -> ReportTable | None:
    """Scores where retrieval corrected or completed something (table 3)."""
    own = [_own(run, {"label": _title(run.dataset), **asdict(effect)}) for run, effect in _effects(runs)]
    return beside("effect", "Effect of IR (table 3)", EFFECT, own, published.EFFECT, [S_IR])


def misleading(runs: SearChainRuns) -> ReportTable | None:
    """How often retrieval makes a right answer wrong (table 4); not of long answers, which aren't right or wrong."""
    effects = [(run, effect) for run, effect in _effects(runs) if effect.right and not run.scores_overlap]
    placed = [(run, effect.misled / effect.right) for run, effect in effects]
    return _by_dataset("misled", "Misled by IR (table 4)", placed, published.MISLED, MISLED)


def reasoning_steps(runs: SearChainRuns) -> ReportTable | None:
    """Nodes of chains without retrieval, by hops (table 5)."""
    numbers = [(run, nodes_by_hops(run.questions)) for run in _of("without-retrieval", runs)]
    own = [_own(run, {str(hops): mean for hops, mean in by_hops.items()}) for run, by_hops in numbers if by_hops]
    return beside("steps", "Number of reasoning steps (table 5)", REASONING, own, published.STEPS, [NODES])


def words_and_interactions(runs: SearChainRuns) -> ReportTable | None:
    """Words in and out, and rounds of interaction (table 6)."""
    own = [row for run in runs if (row := _efficiency(run))]
    return beside("efficiency", "Efficiency (table 6)", EFFICIENCY, own, published.EFFICIENCY, [WORDS_NOTE])


def marks(runs: SearChainRuns) -> ReportTable | None:
    """What the marks of final contents lead to."""
    rows = [_citations(run) for run in runs if run.variation != "without-retrieval" and run.trees]
    return listing("marks", "Marks of the final contents", CITATIONS, rows, notes=(CITATIONS_NOTE,))


def _of(variation: Variation, runs: SearChainRuns) -> list[SearChainRun]:
    return [run for run in runs if run.variation == variation]


def _effects(runs: SearChainRuns) -> list[tuple[SearChainRun, Effect]]:
    """The effect of retrieval on each run of the whole method whose questions were also asked without it."""
    alone = {(run.dataset, run.model): run.questions for run in _of("without-retrieval", runs)}
    effects = [(run, effect(run.questions, alone.get((run.dataset, run.model), ()))) for run in _of("", runs)]
    return [(run, measured) for run, measured in effects if measured]


def _overview(run: SearChainRun) -> TableRow:
    values: dict[str, Value] = {
        "dataset": _title(run.dataset),
        "corpus": run.corpus,
        "reader": _told(tree.reader for tree in run.trees if run.corpus),
        "duplicates": _told(tree.duplicates for tree in run.trees if run.corpus),
        "questions": len(run.questions),
        "answered": run.answered,
        "score": run.score,
        "stated": run.stated,
    }
    return _own(run, values)


def _sources(run: SearChainRun) -> TableRow:
    measured = sources(run.trees)
    shares = {"llm": measured.model, "corrected": measured.corrected, "completed": measured.completed}
    values: dict[str, Value] = {name: count / measured.nodes for name, count in shares.items()}
    return _own(run, {"label": _title(run.dataset), "nodes": measured.nodes, **values})


def _efficiency(run: SearChainRun) -> TableRow | None:
    measured = efficiency(run.questions)
    if measured is None:
        return None
    seconds = run.cost.asked.seconds / run.answered if run.cost and run.answered else None
    return _own(run, {**asdict(measured), "seconds": seconds})


def _citations(run: SearChainRun) -> TableRow:
    measured = citations(run.questions)
    shares = {
        "marked": _share(measured.marked, measured.contents),
        "gold": _share(measured.gold, measured.references),
        "named": _share(measured.named, measured.path),
    }
    return _own(run, asdict(measured) | shares)


def _share(count: int, of: int) -> float | None:
    return count / of if of else None


def _own(run: SearChainRun, values: Mapping[str, Value]) -> TableRow:
    return TableRow(values={"label": METHODS[run.variation], "model": run.model, "run": run.id, **values})


def _title(dataset: str) -> str:
    return DATASETS.get(dataset, dataset)


def _told(names: Iterable[str]) -> str | None:
    return ", ".join(dict.fromkeys(filter(None, names))) or None


def _by_dataset(
    name: str,
    title: str,
    placed: Sequence[tuple[SearChainRun, float]],
    theirs: Sequence[TableRow],
    note: str,
) -> ReportTable | None:
    """Make a table with a column for each dataset, and a row for each method and model."""
    datasets = list(dict.fromkeys(run.dataset for run, _ in placed))
    columns = (METHOD, MODEL, *(Column(dataset, _title(dataset), "percent") for dataset in datasets))
    own = merged_rows(
        ({"label": METHODS[run.variation], "model": run.model}, {run.dataset: value}, (run.id,))
        for run, value in placed
    )
    return beside(name, title, columns, own, theirs, [note])
