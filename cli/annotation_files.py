"""Annotation files: the sentences to be judged, one a line, to be filled in and read back."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cli.output import count
from cotrail.common.input_limits import MAX_FILE_BYTES, numbered_lines
from cotrail.common.json_files import opened
from cotrail.errors import InputError
from cotrail.evaluation.metrics.factual_errors import SentenceMark, facts
from models.queries.annotations import Chain

Place = tuple[str, int]
"""A sentence: its question's id, and its position in the chain."""


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sentence in an annotation file; `is_true` is for the annotator to fill in."""

    run: str
    question_id: str
    question: str
    position: int
    sentence: str
    is_true: bool | None = None
    note: str = ""
    paragraphs: tuple[dict[str, str], ...] = ()


def write_lines(path: Path, lines: Sequence[Line]) -> None:
    """Writes an annotation file; InputError where it can't be written or is there already, as it may hold marks."""
    try:
        with path.open("xb") as file:
            file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)
    except FileExistsError as error:
        raise InputError(f"{path} is there already and may hold marks; import it, or name another file") from error
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); name another file") from error


def lines_of(run_id: str, chains: Sequence[Chain], marks: Mapping[Place, SentenceMark]) -> Iterator[Line]:
    """The sentences to be judged, one a line, with what the annotator has said of them so far."""
    for chain in chains:
        for position in facts(chain.sentences):
            mark = marks.get((chain.question_id, position))
            yield Line(
                run=run_id,
                question_id=chain.question_id,
                question=chain.question,
                position=position,
                sentence=chain.sentences[position],
                is_true=None if mark is None else mark.is_true,
                note="" if mark is None else mark.note,
                paragraphs=tuple({"title": each.title, "text": each.text} for each in chain.paragraphs[position]),
            )


def read_lines(path: Path) -> dict[str, Line]:
    """The lines of an annotation file by their place in it; InputError says where one isn't of that form."""
    found: dict[str, Line] = {}
    with opened(path, InputError) as file:
        for number, line in numbered_lines(file, str(path), InputError, MAX_FILE_BYTES):
            if line.strip():
                found[f"{path}:{number}"] = _line(line, f"{path}:{number}")
    return found


def _line(raw: bytes, place: str) -> Line:
    try:
        return msgspec.json.decode(raw, type=Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{place}: {error}; lines are those of --export, one object each") from error


def checked(
    run_id: str, annotator: str, filled: Mapping[str, Line], known: set[str], chains: Mapping[str, Chain]
) -> list[SentenceMark]:
    """The marks of those lines that are filled in; InputError where a line, filled in or not, isn't of this run.

    known: the ids of the run's questions; chains: those of the questions that have one.
    """
    seen: dict[Place, str] = {}
    for place, line in filled.items():
        if line.run != run_id:
            raise InputError(f"{place}: this is a mark of run {line.run!r}, not of {run_id!r}; import it there")
        if line.question_id not in known:
            raise InputError(f"{place}: run {run_id} has no question {line.question_id!r}; export the file again")
        _check_sentence(place, line, chains.get(line.question_id))
        if "\0" in line.note:
            raise InputError(f"{place}: the note holds a NUL character; take it out")
        before = seen.setdefault((line.question_id, line.position), place)
        if before != place:
            raise InputError(f"{place}: the same sentence stands in {before} already; take one of them out")
    return [
        SentenceMark(
            question_id=line.question_id,
            position=line.position,
            annotator=annotator,
            is_true=line.is_true,
            note=line.note,
        )
        for line in filled.values()
        if line.is_true is not None
    ]


def _check_sentence(place: str, line: Line, chain: Chain | None) -> None:
    if chain is None:
        raise InputError(f"{place}: question {line.question_id!r} has no finished chain of thought; wait for the run")
    positions = facts(chain.sentences)
    if line.position not in positions:
        raise InputError(
            f"{place}: question {line.question_id!r} has {count(len(positions), 'sentence')} to judge, at positions "
            f"from 0; there is none at {line.position}"
        )
    if line.sentence != chain.sentences[line.position]:
        raise InputError(f"{place}: the sentence isn't the one that the run wrote; export the file again")
