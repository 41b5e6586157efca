"""Scores of runs and of their questions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import fmean

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.humanize import count, metric_value, percent, percent_range, within_sentence
from cotrail.core.questions import Paragraph
from cotrail.core.results import Retrieved
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics import supporting_paragraphs
from cotrail.evaluation.metrics.answer_metrics import METRICS, main_metrics
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.question_scores import (
    CAVEAT,
    LEFT_OVER_CAVEAT,
    SEQUENTIAL_CAVEAT,
    KindedScores,
    MeanScores,
    kinded_means,
)
from cotrail.evaluation.metrics.repeated_scores import RepeatedScores as RepeatedScores
from cotrail.evaluation.metrics.repeated_scores import repeated_scores
from cotrail.evaluation.metrics.stop_rules import interval_of, rule_of
from cotrail.models.queries.outcomes import leading
from cotrail.models.queries.progress import Progress, read_progress
from cotrail.models.queries.repeated_steps import runs_of
from cotrail.models.queries.runs import RunRecord, read_run, resolve_run
from cotrail.models.queries.traces import TracedQuestion, read_questions
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results.verdicts import JudgeVerdicts, judge_verdicts, own_verdicts
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.progress import RunTotals, run_totals
from cotrail.services.runs.scores import Scored, by_question, scored_questions, scores_by_question
from cotrail.services.store import reading

# What a run's searches are worth: how far each of them found the paragraphs that a question needs.

MOST_SEARCHES = 20
"""The searches of a question that are told apart; further ones count with the last of these."""

FOUND = "found"
"""The list of what a search found, in its own order."""


class SearchScores(Struct, frozen=True, kw_only=True):
    """How far a search found the gold paragraphs, as means over the questions that have some and made this search.

    search: its number within a question, from 1; None for all of a question's together, in the order of finding.
    list: `found`, or one of those that it was put together from, of which only what it kept is recorded.
    """

    search: int | None
    list: str
    questions: int
    recall_at_5: float
    recall_at_10: float
    ndcg_at_10: float
    mrr: float


@operation("scores.searches", "GET", "/runs/{run}/searches", Scope.READ)
def show_searches(run: str) -> tuple[SearchScores, ...]:
    """Show how far each search of a run's questions found their gold paragraphs, the first searches first."""
    judged: dict[tuple[int, str], list[Sequence[supporting_paragraphs.Judged]]] = defaultdict(list)
    with reading() as connection:
        record = find_run(connection, run)
        scoring = scoring_of(record.dataset)
        for question in read_questions(connection, record.id):
            for key, paragraphs in _rankings(question):
                compared = supporting_paragraphs.compared_paragraphs(
                    scoring, paragraphs, question.gold, question.pinned
                )
                if documents := supporting_paragraphs.judged_of(compared):
                    judged[key].append(documents)
    return tuple(_of_search(*key, judged[key]) for key in sorted(judged, key=lambda each: (each[0], each[1] != FOUND)))


def _rankings(question: TracedQuestion) -> Iterator[tuple[tuple[int, str], Iterable[Paragraph]]]:
    """The paragraphs of each search of a question, and of each list behind it; all of them under the number 0."""
    yield (0, FOUND), question.paragraphs
    searches = [step.result for step in question.steps if isinstance(step.result, Retrieved) and step.query]
    for number, found in enumerate(searches, start=1):
        place = min(number, MOST_SEARCHES)
        yield (place, FOUND), (hit.paragraph for hit in found.hits)
        for name in dict.fromkeys(each.list for hit in found.hits for each in hit.lists):
            ranked = [(each.rank, hit.paragraph) for hit in found.hits for each in hit.lists if each.list == name]
            yield (place, name), [paragraph for _, paragraph in sorted(ranked, key=lambda pair: pair[0])]


def _of_search(search: int, name: str, judged: Sequence[Sequence[supporting_paragraphs.Judged]]) -> SearchScores:
    return SearchScores(
        search=search or None,
        list=name,
        questions=len(judged),
        recall_at_5=fmean(supporting_paragraphs.recall_at(each, 5) or 0.0 for each in judged),
        recall_at_10=fmean(supporting_paragraphs.recall_at(each, 10) or 0.0 for each in judged),
        ndcg_at_10=fmean(supporting_paragraphs.ndcg(each, 10) or 0.0 for each in judged),
        mrr=fmean(supporting_paragraphs.reciprocal_rank(each) or 0.0 for each in judged),
    )


class Stopping(Struct, frozen=True, kw_only=True):
    """How a run with a rule (`cotrail.evaluation.metrics.stop_rules`) is scored: by its first questions alone.

    met: whether the rule stopped it; questions: how many were asked until then, or have ended so far without a gap.
    """

    rule: str
    met: bool
    questions: int


class RunScores(RunTotals, frozen=True, kw_only=True):
    """A run's scores; each metric is a mean, None where no question has it, and has a confidence interval.

    unasked: how many of its questions were cancelled, or left over by a rule or a budget, and are in no mean; where
        there are such, the intervals hold at every stop.
    kinds: the same for each kind of questions, by the name of that sort of kinds and the kind: `type`, `bridge`.
    repeats: its scores together with those of the runs that ask the same with other seeds, where there are any.
    until: of a run with a rule; then the means are over its first questions, and the intervals hold at every stop.
    """

    system: str
    dataset: str
    metrics: dict[str, float | None]
    intervals: dict[str, ConfidenceInterval | None]
    kinds: dict[str, dict[str, MeanScores]]
    repeats: RepeatedScores | None = None
    until: Stopping | None = None
    unasked: int = 0


def score(connection: Connection, run: str) -> RunScores:
    """The scores of a run as it stands; questions that aren't finished count 0, and those that weren't asked nowhere.

    run: its id, the beginning of it, or `latest`.
    """
    record = read_run(connection, resolve_run(connection, run))
    scored = scored_questions(connection, record)
    return replace(_scores(connection, record, scored), repeats=_repeats(connection, record, scored))


class JudgedScores(RunScores, frozen=True, kw_only=True):
    """Scores of a run.

    judges: what each judge says of it; verdicts: what it says itself, where it is a judge's, which no metric scores.
    """

    judges: tuple[JudgeVerdicts, ...] = ()
    verdicts: JudgeVerdicts | None = None


@operation("scores.show", "GET", "/runs/{run}/scores", Scope.READ)
def show_scores(run: str) -> JudgedScores:
    """Score a run as it stands, with 95 % confidence intervals; a question that isn't finished counts 0.

    One that was cancelled, or left over by a rule or a budget, counts nowhere: `unasked` says how many these are.
    """
    with reading() as connection:
        scores = score(connection, run)
        record = read_run(connection, scores.run)
        return JudgedScores(
            **msgspec.structs.asdict(scores),
            judges=judge_verdicts(connection, record),
            verdicts=own_verdicts(connection, record),
        )


def read_scores(connection: Connection, run_id: str) -> RunScores:
    """The scores of a run as it stands."""
    record = read_run(connection, run_id)
    return _scores(connection, record, scored_questions(connection, record))


def _repeats(connection: Connection, record: RunRecord, scored: Sequence[Scored]) -> RepeatedScores | None:
    """The scores of a run's repeats together, itself included; None where it has none. scored: its own questions."""
    repeats = runs_of(connection, record)
    if not repeats:
        return None
    own, records = {record.id: by_question(scored)}, {run: read_run(connection, run) for run in repeats}
    questions = {run: own.get(run) or scores_by_question(connection, each) for run, each in records.items()}
    is_fixed = all(len(questions[run]) == each.size and not rule_of(each.provenance) for run, each in records.items())
    scores = {run: {key: each.scores for key, each in of.items()} for run, of in questions.items()}
    return repeated_scores(scores, repeats[record.id].times, is_fixed=is_fixed)


def _scores(connection: Connection, record: RunRecord, scored: Sequence[Scored]) -> RunScores:
    progress = read_progress(connection, record.id)
    return run_scores(record, progress, scored, [each.status for each in scored])


def run_scores(
    record: RunRecord, progress: Progress, scored: Sequence[KindedScores], statuses: Sequence[str]
) -> RunScores:
    """The scores of a run from those of its questions; statuses: how far these are."""
    rule, until = rule_of(record.provenance), None
    left_over = progress.questions[QuestionStatus.CANCELLED]
    if rule is None:
        scored = [each for each, status in zip(scored, statuses, strict=True) if status != QuestionStatus.CANCELLED]
    else:
        asked = scored[: leading(statuses)]
        stop = rule.stops_after([each.scores[rule.metric] for each in asked])
        scored = asked[:stop]
        until = Stopping(rule=str(rule), met=stop is not None, questions=len(scored))
    whole, kinds = kinded_means(scored, interval_of(is_fixed=rule is None and not left_over))
    return RunScores(
        **run_totals(progress),
        system=record.system,
        dataset=record.dataset,
        unasked=left_over,
        metrics=whole.metrics,
        intervals=whole.intervals,
        kinds=kinds,
        until=until,
    )


# Tables of a run's scores: of all questions, and the main ones by the kinds that its dataset names.


def caveat_of(scores: RunScores) -> str:
    """What the intervals of these scores promise."""
    if scores.until:
        return SEQUENTIAL_CAVEAT
    return f"{CAVEAT} {LEFT_OVER_CAVEAT}" if scores.unasked else CAVEAT


SHOWN_METRICS = 3
"""The number of main metrics that a line of 80 columns has room for: the first that the run has."""

SHOWN_KINDS = 20


class MetricRow(Struct, frozen=True, kw_only=True):
    """A metric of a run: its mean over the questions that have it, with a confidence interval, and what it measures.

    value, bounds: these as text, in percent unless the metric counts things; is_main: whether one looks at it first.
    """

    name: str
    value: str
    bounds: str
    definition: str
    is_main: bool


class KindRow(Struct, frozen=True, kw_only=True):
    """The questions of a kind: how many, and their means with confidence intervals, in the order of the metrics."""

    kind: str
    questions: int
    means: tuple[tuple[float | None, ConfidenceInterval | None], ...]


class KindTable(Struct, frozen=True, kw_only=True):
    """Scores by kind; sort: what the kinds are, e.g. `level`; note: how many smaller kinds aren't shown, if any."""

    sort: str
    metrics: tuple[str, ...]
    rows: tuple[KindRow, ...]
    note: str


def until_line(until: Stopping, questions: int) -> str:
    """How far a run with a rule got, e.g. `stopped by width(answer_f1) < 0.05 after 212 of 1,000 questions`."""
    of = f"{until.questions:,} of {count(questions, 'question')}"
    return f"stopped by {until.rule} after {of}" if until.met else f"{until.rule} isn't met after {of}"


def metric_rows(scores: RunScores) -> list[MetricRow]:
    """A row for each metric."""
    return [
        MetricRow(
            name=name,
            value=shown_mean(name, scores.metrics[name]),
            bounds=shown_bounds(name, scores.intervals[name]),
            definition=metric.meaning,
            is_main=metric.rank is not None and scores.metrics[name] is not None,
        )
        for name, metric in METRICS.items()
    ]


def score_sentence(scores: RunScores) -> str:
    """A run's main scores in one sentence."""
    if not (names := _main(scores.metrics)):
        return f"{scores.run}: no question has a published answer or gold paragraphs, so there is nothing to score."
    parts = [
        f"{within_sentence(METRICS[name].title)} {percent(scores.metrics[name])}"
        + (f" ({bounds})" if (bounds := shown_bounds(name, scores.intervals[name])) else "")
        for name in names
    ]
    asked = scores.until.questions if scores.until else scores.questions - scores.unasked
    said = f"{scores.run}: {', '.join(parts)}, over {count(asked, 'question')}"
    if (missing := asked - scores.finished) > 0 and not scores.until:
        said += f", of which {missing:,} without an answer count 0"
    if scores.unasked and not scores.until:
        said += f"; {scores.unasked:,} more {'was' if scores.unasked == 1 else 'were'} never asked, and count nowhere"
    return f"{said}."


def shown_mean(name: str, mean: float | None) -> str:
    """A mean of this metric in percent, or as the number that it is where the metric counts things."""
    return metric_value(mean, counted=METRICS[name].is_count)


def shown_bounds(name: str, interval: ConfidenceInterval | None) -> str:
    """An interval likewise; empty where there is none."""
    if interval is None:
        return ""
    low, high = interval.low, interval.high
    return f"{low:.2f} to {high:.2f}" if METRICS[name].is_count else percent_range(low, high)


def kind_tables(scores: RunScores) -> Iterator[KindTable]:
    """A table for each sort of kinds of which the run has several."""
    metrics = _main(scores.metrics)
    for sort, parts in scores.kinds.items():
        if len(parts) > 1:
            yield _table(sort, parts, metrics)


def _main(means: Mapping[str, float | None]) -> tuple[str, ...]:
    names = (metric.name for metric in main_metrics() if not metric.is_count)
    return tuple(name for name in names if means[name] is not None)[:SHOWN_METRICS]


def _table(sort: str, parts: Mapping[str, MeanScores], metrics: tuple[str, ...]) -> KindTable:
    rows = tuple(
        KindRow(
            kind=kind,
            questions=part.questions,
            means=tuple((part.metrics[name], part.intervals[name]) for name in metrics),
        )
        for kind, part in islice(parts.items(), SHOWN_KINDS)
    )
    left_out = len(parts) - len(rows)
    note = f"and {count(left_out, 'smaller kind')}, which cotrail score --json has too" if left_out else ""
    return KindTable(sort=sort, metrics=metrics, rows=rows, note=note)
