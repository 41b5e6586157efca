"""Report of a run: one HTML page with its configuration, scores, and the reasoning behind every answer."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.humanize import count, duration, number
from cotrail.core.money import spent_line
from cotrail.errors import InputError
from cotrail.evaluation.causes.cause_label import CauseLabel
from cotrail.evaluation.experiments.costs import Cost, Work, outcomes
from cotrail.evaluation.experiments.experiment_report import ReportedRun
from cotrail.evaluation.metrics.metric import Metric
from cotrail.evaluation.metrics.question_scores import CAVEAT, KindedScores
from cotrail.evaluation.metrics.registry import METRICS, main_metrics
from cotrail.evaluation.plans.deviations import unplanned
from cotrail.models.queries.cause_labels import read_cause_labels
from cotrail.models.queries.outcomes import leading
from cotrail.models.queries.progress import Progress, read_progress
from cotrail.models.queries.runs import RunRecord, read_run, resolve_run
from cotrail.models.queries.traces import TracedQuestion, read_questions
from cotrail.models.records.labels import NO_LABELS, Labels, read_labels
from cotrail.services.views.plan_words import planned
from cotrail.services.views.plans import RunPlan, plan_of_run
from cotrail.services.views.reports.charts import SvgChart, recall_by_search, sentences_per_question
from cotrail.services.views.reports.configuration import configuration, local
from cotrail.services.views.reports.costs import adopted_from, run_cost
from cotrail.services.views.reports.pages import page
from cotrail.services.views.reports.reported_causes import reported_causes
from cotrail.services.views.reports.reported_questions import (
    ReportedQuestion,
    cause_filters,
    filters,
    reported_paragraphs,
    reported_question,
)
from cotrail.services.views.reports.reported_verdicts import ReportedVerdicts, reported_verdicts
from cotrail.services.views.run_scores import RunScores
from cotrail.services.views.score_tables import SEQUENTIAL_CAVEAT, kind_tables, until_line
from cotrail.services.views.scored_questions import kinded_scores
from cotrail.services.views.scoring import run_scores

UNSCORED_NOTE = "No answers and no gold paragraphs are published for these questions, so that nothing is scored."

NO_JUDGES = ReportedVerdicts()

SEARCHES_NOTE = (
    "For each question: every search with the paragraphs that it added (★ gold: the dataset marks it as needed), and "
    "every sentence that was reasoned from them. A title leads to the whole paragraph."
)
WEIGHING_NOTE = (
    "For each question: the answers that its chains state, with their weights; and of each chain every sentence, the "
    "evidence found for it (★ gold: the dataset marks it as needed), how similar that is (M), whether it entails the "
    "sentence (E) or contradicts it (C), and the term f that the sentence adds to the chain's faithfulness f(R)."
)
VOTE_NOTE = (
    "For each question: the answers that its chains state, with the number of chains, and each chain as written."
)
TREE_NOTE = (
    "For each question: the tree of its queries, by rounds, with the answers that stand; which of them "
    "retrieval corrected or completed, with the document (★ gold in the steps: the dataset marks it as needed); and "
    "the final content with its references. It is right where a published answer stands in it (cover EM); EM and F1 "
    "are of the answer that it states."
)


class Plot(Struct, frozen=True, kw_only=True):
    """A chart; across: the title of its label axis; tight, broad: drawn for half a line of a wide page, and a whole."""

    title: str
    kind: Literal["line", "bars"]
    across: str
    tight: SvgChart | None
    broad: SvgChart | None


class RunReportPage(Struct, frozen=True, kw_only=True):
    """The report of a run; questions: how many it holds."""

    html: str
    questions: int


def run_report(connection: Connection, run: str) -> RunReportPage:
    """The report of a run as it stands; run: its id, the beginning of it, or `latest`."""
    record = read_run(connection, resolve_run(connection, run))
    # All of it from one connection, which sees one snapshot: the numbers agree while workers record.
    progress = read_progress(connection, record.id)
    cost = run_cost(connection, record.id)
    labels = read_labels(connection, [record.id]).get(record.id, NO_LABELS)
    return run_page(
        record,
        progress,
        cost,
        list(read_questions(connection, record.id)),
        labels,
        plan=plan_of_run(connection, record),
        cause_labels=read_cause_labels(connection, record.id),
        judging=reported_verdicts(connection, record),
    )


def write_run_pages(connection: Connection, runs: Iterable[ReportedRun], directory: Path) -> Iterator[Path]:
    """Writes each run's own page, with all its questions, below the directory; yields each file once it is written.

    Raises InputError where it can't be written.
    """
    for run in runs:
        path = directory / run.page
        html = run_report(connection, run.id).html
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(html, "utf-8")
        except OSError as error:
            raise InputError(f"{path} can't be written ({error.strerror}); choose another directory") from error
        yield path


def run_page(
    record: RunRecord,
    progress: Progress,
    cost: Cost,
    questions: Sequence[TracedQuestion],
    labels: Labels = NO_LABELS,
    *,
    plan: RunPlan | None = None,
    cause_labels: Sequence[CauseLabel] = (),
    judging: ReportedVerdicts = NO_JUDGES,
) -> RunReportPage:
    """The page of a run with these questions; judging: what judges say of it, and of each question."""
    plan = plan or RunPlan(run=record.id, sealed=record.created_at)
    scored = [kinded_scores(record, question) for question in questions]
    scores = run_scores(record, progress, scored, leading(question.status for question in questions))
    reported = _reported(record, questions, scored, cause_labels)
    legend = _legend(reported)
    paragraphs = reported_paragraphs(record, questions)
    html = page(
        "report.html",
        run=record,
        labels=labels,
        state=progress.state,
        submitted=local(record.created_at),
        written=f"{datetime.now():%Y-%m-%d %H:%M}",
        configuration=list(configuration(record)),
        plan=plan,
        planned=list(planned(plan)),
        scores=scores,
        metrics=list(_tiles(reported, scores, plan)),
        caveat=_caveat(scores) if _scored(scores) else judging.unscored or UNSCORED_NOTE,
        tables=tuple(kind_tables(scores)),
        titles={name: metric.title for name, metric in METRICS.items()},
        percent=_percent,
        work=f"{count(scores.steps, 'step')} in {duration(progress.seconds)}",
        costs=list(_costs(record, cost)),
        judging=judging,
        number=number,
        plots=plots(questions, record.dataset, sentences=legend == SEARCHES_NOTE),
        legend=legend,
        questions=reported,
        filters=filters(reported),
        causes=reported_causes([each.explanation for each in reported if each.explanation]),
        cause_filters=cause_filters(reported),
        paragraphs=paragraphs,
        anchors=frozenset(anchor for anchor, _ in paragraphs),
    )
    return RunReportPage(html=html, questions=len(questions))


def _reported(
    record: RunRecord,
    questions: Sequence[TracedQuestion],
    scored: Sequence[KindedScores],
    cause_labels: Iterable[CauseLabel],
) -> list[ReportedQuestion]:
    """The questions as the page shows them, with what people say of the causes of their errors."""
    labelled: dict[str, list[CauseLabel]] = defaultdict(list)
    for label in cause_labels:
        labelled[label.question_id].append(label)
    return [
        reported_question(record, place, question, of.scores, labelled[question.key])
        for place, (question, of) in enumerate(zip(questions, scored, strict=True), start=1)
    ]


def _tiles(
    reported: Sequence[ReportedQuestion], scores: RunScores, plan: RunPlan
) -> Iterator[tuple[str, str, str, str]]:
    """The main metrics that the run has: title, value, meaning and interval."""
    for metric in _shown(reported):
        if scores.metrics[metric.name] is not None:
            value, interval = _value(metric, scores.metrics[metric.name]), _interval(metric, scores)
            yield _title(metric, plan), value, metric.meaning, interval


def plots(questions: Sequence[TracedQuestion], dataset: str, *, sentences: bool) -> list[Plot]:
    """The charts that the questions have something for; sentences: whether their sentences are counted."""
    recall = Plot(
        title="Paragraph recall after each search, mean of the finished questions",
        kind="line",
        across="searches, those made at once counted as one",
        tight=recall_by_search(questions, dataset),
        broad=recall_by_search(questions, dataset, broad=True),
    )
    histogram = Plot(
        title="Questions by the number of sentences reasoned",
        kind="bars",
        across="sentences",
        tight=sentences_per_question(questions) if sentences else None,
        broad=sentences_per_question(questions, broad=True),
    )
    return [each for each in (recall, histogram) if each.tight]


def _caveat(scores: RunScores) -> str:
    """What the scores mean, and how far a run with a rule got."""
    if scores.until is None:
        return CAVEAT
    line = until_line(scores.until, scores.questions)
    return f"{line[0].upper()}{line[1:]}. {SEQUENTIAL_CAVEAT}"


def _costs(record: RunRecord, cost: Cost) -> Iterator[str]:
    """What the run asked for and spent, as sentences; the two are the same where it adopted nothing."""
    if cost.adopted.steps:
        yield f"Asked for: {_work(cost.asked)}."
        yield f"Adopted from {adopted_from(record)}, and not spent: {_work(cost.adopted)}."
    yield f"Made: {_work(cost.made)}."
    if told := spent_line(cost.spent):
        yield f"{told}."
    if cost.lost:
        yield f"Executions without a result: {outcomes(cost.lost)}, {duration(cost.lost_seconds)}."


def _work(work: Work) -> str:
    cached = f" ({work.cached_prompt_tokens:,} from the cache)"
    return (
        f"{count(work.model_calls, 'model call')}, {work.searches:,} {'search' if work.searches == 1 else 'searches'}, "
        f"{work.prompt_tokens:,} tokens read{cached}, {work.generated_tokens:,} written, "
        f"{duration(work.model_seconds)} of model calls"
    )


def _scored(scores: RunScores) -> list[str]:
    """The metrics from 0 to 1 that the run has."""
    return [name for name, value in scores.metrics.items() if value is not None and not METRICS[name].is_count]


def _shown(questions: Sequence[ReportedQuestion]) -> list[Metric]:
    """The main metrics; where answers are the final contents of trees, those by which they are right come first."""
    first = ("rouge_l", "cover_em") if any(each.reasoning for each in questions) else ()
    return sorted(main_metrics(), key=lambda metric: metric.name not in first)


def _value(metric: Metric, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if metric.is_count else _percent(value)


def _title(metric: Metric, plan: RunPlan) -> str:
    """Its title, marked where the run's plan doesn't report the metric."""
    return f"{metric.title} (not planned)" if unplanned(plan.plan, [metric.name], []) else metric.title


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _interval(metric: Metric, scores: RunScores) -> str:
    interval = scores.intervals[metric.name]
    return "" if interval is None else f"{_value(metric, interval.low)} to {_value(metric, interval.high)}"


def _legend(questions: Sequence[ReportedQuestion]) -> str:
    if weighings := [each.weighing for each in questions if each.weighing]:
        return WEIGHING_NOTE if any(chain.faithfulness for each in weighings for chain in each.chains) else VOTE_NOTE
    return TREE_NOTE if any(each.reasoning for each in questions) else SEARCHES_NOTE
