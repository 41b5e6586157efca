"""Dated statements on the entities that a sentence names."""

import math
from pathlib import Path

from cotrail.core.paragraphs import Hit
from cotrail.core.ports.knowledge import Sentence, ranked
from cotrail.engines.knowledge.database import Database
from cotrail.engines.knowledge.wikidata.linking import link
from cotrail.engines.knowledge.wikidata.sentences import DatedStatement, sentence
from cotrail.engines.knowledge.words import content

VERSION = 1
"""Version of the look-up; another version finds other sentences."""

# A statement whose entities have no labels can't be said.
_DATED = """
SELECT item, property, number, subject.label, properties.label, kind = 'time',
    CASE kind
        WHEN 'item' THEN object.label
        WHEN 'quantity' THEN text || coalesce(' ' || object.label, '')
        ELSE text
    END AS said,
    point, start, end
FROM statements JOIN items AS subject ON subject.id = item JOIN properties ON properties.id = property
LEFT JOIN items AS object ON object.id = statements.value
WHERE item IN (SELECT value FROM json_each(?))
    AND subject.label NOTNULL AND properties.label NOTNULL AND said NOTNULL
"""


class Wikidata:
    """Dated statements on the entities that a sentence names."""

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)

    @property
    def revision(self) -> str:
        """The version of the look-up, and the digest of the database."""
        return f"wikidata-{VERSION}:{self._database.about.digest}"

    def lookup(self, text: str, other: str) -> tuple[Hit, ...]:  # noqa: ARG002 - a source of one text
        """A sentence for each dated statement; the score is its cosine similarity with the text as sets of words."""
        question_words = content(text)
        statements = (DatedStatement(*row) for row in self._database.rows(_DATED, list(link(self._database, text))))
        return ranked(_sentence(question_words, statement) for statement in statements)


def _sentence(question_words: frozenset[str], statement: DatedStatement) -> Sentence:
    text = sentence(statement)
    return Sentence(
        id=f"wikidata:Q{statement.item}#P{statement.property}/{statement.number}",
        text=text,
        score=_likeness(question_words, content(text)),
    )


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The cosine similarity of two sets of words."""
    return len(one & other) / math.sqrt(len(one) * len(other)) if one and other else 0.0
