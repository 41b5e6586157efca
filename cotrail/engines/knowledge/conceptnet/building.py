"""Builds the database from the assertions file, `conceptnet-assertions-5.7.0.csv.gz`.

A line has five columns separated by tabs: the URI, the relation, its start, its end, and its weight and sources as
JSON.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.engines.knowledge.conceptnet.relations import FORM_OF, TEMPLATES
from cotrail.engines.knowledge.database import About, Digest, drafted, finish
from cotrail.engines.knowledge.source_files import ProgressCallback, ignore_progress, lines
from cotrail.errors import InputError

COLUMNS = 5

_ENGLISH = b"/c/en/"
_RELATION = b"/r/"

# Words may be related in several senses; the greatest weight counts.
_SCHEMA = """
CREATE TABLE edges (
    start TEXT, end TEXT, relation TEXT, weight REAL, PRIMARY KEY (start, end, relation)
) WITHOUT ROWID;
CREATE TABLE forms (form TEXT, base TEXT, PRIMARY KEY (form, base)) WITHOUT ROWID;
"""
_EDGE = """
INSERT INTO edges VALUES (?, ?, ?, ?)
ON CONFLICT (start, end, relation) DO UPDATE SET weight = max(weight, excluded.weight)
"""
_FORMS = f"INSERT OR IGNORE INTO forms SELECT start, end FROM edges WHERE relation = '{FORM_OF}'"  # noqa: S608

Edge = tuple[str, str, str, float]
"""Start, end, relation and weight."""


class _Details(Struct, frozen=True):
    weight: float


def build_conceptnet(paths: Sequence[Path], folder: Path, on_progress: ProgressCallback = ignore_progress) -> About:
    """Builds the folder's database from the files' assertions on English words.

    Other languages and relations without a template are skipped and counted. Raises InputError, which names the line,
    where one is broken.
    """
    counts = Counter(assertions=0, skipped_in_other_languages=0, skipped_of_other_relations=0)
    digest = Digest()
    with drafted(folder, _SCHEMA) as draft:
        draft.executemany(_EDGE, digest.passing(_edges(paths, counts, on_progress)))
        draft.execute(_FORMS)
        if not counts["assertions"]:
            raise InputError(
                f"no English assertions in {', '.join(map(str, paths))}; name ConceptNet's assertions file"
            )
        return finish(draft, str(digest), counts)


def _edges(paths: Sequence[Path], counts: Counter[str], on_progress: ProgressCallback) -> Iterator[Edge]:
    for path, number, line in lines(paths, on_progress):
        columns = line.rstrip(b"\r\n").split(b"\t")
        if len(columns) != COLUMNS or not columns[1].startswith(_RELATION):
            raise InputError(f"{path}, line {number}: not an assertion of ConceptNet; get the file again")
        if not (columns[2].startswith(_ENGLISH) and columns[3].startswith(_ENGLISH)):
            counts["skipped_in_other_languages"] += 1
        elif (relation := columns[1][len(_RELATION) :].decode(errors="replace")) not in TEMPLATES:
            counts["skipped_of_other_relations"] += 1
        else:
            counts["assertions"] += 1
            yield _edge(relation, columns, f"{path}, line {number}")


def _edge(relation: str, columns: Sequence[bytes], place: str) -> Edge:
    try:
        # An end reads `/c/en/WORD`, often with a part of speech and a sense behind it.
        start, end = (column.decode().split("/")[3].replace("_", " ") for column in columns[2:4])
        return start, end, relation, msgspec.json.decode(columns[4], type=_Details).weight
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"{place}: not an assertion of ConceptNet ({error}); get the file again") from error
