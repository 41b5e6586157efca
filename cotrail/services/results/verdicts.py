"""What judges say of a run: their verdicts on each question, what these come to, and how far the judges agree."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.humanize import count, percent
from cotrail.core.money import Spent
from cotrail.core.results import Failure
from cotrail.errors import InputError
from cotrail.evaluation.judging.tallies import Agreement as Agreement
from cotrail.evaluation.judging.tallies import ClaimTally, Tally, agreement, claims, consistency, tallies_by_kind, tally
from cotrail.evaluation.judging.tallies import Share as Share
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval as ConfidenceInterval
from cotrail.models.queries.judgements import JUDGE, JudgedQuestion, read_judged
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.runs import RunRecord
from cotrail.models.records.runs import NO_LABELS, read_labels
from cotrail.models.schema.states import QuestionStatus, RunState
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results.judges import Judge, judge_of, judges_of
from cotrail.services.runs.labels import find_run
from cotrail.services.store import reading
from cotrail.systems.judge.rubric import Judgement

MEANS = (
    "The mean is over the questions with a verdict and those that the run never answered, which count by the rubric's "
    "`unanswered` or its lowest score; an answer without a verdict counts nowhere. While a judge is under way, its "
    "mean is over its verdicts alone."
)
"""How means of verdicts are taken."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What a judge says of a question.

    judgement: None where it hasn't said it; failure: why it can't; ended_by: what ended its question, if anything.
    A preference is seen from the run whose verdicts these are: a win, a tie or a loss.
    """

    judge: str
    run: str
    judgement: Judgement | None
    failure: Failure | None
    ended_by: str


NO_VERDICTS: Mapping[str, tuple[Verdict, ...]] = {}
"""What is said of questions where no judge was asked."""


class QuestionVerdicts(Struct, frozen=True, kw_only=True):
    """A question of a judged run, with what each judge that was asked says; answered: whether it has an answer."""

    question: str
    text: str
    answered: bool
    verdicts: tuple[Verdict, ...]


class JudgeVerdicts(Struct, frozen=True, kw_only=True):
    """What a judge says of a run.

    label, against: see `Judge`; run: the judge's own; name: what people call it; model: name and digest.
    scores: of the rubric's verdicts; tally: over all questions of the judged run; kinds: for each kind of questions.
    open, failed: how many of the judge's questions are under way, and have no verdict since none could be read.
    consistency: of preferences; claims: of a rubric that goes claim by claim; None for other rubrics.
    spent: on the judge; None where it isn't hosted.
    """

    label: str
    run: str
    name: str | None
    state: RunState
    model: str
    rubric: str
    rubric_digest: str
    against: str | None
    scores: Mapping[str, float]
    tally: Tally
    kinds: dict[str, dict[str, Tally]]
    open: int
    failed: int
    consistency: Share | None
    claims: ClaimTally | None
    prompt_tokens: int
    generated_tokens: int
    spent: Spent | None


class RunVerdicts(Struct, frozen=True, kw_only=True):
    """What judges say of a run; agreements: of those that follow the same rubric; per_question: where asked for."""

    run: str
    questions: int
    answered: int
    judges: tuple[JudgeVerdicts, ...]
    agreements: tuple[Agreement, ...]
    per_question: tuple[QuestionVerdicts, ...] = ()


@operation("verdicts.show", "GET", "/runs/{run}/verdicts", Scope.READ)
def show_verdicts(run: str, *, per_question: bool = False) -> RunVerdicts:
    """Show what judges say of a run: their verdicts, with means and intervals, and how far they agree.

    per_question: with the verdicts on each question.
    """
    # See `run_verdicts`; raises InputError where it is a judge's itself.
    with reading() as connection:
        record = find_run(connection, run)
        if record.system == JUDGE:
            raise InputError(
                f"{record.id} is a judge's own run: name the run that it judged, {record.settings['runs'][0]}; "
                f"`cotrail score {record.id}` shows what it says"
            )
        return run_verdicts(connection, record, per_question=per_question)


def run_verdicts(connection: Connection, record: RunRecord, *, per_question: bool = False) -> RunVerdicts:
    """What judges say of a run so far; per_question: of each question, too."""
    judges, questions = judges_of(connection, record.id), read_judged(connection, record.id)
    return RunVerdicts(
        run=record.id,
        questions=len(questions),
        answered=sum(each.answered for each in questions),
        judges=tuple(_said(connection, judge, questions) for judge in judges),
        agreements=tuple(_agreements(judges)),
        per_question=tuple(_of_question(judges, each) for each in questions) if per_question else (),
    )


def judge_verdicts(connection: Connection, record: RunRecord) -> tuple[JudgeVerdicts, ...]:
    """What each judge says of a run so far."""
    judges = judges_of(connection, record.id)
    questions = read_judged(connection, record.id) if judges else []
    return tuple(_said(connection, judge, questions) for judge in judges)


def own_verdicts(connection: Connection, record: RunRecord) -> JudgeVerdicts | None:
    """What a judge's run says, over the answers that it was asked about; None of any other run."""
    if record.system != JUDGE:
        return None
    asked = (replace(each, answered=True) for each in read_judged(connection, record.id))
    return _said(connection, judge_of(connection, record), tuple(asked))


def verdicts_on(connection: Connection, record: RunRecord, key: str) -> tuple[Verdict, ...]:
    """What the judges of a run say of one question, by its id."""
    return tuple(_on(judges_of(connection, record.id, key), key))


def verdicts_by_question(connection: Connection, record: RunRecord) -> Mapping[str, tuple[Verdict, ...]]:
    """The same of each question that any judge was asked about."""
    judges = judges_of(connection, record.id)
    keys = dict.fromkeys(key for judge in judges for key in judge.recorded)
    return {key: tuple(_on(judges, key)) for key in keys}


def verdict_words(verdict: Verdict) -> str:
    """A verdict in words: `correct (90 % sure)`."""
    if verdict.judgement is None:
        if verdict.failure:
            return f"{verdict.failure.type}: {verdict.failure.message}"
        return f"none ({verdict.ended_by})" if verdict.ended_by else "not yet"
    said = verdict.judgement
    details = [] if said.confidence is None else [f"{percent(said.confidence, 0)} sure"]
    if said.claims:
        supported = round(said.score * len(said.claims))
        details.append(f"{supported} of {count(len(said.claims), 'claim')} supported")
    if said.consistent is False:
        details.append("the orders disagree")
    if isinstance(said.dropped, tuple):
        details.append(f"no usable {', '.join(said.dropped)}")
    return f"{said.verdict} ({', '.join(details)})" if details else said.verdict


def _said(connection: Connection, judge: Judge, questions: Sequence[JudgedQuestion]) -> JudgeVerdicts:
    progress = read_progress(connection, judge.record.id)
    graded, said = judge.graded(questions), tuple(judge.judgements.values())
    return JudgeVerdicts(
        label=judge.label,
        run=judge.record.id,
        name=read_labels(connection, [judge.record.id]).get(judge.record.id, NO_LABELS).name,
        state=progress.state,
        model=judge.record.model,
        rubric=judge.rubric.name,
        rubric_digest=judge.rubric_digest,
        against=judge.against,
        scores=judge.scores,
        tally=tally(graded, judge.scores),
        kinds=tallies_by_kind(graded, judge.scores),
        open=judge.of_status(QuestionStatus.OPEN) + judge.of_status(QuestionStatus.BLOCKED),
        failed=judge.of_status(QuestionStatus.FAILED),
        consistency=consistency(said) if judge.rubric.asks == "pair" else None,
        claims=claims(said, judge.rubric.scores) if judge.rubric.asks == "claims" else None,
        prompt_tokens=progress.tokens("prompt_tokens"),
        generated_tokens=progress.tokens("generated_tokens"),
        spent=progress.spent,
    )


def _agreements(judges: Iterable[Judge]) -> Iterator[Agreement]:
    """The agreement of judges that have the same rubric, and the same opponent where they prefer."""
    groups: dict[tuple[str, str | None], list[Judge]] = {}
    for judge in judges:
        groups.setdefault((judge.rubric.name, judge.against), []).append(judge)
    for group in groups.values():
        if len(group) > 1:
            yield agreement(
                {judge.label: {key: each.verdict for key, each in judge.judgements.items()} for judge in group}
            )


def _of_question(judges: Sequence[Judge], question: JudgedQuestion) -> QuestionVerdicts:
    return QuestionVerdicts(
        question=question.key, text=question.text, answered=question.answered, verdicts=tuple(_on(judges, question.key))
    )


def _on(judges: Iterable[Judge], key: str) -> Iterator[Verdict]:
    for judge in judges:
        if recorded := judge.recorded.get(key):
            yield Verdict(
                judge=judge.label,
                run=judge.record.id,
                judgement=judge.judgements.get(key),
                failure=recorded.reason if recorded.status == QuestionStatus.FAILED else None,
                ended_by=recorded.ended_by,
            )
