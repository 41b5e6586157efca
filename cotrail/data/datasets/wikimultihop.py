"""2WikiMultihopQA's files (`train.json`, `dev.json`, `test.json`): HotpotQA's format, plus aliases of answers.

The release with ids (`data_ids`) has `answer_id` and a file `id_aliases.json`: Wikidata's aliases and demonyms of an
answer count as correct too (Alab-NII/2wikimultihop, `2wikimultihop_evaluate_v1.1.py`). They are used if that file lies
beside the questions.
"""

from collections.abc import Container, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, entries, lines
from cotrail.data.datasets import hotpotqa
from cotrail.data.datasets.annotated import QuestionRecord
from cotrail.errors import DatasetError

ALIASES = "id_aliases.json"
"""The file of aliases, beside the questions."""


class WikiMultihopQuestion(hotpotqa.HotpotQuestion, frozen=True):
    """A question as published; in test files answers and supporting facts are empty."""

    answer_id: str | None = None


class _Names(Struct, frozen=True):
    """Aliases of an entity of Wikidata; a line of `id_aliases.json`."""

    id: str = msgspec.field(name="Q_id")
    aliases: tuple[str, ...] = ()
    demonyms: tuple[str, ...] = ()


def read(path: Path) -> Iterator[QuestionRecord]:
    """Read the questions of a file, all at once: the aliases file is large, and only the ids in use are kept of it."""
    found = [
        (place, raw, decode(raw, WikiMultihopQuestion, place, DatasetError))
        for place, raw in entries(path, DatasetError)
    ]
    names = _names(path.parent / ALIASES, {entry.answer_id for *_, entry in found if entry.answer_id})
    for place, raw, entry in found:
        answers = (entry.answer, *names.get(entry.answer_id or "", ())) if entry.answer else ()
        annotated = hotpotqa.annotated(entry, tuple(dict.fromkeys(answers)))
        yield QuestionRecord(place=place, raw=bytes(raw), annotated=annotated)


def _names(path: Path, wanted: Container[str]) -> dict[str, tuple[str, ...]]:
    """Aliases and demonyms of the wanted entities."""
    if not path.is_file():
        return {}
    known = (decode(raw, _Names, place, DatasetError) for place, raw in lines(path, DatasetError))
    return {each.id: (*each.aliases, *each.demonyms) for each in known if each.id in wanted}
