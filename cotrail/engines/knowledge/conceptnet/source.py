"""Relations between the words of two texts."""

from pathlib import Path

from cotrail.core.paragraphs import Hit
from cotrail.core.ports.knowledge import Sentence, ranked
from cotrail.engines.knowledge.conceptnet.relations import TEMPLATES
from cotrail.engines.knowledge.database import Database
from cotrail.engines.knowledge.words import Bases, capitalized, differ, terms

VERSION = 1
"""Version of the look-up; another version finds other sentences."""

_FORMS = "SELECT form, base FROM forms WHERE form IN (SELECT value FROM json_each(?))"

# This join order makes each pair one look-up by the primary key, however many relations a word has.
_BETWEEN = """
SELECT start, end, relation, weight FROM json_each(?) AS starts CROSS JOIN json_each(?) AS ends
CROSS JOIN edges ON start = starts.value AND end = ends.value
"""


class ConceptNet:
    """Relations of a word of the premise (`text`) with one of the hypothesis (`other`), in either direction."""

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)

    @property
    def revision(self) -> str:
        """The version of the look-up, and the digest of the database."""
        return f"conceptnet-{VERSION}:{self._database.about.digest}"

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
