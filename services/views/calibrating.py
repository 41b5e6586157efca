"""Calibration of a run's judges by people's labels."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.errors import InputError
from cotrail.evaluation.judging.calibration import Calibration as Calibration
from cotrail.evaluation.judging.calibration import calibration
from cotrail.evaluation.judging.labels import Label, read_labels
from cotrail.models.queries.judgements import read_judged
from cotrail.models.queries.runs import RunRecord
from cotrail.services.views.judges import Judge, judges_of, scores_of
from cotrail.systems.judge.rubric import Rubric


class JudgeCalibration(Struct, frozen=True, kw_only=True):
    """A judge beside people; label, run: see `JudgeVerdicts`."""

    label: str
    run: str
    calibration: Calibration


class RunCalibration(Struct, frozen=True, kw_only=True):
    """The judges of a run beside people; labels: the file; labelled: how many of the run's questions have one."""

    run: str
    labels: str
    questions: int
    labelled: int
    judges: tuple[JudgeCalibration, ...]


def calibrate(connection: Connection, record: RunRecord, path: Path) -> RunCalibration:
    """Compare the judges of a run with the labels of a file, as far as their rubrics know these.

    InputError where no judge does, or a label can't be used: see `read_labels`.
    """
    judges = [judge for judge in judges_of(connection, record.id) if judge.against is None]
    if not judges:
        raise InputError(
            f"no judge graded the answers of run {record.id}; let one do it: "
            f"cotrail judge {record.id} --model NAME --calibrate {path}"
        )
    questions = {each.key for each in read_judged(connection, record.id)}
    labels = read_labels(path, questions, dict.fromkeys(verdict for judge in judges for verdict in judge.scores))
    knowing = [judge for judge in judges if _knows(judge, labels)]
    if not knowing:
        rubrics = "; ".join(f"{judge.label}: {', '.join(judge.scores)}" for judge in judges)
        raise InputError(f"{path}: no judge of the run knows all verdicts of the labels, or grades answers ({rubrics})")
    return RunCalibration(
        run=record.id,
        labels=str(path),
        questions=len(questions),
        labelled=len(labels),
        judges=tuple(_calibrated(judge, labels) for judge in knowing),
    )


def check_labels(connection: Connection, run_id: str, rubric: Rubric, path: Path) -> None:
    """Refuse labels of a run by which a judge with this rubric couldn't be calibrated: see `calibrate`."""
    if rubric.asks == "pair":
        raise InputError("a preference can't be calibrated: labels are of one answer alone; leave out --calibrate")
    read_labels(path, {each.key for each in read_judged(connection, run_id)}, scores_of(rubric))


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
