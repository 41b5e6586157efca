"""ConceptNet: relations between the words of two texts, as sentences (section 4.1 of Rethinking with Retrieval)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.toml_files import read_toml
from cotrail.core.ports.retriever import Sentence, ranked
from cotrail.core.questions import Hit
from cotrail.engines.knowledge import database
from cotrail.engines.knowledge.words import Bases, capitalized, differ, terms
from cotrail.errors import InputError

TEMPLATES: dict[str, str] = read_toml(Path(__file__).with_name("conceptnet_templates.toml"))
"""Templates for sentences on two words that a relation connects, by relation, of its start and its end."""

FORM_OF = "FormOf"
"""The relation of an inflected form to its base form."""

# Builds the database from the assertions file, `conceptnet-assertions-5.7.0.csv.gz`.
#
# A line has five columns separated by tabs: the URI, the relation, its start, its end, and its weight and sources as
# JSON.

COLUMNS = 5

_ENGLISH = b"/c/en/"
_RELATION = b"/r/"

_EDGE = """
INSERT INTO edges VALUES (?, ?, ?, ?)
ON CONFLICT (start, end, relation) DO UPDATE SET weight = max(weight, excluded.weight)
"""
_FILL_FORMS = f"INSERT OR IGNORE INTO forms SELECT start, end FROM edges WHERE relation = '{FORM_OF}'"  # noqa: S608

Edge = tuple[str, str, str, float]
"""Start, end, relation and weight."""


class _Details(Struct, frozen=True):
    weight: float


def build_conceptnet(
    paths: Sequence[Path], folder: Path, on_progress: database.ProgressCallback = database.ignore_progress
) -> database.About:
    """Builds the folder's database from the files' assertions on English words.

    Other languages and relations without a template are skipped and counted. Raises InputError, which names the line,
    where one is broken.
    """
    counts = Counter(assertions=0, skipped_in_other_languages=0, skipped_of_other_relations=0)
    digest = database.Digest()
    with database.drafted(folder, "conceptnet") as draft:
        draft.executemany(_EDGE, digest.passing(_edges(paths, counts, on_progress)))
        draft.execute(_FILL_FORMS)
        if not counts["assertions"]:
            raise InputError(
                f"no English assertions in {', '.join(map(str, paths))}; name ConceptNet's assertions file"
            )
        return database.finish(draft, str(digest), counts)


def _edges(paths: Sequence[Path], counts: Counter[str], on_progress: database.ProgressCallback) -> Iterator[Edge]:
    for path, number, line in database.lines(paths, on_progress):
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


# Relations between the words of two texts.

_FORMS = "SELECT form, base FROM forms WHERE form IN (SELECT value FROM json_each(?))"

# This join order makes each pair one look-up by the primary key, however many relations a word has.
_BETWEEN = """
SELECT start, end, relation, weight FROM json_each(?) AS starts CROSS JOIN json_each(?) AS ends
CROSS JOIN edges ON start = starts.value AND end = ends.value
"""


class ConceptNet(database.BuiltSource):
    """Relations of a word of the premise (`text`) with one of the hypothesis (`other`), in either direction."""

    name = "conceptnet"

    def lookup(self, text: str, other: str) -> tuple[Hit, ...]:
        """A sentence for each assertion on a word of each text; the weight is the score."""
        one_side, other_side = self._bases(text), self._bases(other)
        edges = {*self._between(one_side, other_side), *self._between(other_side, one_side)}
        return ranked(
            Sentence(
                id=f"conceptnet:{relation}/{start}/{end}".replace(" ", "_"),
                text=capitalized(TEMPLATES[relation].format(start, end)),
                score=weight,
            )
            for start, end, relation, weight in edges
        )

    def _between(self, one_side: Bases, other_side: Bases) -> list[tuple[str, str, str, float]]:
        different = differ(one_side, other_side)
        starts, ends = (sorted(frozenset().union(*bases.values())) for bases in (one_side, other_side))
        return [row for row in self._database.rows(_BETWEEN, starts, ends) if different(row[0], row[1])]

    def _bases(self, text: str) -> Bases:
        """The base forms of each term: the term itself and the forms that ConceptNet derives it from."""
        bases_by_term = {term: {term} for term in terms(text)}
        for form, base in self._database.rows(_FORMS, list(bases_by_term)):
            bases_by_term[form].add(base)
        return {term: frozenset(bases) for term, bases in bases_by_term.items()}
