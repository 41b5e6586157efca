"""The judges of a run: the runs that grade its answers, each with its rubric and its judgements."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.structs import canonical
from cotrail.errors import InputError
from cotrail.evaluation.judging.calibration import Calibration as Calibration
from cotrail.evaluation.judging.calibration import Label, calibration, read_labels
from cotrail.evaluation.judging.tallies import Graded, scores_of, seen_by
from cotrail.models.queries.judgements import (
    JudgedQuestion,
    RecordedJudgement,
    read_judged,
    read_judgements,
    read_judges,
)
from cotrail.models.queries.runs import RunRecord
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.labels import find_run
from cotrail.services.store import reading
from cotrail.systems.judge.rubric import Judgement, Rubric


class Judge(Struct, frozen=True, kw_only=True):
    """A run that judges another one.

    label: its rubric and its model, `correct/gpt-4.1`; with `#2` behind it where an earlier judge has the same.
    against: the other run of preferences; None where the rubric grades one answer alone.
    recorded: its questions by their ids, which are those of the judged run; not all need be asked.
    """

    label: str
    record: RunRecord
    rubric: Rubric
    against: str | None
    recorded: Mapping[str, RecordedJudgement]
    judgements: Mapping[str, Judgement]
    """Its judgements by question; a preference is seen from the judged run."""

    @property
    def rubric_digest(self) -> str:
        """The SHA-256 of the rubric, its words and scores."""
        return sha256(canonical(self.rubric)).hexdigest()

    @property
    def scores(self) -> Mapping[str, float]:
        """The scores of its verdicts."""
        return scores_of(self.rubric)

    @property
    def unanswered(self) -> float:
        """What a question counts that the run never answered."""
        return self.scores.get(self.rubric.unanswered, min(self.scores.values()))

    @property
    def under_way(self) -> bool:
        """Whether verdicts may still come."""
        return bool(self.of_status(QuestionStatus.OPEN) + self.of_status(QuestionStatus.BLOCKED))

    def of_status(self, status: QuestionStatus) -> int:
        """How many of its questions have this status."""
        return sum(each.status == status for each in self.recorded.values())

    def graded(self, questions: Sequence[JudgedQuestion]) -> list[Graded]:
        """The questions of the judged run, as they count in what the verdicts come to."""
        end = self._end(questions)
        return [
            Graded(
                kinds=question.kinds,
                judgement=self.judgements.get(question.key),
                unanswered=self.unanswered if place < end and self._lacks_answer(question) else None,
            )
            for place, question in enumerate(questions)
        ]

    def _lacks_answer(self, question: JudgedQuestion) -> bool:
        """Whether the judge would have been asked about the question if the run had answered it."""
        # Where one of two answers is missing, none is preferred; and a mean of verdicts so far is no estimate if all of
        # these count, and only some of the answers.
        if self.rubric.asks == "pair" or self.under_way or not question.asked:
            return False
        return not question.answered and (question.published or not self.rubric.shows("answers"))

    def _end(self, questions: Sequence[JudgedQuestion]) -> int:
        """How many questions, from the first one, the judge was asked about as far as they have answers."""
        last = max((place for place, each in enumerate(questions) if each.key in self.recorded), default=-1)
        return last + 1 if any(each.answered for each in questions[last + 1 :]) else len(questions)


def judges_of(connection: Connection, run_id: str, key: str | None = None) -> list[Judge]:
    """The judges of a run, the first one first; key: with what they say of this question alone."""
    records = read_judges(connection, run_id)
    return [
        _judge(label, record, run_id, read_judgements(connection, record.id, key))
        for label, record in zip(_labels(records), records, strict=True)
    ]


def judge_of(connection: Connection, record: RunRecord) -> Judge:
    """A judge by its own run; its preferences are seen from the first of the two runs."""
    [label] = _labels([record])
    return _judge(label, record, record.settings["runs"][0], read_judgements(connection, record.id))


def verdict_scores(connection: Connection, record: RunRecord) -> Iterator[tuple[Judge, dict[str, float | None]]]:
    """The judges of a run that grade one answer alone, each with the scores of the run's questions by their ids.

    A question that the run never answered has the rubric's score of that; None where an answer has no verdict.
    """
    questions = read_judged(connection, record.id)
    for judge in judges_of(connection, record.id):
        if judge.against is None:
            graded = judge.graded(questions)
            yield judge, {question.key: each.score for question, each in zip(questions, graded, strict=True)}


def _judge(label: str, record: RunRecord, run_id: str, recorded: list[RecordedJudgement]) -> Judge:
    rubric = msgspec.convert(record.settings["rubric"], Rubric)
    return Judge(
        label=label,
        record=record,
        rubric=rubric,
        against=next((run for run in record.settings["runs"] if run != run_id), None),
        recorded={each.key: each for each in recorded},
        judgements={each.key: judgement for each in recorded if (judgement := _judgement(each, run_id))},
    )


def _judgement(recorded: RecordedJudgement, run_id: str) -> Judgement | None:
    if recorded.details is None:
        return None
    try:
        judgement = msgspec.convert(recorded.details, Judgement)
    except msgspec.ValidationError:  # of another form than here, which `SystemSpec.details_in` takes for none too
        return None
    return seen_by(judgement, recorded.runs.index(run_id)) if len(recorded.runs) > 1 else judgement


def _labels(records: Sequence[RunRecord]) -> Iterator[str]:
    """The labels of judges, each once."""
    had: Counter[str] = Counter()
    for record in records:
        label = f"{record.settings['rubric']['name']}/{record.model_name}"
        had[label] += 1
        yield label if had[label] == 1 else f"{label}#{had[label]}"


class JudgeCalibration(Struct, frozen=True, kw_only=True):
    """A judge compared with people; label, run: see `JudgeVerdicts`."""

    label: str
    run: str
    calibration: Calibration


class RunCalibration(Struct, frozen=True, kw_only=True):
    """The judges of a run compared with people; labels: the file; labelled: how many of its questions have one."""

    run: str
    labels: str
    questions: int
    labelled: int
    judges: tuple[JudgeCalibration, ...]


def _knows(judge: Judge, labels: Mapping[str, Label]) -> bool:
    """Whether the labels are about what the judge says: its verdicts, or whether an answer is correct."""
    if any(isinstance(label, bool) for label in labels.values()):
        return judge.rubric.asks == "answer"
    return set(labels.values()) <= set(judge.scores)


def _calibrated(judge: Judge, labels: Mapping[str, Label]) -> JudgeCalibration:
    said = judge.judgements
    return JudgeCalibration(
        label=judge.label,
        run=judge.record.id,
        calibration=calibration(
            {key: each.verdict for key, each in said.items()},
            labels,
            judge.scores,
            {key: each.confidence for key, each in said.items() if each.confidence is not None},
        ),
    )


@operation("judging.calibration", "POST", "/runs/{run}/calibration", Scope.READ)
def show_calibration(run: str, labels: Path) -> RunCalibration:
    """Compare the judges of a run with people's labels of its answers; labels: their file."""
    # As far as their rubrics know these; InputError where no judge does, or a label can't be used: see `read_labels`.
    with reading() as connection:
        record = find_run(connection, run)
        judges = [judge for judge in judges_of(connection, record.id) if judge.against is None]
        if not judges:
            raise InputError(
                f"no judge graded the answers of run {record.id}; let one do it: "
                f"cotrail judge {record.id} --model NAME --calibrate {labels}"
            )
        questions = {each.key for each in read_judged(connection, record.id)}
    known = read_labels(labels, questions, dict.fromkeys(verdict for judge in judges for verdict in judge.scores))
    knowing = [judge for judge in judges if _knows(judge, known)]
    if not knowing:
        rubrics = "; ".join(f"{judge.label}: {', '.join(judge.scores)}" for judge in judges)
        raise InputError(
            f"{labels}: no judge of the run knows all verdicts of the labels, or grades answers ({rubrics})"
        )
    return RunCalibration(
        run=record.id,
        labels=str(labels),
        questions=len(questions),
        labelled=len(known),
        judges=tuple(_calibrated(judge, known) for judge in knowing),
    )
