"""Files of people's labels, by which a judge is calibrated: JSON Lines, or a table separated by tabs or commas.

A label is one of the rubric's verdicts, or whether the answer is correct; all those of a file are of one sort.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import UNSET, Struct, UnsetType

from cotrail.common import text_files
from cotrail.common.json_files import decode, is_object, lines
from cotrail.common.nearest import refused_choice
from cotrail.errors import InputError

BOOLEANS = {"true": True, "false": False}

Label = str | bool
"""A verdict, or whether the answer is correct."""


class _Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    verdict: str | UnsetType = UNSET
    correct: bool | UnsetType = UNSET


def read_labels(path: Path, questions: Collection[str], verdicts: Collection[str]) -> dict[str, Label]:
    """The labels by the ids of their questions.

    questions: the ids that the run has; verdicts: the rubric's. InputError names the place of a line that has another
    form, a question twice, one that the run doesn't have, or a verdict that the rubric doesn't.
    """
    labels: dict[str, Label] = {}
    places: dict[str, str] = {}
    for place, line in _lines(path):
        label = _label(place, line, verdicts)
        if line.id not in questions:
            raise InputError(
                f"{place}: the run has no question {line.id!r}; take the line out, or name the labels' run"
            )
        if before := places.get(line.id):
            raise InputError(f"{place}: question {line.id!r} is in {before} already; remove one of them")
        labels[line.id], places[line.id] = label, place
    _check_sort(path, labels)
    return labels


def _lines(path: Path) -> Iterator[tuple[str, _Line]]:
    if is_object(path, InputError):
        for place, raw in lines(path, InputError):
            yield place, decode(raw, _Line, place, InputError)
    else:
        for place, _, cells in text_files.rows(path, (("id",), ("verdict", "correct")), InputError):
            yield place, _of_cells(place, cells)


def _of_cells(place: str, cells: Mapping[str, str]) -> _Line:
    """A line of a table; an empty cell says nothing."""
    verdict, correct = cells.get("verdict", "").strip(), cells.get("correct", "").strip()
    if correct and correct.lower() not in BOOLEANS:
        raise InputError(f"{place}: {refused_choice('`correct`', correct, BOOLEANS)}")
    return _Line(
        id=cells["id"],
        verdict=verdict or UNSET,
        correct=BOOLEANS[correct.lower()] if correct else UNSET,
    )


def _label(place: str, line: _Line, verdicts: Collection[str]) -> Label:
    match line.verdict, line.correct:
        case str() as verdict, UnsetType():
            if verdict not in verdicts:
                raise InputError(f"{place}: {refused_choice('`verdict`', verdict, verdicts)}")
            return verdict
        case UnsetType(), bool() as correct:
            return correct
    raise InputError(f"{place}: a label is either a `verdict` or whether the answer is `correct`; give one of them")


def _check_sort(path: Path, labels: Mapping[str, Label]) -> None:
    if not labels:
        raise InputError(f'{path} has no labels; write one a line, such as {{"id": "q1", "correct": true}}')
    if len({type(label) for label in labels.values()}) > 1:
        raise InputError(f"{path} has both `verdict` and `correct`; give all labels as one of them")
