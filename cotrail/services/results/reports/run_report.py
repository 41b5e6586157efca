"""Report of a run: one HTML page with its configuration, scores, and the reasoning behind every answer."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.humanize import count, duration, moment, number, percent
from cotrail.common.toml_files import read_toml
from cotrail.core.money import spent_line
from cotrail.errors import InputError
from cotrail.evaluation.causes.cause import CauseLabel
from cotrail.evaluation.experiments.costs import Cost, Work, outcomes
from cotrail.evaluation.experiments.report_tables import ReportedRun
from cotrail.evaluation.judging.tallies import Agreement
from cotrail.evaluation.metrics.answer_metrics import METRICS, main_metrics
from cotrail.evaluation.metrics.metric import Metric
from cotrail.evaluation.metrics.question_scores import KindedScores
from cotrail.evaluation.plans import unplanned
from cotrail.models.queries.annotations import read_cause_labels
from cotrail.models.queries.progress import Progress, read_progress
from cotrail.models.queries.runs import RunRecord, read_run, resolve_run
from cotrail.models.queries.traces import TracedQuestion, read_questions
from cotrail.models.records.runs import NO_LABELS, Labels, read_labels
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results.plans import RunPlan, plan_of_run, planned
from cotrail.services.results.reports import reported_questions
from cotrail.services.results.reports.charts import SvgChart, recall_by_search, reported_causes, sentences_per_question
from cotrail.services.results.reports.pages import page
from cotrail.services.results.reports.reported_runs import configuration
from cotrail.services.results.scoring import RunScores, caveat_of, kind_tables, run_scores, shown_mean, until_line
from cotrail.services.results.verdicts import MEANS, NO_VERDICTS, JudgeVerdicts, Verdict, own_verdicts, run_verdicts
from cotrail.services.runs.scores import adopted_from, kinded_scores, lost_requests_line, run_cost
from cotrail.services.store import reading

NOTES: dict[str, str] = read_toml(Path(__file__).with_name("notes.toml"))


class ReportedVerdicts(Struct, frozen=True, kw_only=True):
    """Judges of a run, or the run itself if it judges; questions: verdicts by the ids of questions.

    note: how means are taken; unscored: why no metric scores the run; empty where that isn't since it judges.
    """

    judges: tuple[JudgeVerdicts, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    questions: Mapping[str, tuple[Verdict, ...]] = NO_VERDICTS
    note: str = MEANS
    unscored: str = ""


def reported_verdicts(connection: Connection, record: RunRecord) -> ReportedVerdicts:
    """The verdicts on a run, or its own."""
    if own := own_verdicts(connection, record):
        return ReportedVerdicts(judges=(own,), note=NOTES["own_means"], unscored=NOTES["own_unscored"])
    found = run_verdicts(connection, record, per_question=True)
    return ReportedVerdicts(
        judges=found.judges,
        agreements=found.agreements,
        questions={each.question: each.verdicts for each in found.per_question if each.verdicts},
    )


NO_JUDGES = ReportedVerdicts()


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
    scores = run_scores(record, progress, scored, [question.status for question in questions])
    reported = _reported(record, questions, scored, cause_labels)
    legend = _legend(reported)
    paragraphs = reported_questions.reported_paragraphs(record, questions)
    html = page(
        "report.html",
        run=record,
        labels=labels,
        state=progress.state,
        submitted=moment(record.created_at),
        written=moment(datetime.now()),
        configuration=list(configuration(record)),
        plan=plan,
        planned=list(planned(plan)),
        scores=scores,
        metrics=[
            (_title(metric, plan), shown_mean(metric.name, mean), metric.meaning, _interval(metric, scores))
            for metric in _shown(reported)
            if (mean := scores.metrics[metric.name]) is not None
        ],
        caveat=_caveat(scores) if _scored(scores) else judging.unscored or NOTES["unscored"],
        tables=tuple(kind_tables(scores)),
        titles={name: metric.title for name, metric in METRICS.items()},
        work=f"{count(scores.steps, 'step')} in {duration(progress.seconds)}",
        costs=list(_costs(record, cost)),
        judging=judging,
        number=number,
        plots=plots(questions, record.dataset, sentences=legend == NOTES["searches"]),
        legend=legend,
        questions=reported,
        filters=reported_questions.filters(reported),
        causes=reported_causes([each.explanation for each in reported if each.explanation]),
        cause_filters=reported_questions.cause_filters(reported),
        paragraphs=paragraphs,
        anchors=frozenset(anchor for anchor, _ in paragraphs),
    )
    return RunReportPage(html=html, questions=len(questions))


def _reported(
    record: RunRecord,
    questions: Sequence[TracedQuestion],
    scored: Sequence[KindedScores],
    cause_labels: Iterable[CauseLabel],
) -> list[reported_questions.ReportedQuestion]:
    """The questions as the page shows them, with what people say of the causes of their errors."""
    labelled: dict[str, list[CauseLabel]] = defaultdict(list)
    for label in cause_labels:
        labelled[label.question_id].append(label)
    return [
        reported_questions.reported_question(record, place, question, of.scores, labelled[question.key])
        for place, (question, of) in enumerate(zip(questions, scored, strict=True), start=1)
    ]


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
        return caveat_of(scores)
    line = until_line(scores.until, scores.questions)
    return f"{line[0].upper()}{line[1:]}. {caveat_of(scores)}"


def _costs(record: RunRecord, cost: Cost) -> Iterator[str]:
    """What the run asked for and spent, as sentences; the two are the same where it adopted nothing."""
    if cost.adopted.steps:
        yield f"Asked for: {_work(cost.asked)}."
        yield f"Adopted from {adopted_from(record)}, and not spent: {_work(cost.adopted)}."
    yield f"Made: {_work(cost.made)}."
    if spent_text := spent_line(cost.spent):
        yield f"{spent_text}."
    if cost.lost:
        yield f"Executions without a result: {outcomes(cost.lost)}, claimed for {duration(cost.lost_seconds)}."
    if lost := lost_requests_line(cost):
        yield lost


def _work(work: Work) -> str:
    share = f", {percent(work.cached_prompt_tokens / work.prompt_tokens, 0)}," if work.prompt_tokens else ""
    cached = f" ({work.cached_prompt_tokens:,}{share} from the cache)"
    return (
        f"{count(work.model_calls, 'model call')}, {work.searches:,} {'search' if work.searches == 1 else 'searches'}, "
        f"{work.prompt_tokens:,} tokens read{cached}, {work.generated_tokens:,} written, "
        f"model calls computed in {duration(work.model_seconds)}"
    )


def _scored(scores: RunScores) -> list[str]:
    """The metrics from 0 to 1 that the run has."""
    return [name for name, value in scores.metrics.items() if value is not None and not METRICS[name].is_count]


def _shown(questions: Sequence[reported_questions.ReportedQuestion]) -> list[Metric]:
    """The main metrics; where answers are the final contents of trees, those by which they are right come first."""
    first = ("rouge_l", "cover_em") if any(each.reasoning for each in questions) else ()
    return sorted(main_metrics(), key=lambda metric: metric.name not in first)


def _title(metric: Metric, plan: RunPlan) -> str:
    """Its title, marked where the run's plan doesn't report the metric."""
    return f"{metric.title} (not planned)" if unplanned(plan.plan, [metric.name], []) else metric.title


def _interval(metric: Metric, scores: RunScores) -> str:
    interval = scores.intervals[metric.name]
    if interval is None:
        return ""
    return f"{shown_mean(metric.name, interval.low)} to {shown_mean(metric.name, interval.high)}"


def _legend(questions: Sequence[reported_questions.ReportedQuestion]) -> str:
    if weighings := [each.weighing for each in questions if each.weighing]:
        return NOTES["weighing" if any(chain.faithfulness for each in weighings for chain in each.chains) else "vote"]
    return NOTES["tree" if any(each.reasoning for each in questions) else "searches"]


@operation(
    "reports.page", "GET", "/runs/{run}/report", Scope.READ, answers="stream", media_type="text/html; charset=utf-8"
)
def show_report(run: str) -> Iterator[bytes]:
    """Give a run as one HTML page: configuration, scores, and the reasoning behind every answer."""
    with reading() as connection:
        document = run_report(connection, run)
    yield document.html.encode()
