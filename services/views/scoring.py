"""Scores of runs and of their questions."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.core.questions import Question
from cotrail.data.datasets.ircot_processed import PROCESSED_FORMAT
from cotrail.data.datasets.loading import load_official
from cotrail.data.datasets.registry import PROCESSED
from cotrail.errors import InputError
from cotrail.evaluation.metrics.question_scores import (
    KindedScores,
    kinded_means,
    usual_interval,
)
from cotrail.evaluation.metrics.repeated_scores import RepeatedScores, repeated_scores
from cotrail.evaluation.metrics.stop_rules import rule_of, sequence_interval
from cotrail.models.queries.outcomes import Outcome, leading, read_outcomes
from cotrail.models.queries.progress import Progress, read_progress
from cotrail.models.queries.repeats import runs_of
from cotrail.models.queries.runs import RunRecord, read_run, resolve_run
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.views.run_scores import RunScores, Stopping
from cotrail.services.views.scored_questions import Scored, by_question, scored_of, scored_questions, scores_by_question


def score(connection: Connection, run: str, *, dataset: str | None = None, official: Path | None = None) -> RunScores:
    """The scores of a run as it stands; questions that aren't finished count 0.

    run: its id, the beginning of it, or `latest`.
    dataset: whose questions they are, for a run on processed files that was submitted without naming it. Its repeats
        aren't scored then.
    official: that dataset's own file, which has all answers.
    """
    run_id = resolve_run(connection, run)
    if dataset is not None:
        return _rescored(connection, run_id, dataset, official)
    record = read_run(connection, run_id)
    scored = scored_questions(connection, record)
    return replace(_scores(connection, record, scored), repeats=_repeats(connection, record, scored))


def read_scores(connection: Connection, run_id: str) -> RunScores:
    """The scores of a run as it stands."""
    record = read_run(connection, run_id)
    return _scores(connection, record, scored_questions(connection, record))


def _repeats(connection: Connection, record: RunRecord, scored: Sequence[Scored]) -> RepeatedScores | None:
    """The scores of a run's repeats together, itself included; None where it has none. scored: its own questions."""
    repeats = runs_of(connection, record)
    if not repeats:
        return None
    own = {record.id: by_question(scored)}
    questions = {run: own.get(run) or scores_by_question(connection, read_run(connection, run)) for run in repeats}
    scores = {run: {key: each.scores for key, each in of.items()} for run, of in questions.items()}
    return repeated_scores(scores, repeats[record.id].times)


def _scores(connection: Connection, record: RunRecord, scored: Sequence[Scored]) -> RunScores:
    progress = read_progress(connection, record.id)
    return run_scores(record, progress, scored, leading(each.status for each in scored))


def _rescored(connection: Connection, run_id: str, dataset: str, official: Path | None) -> RunScores:
    """The scores of a run on processed files of an unnamed dataset, by the official metric of the dataset given."""
    record = read_run(connection, run_id)
    if record.dataset != PROCESSED_FORMAT or dataset not in PROCESSED:
        raise InputError(
            f"a dataset, one of {', '.join(PROCESSED)}, is named for runs on {PROCESSED_FORMAT!r} only; run "
            f"{run_id} is on {record.dataset!r}: leave it out or correct it"
        )
    # Only some processed files lack answers; for the others no official file is read.
    published = load_official(dataset, official, f"run {run_id}")
    corrected = replace(record, dataset=dataset)
    answered = (_answered(each, published) for each in read_outcomes(connection, run_id))
    return _scores(connection, corrected, list(scored_of(corrected, answered)))


def _answered(question: Outcome, published: Mapping[str, Question]) -> Outcome:
    """The question with the answers and the kinds of its dataset's own file, if there is one."""
    if not published:
        return question
    if question.key not in published:
        raise InputError(f"the official file has no question {question.key!r}; give the file of the run's split")
    answers = published[question.key]
    return replace(question, answers=answers.answers, kinds=answers.kinds)


def run_scores(
    record: RunRecord, progress: Progress, scored: Sequence[KindedScores], ended: int | None = None
) -> RunScores:
    """The scores of a run from those of its questions; ended: how many of the first have ended, all by default."""
    rule, until, interval = rule_of(record.provenance), None, usual_interval
    if rule is not None:
        asked, interval = scored[:ended], sequence_interval
        stop = rule.stops_after([each.scores[rule.metric] for each in asked])
        scored = asked[:stop]
        until = Stopping(rule=str(rule), met=stop is not None, questions=len(scored))
    whole, kinds = kinded_means(scored, interval)
    return RunScores(
        run=record.id,
        system=record.system,
        dataset=record.dataset,
        questions=progress.total,
        finished=progress.questions[QuestionStatus.FINISHED],
        failed=progress.questions[QuestionStatus.FAILED],
        metrics=whole.metrics,
        intervals=whole.intervals,
        kinds=kinds,
        steps=progress.steps,
        prompt_tokens=progress.tokens("prompt_tokens"),
        cached_prompt_tokens=progress.tokens("cached_prompt_tokens"),
        generated_tokens=progress.tokens("generated_tokens"),
        ends=progress.ends,
        spent=progress.spent,
        until=until,
    )
