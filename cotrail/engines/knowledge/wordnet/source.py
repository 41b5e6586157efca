"""Relations between the words of two texts.

Base forms of a text's words, as morphy(7WN) finds them, and their synsets.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct

from cotrail.common.toml_files import read_toml
from cotrail.core.ports.retriever import Sentence, ranked
from cotrail.core.questions import Hit
from cotrail.engines.knowledge.database import Database
from cotrail.engines.knowledge.wordnet.building import speech_of
from cotrail.engines.knowledge.words import Bases, capitalized, differ, terms

ENDINGS = {
    1: ("s:", "ses:s", "ves:f", "xes:x", "zes:z", "ches:ch", "shes:sh", "men:man", "ies:y"),
    2: ("s:", "ies:y", "es:e", "es:", "ed:e", "ed:", "ing:e", "ing:"),
    3: ("er:", "est:", "er:e", "est:e"),
    4: (),
}
"""Inflectional endings and their replacements, by part of speech."""

_IRREGULAR = "SELECT form, speech, base FROM irregular WHERE form IN (SELECT value FROM json_each(?))"
_SENSES = "SELECT lemma, synset FROM senses WHERE lemma IN (SELECT value FROM json_each(?))"

Senses = dict[str, set[int]]
"""The synsets of each base form."""


def senses(database: Database, terms: Sequence[str]) -> dict[str, Senses]:
    """The senses of those terms that WordNet has. A form counts only as the part of speech of its ending."""
    forms = _forms(database, terms)
    synsets: dict[tuple[str, int], set[int]] = defaultdict(set)
    for lemma, synset in database.rows(_SENSES, sorted({base for bases in forms.values() for base in bases})):
        synsets[lemma, speech_of(synset)].add(synset)
    senses_by_term: dict[str, Senses] = {}
    for (term, speech), bases in forms.items():
        for base in bases:
            if (base, speech) in synsets:
                senses_by_term.setdefault(term, {}).setdefault(base, set()).update(synsets[base, speech])
    return senses_by_term


def _forms(database: Database, terms: Sequence[str]) -> dict[tuple[str, int], set[str]]:
    """The possible base forms of each term, by part of speech; an irregular form isn't inflected regularly as well."""
    irregular: dict[tuple[str, int], set[str]] = defaultdict(set)
    for form, speech, base in database.rows(_IRREGULAR, list(terms)):
        irregular[form, speech].add(base)
    return {
        (term, speech): {term} | (irregular[term, speech] or _regular(term, endings))
        for term in terms
        for speech, endings in ENDINGS.items()
    }


def _regular(term: str, endings: Sequence[str]) -> set[str]:
    pairs = (ending.split(":") for ending in endings)
    return {term.removesuffix(old) + new for old, new in pairs if term.endswith(old)}


VERSION = 1
"""Version of the look-up; another version finds other sentences."""

MOST_LEVELS = 4
"""The most steps between a word and its hypernym; beyond are words like "object", which is a hypernym of everything."""

MOST_DISTANCE = 8
"""Words that are n steps apart score 1 - n / 8, as in KIM (Chen et al. 2018)."""

TEMPLATES: dict[str, str] = read_toml(Path(__file__).parents[1] / "wordnet_templates.toml")
"""Templates for a word of the premise and one of the hypothesis; two hyponyms of one hypernym are distinct."""

_ABOVE = """
WITH RECURSIVE above (start, synset, steps) AS (
    SELECT value, value, 0 FROM json_each(?)
    UNION
    SELECT start, target, steps + 1 FROM above JOIN links ON source = synset AND kind = 'above' WHERE steps < ?
) SELECT start, synset, min(steps) FROM above GROUP BY start, synset
"""
_WHOLES = "SELECT source, target, 1 FROM links WHERE kind = 'whole' AND source IN (SELECT value FROM json_each(?))"
_WRITTEN = "SELECT lemma, max(written) FROM senses WHERE lemma IN (SELECT value FROM json_each(?)) GROUP BY lemma"
_ANTONYMS = """
SELECT lemma, other FROM antonyms
WHERE lemma IN (SELECT value FROM json_each(?)) AND other IN (SELECT value FROM json_each(?))
"""

Reach = dict[str, dict[int, int]]
"""The synsets that each word leads to, and in how many steps."""


class _Side(Struct, frozen=True):
    """A text's words in WordNet: their base forms, hypernyms and holonyms."""

    bases: Bases
    above: Reach
    wholes: Reach


class _Related(Struct, frozen=True):
    """Two words, and how far apart they are by a relation."""

    relation: str
    one: str
    other: str
    steps: int


class WordNet:
    """Relations of a word of the premise (`text`) with one of the hypothesis (`other`), in all their senses."""

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)

    @property
    def revision(self) -> str:
        """The version of the look-up, and the digest of the database."""
        return f"wordnet-{VERSION}:{self._database.about.digest}"

    def lookup(self, text: str, other: str) -> tuple[Hit, ...]:
        """A sentence for each relation of two words, the closest first; distinct are only words without any other
        relation.
        """
        one_side, other_side = self._side(text), self._side(other)
        different = differ(one_side.bases, other_side.bases)
        relations = [each for each in self._related(one_side, other_side) if different(each.one, each.other)]
        near = {(each.one, each.other) for each in relations if each.relation != "distinct"}
        return self._told(
            [each for each in relations if each.relation != "distinct" or (each.one, each.other) not in near]
        )

    def _side(self, text: str) -> _Side:
        senses_by_term = senses(self._database, terms(text))
        synsets: dict[str, set[int]] = defaultdict(set)
        for base, meant in chain.from_iterable(each.items() for each in senses_by_term.values()):
            synsets[base] |= meant
        return _Side(
            {term: frozenset(bases) for term, bases in senses_by_term.items()},
            self._reached(synsets, _ABOVE, MOST_LEVELS),
            self._reached(synsets, _WHOLES),
        )

    def _reached(self, synsets: dict[str, set[int]], query: str, *limits: int) -> Reach:
        led: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for start, synset, steps in self._database.rows(query, sorted(set().union(*synsets.values())), *limits):
            led[start].append((synset, steps))
        reach: Reach = {}
        for word, starts in synsets.items():
            targets = sorted(chain.from_iterable(led[start] for start in starts), key=lambda each: -each[1])
            reach[word] = dict(targets)  # of several paths to a synset the shortest, which comes last
        return reach

    def _related(self, one_side: _Side, other_side: _Side) -> Iterator[_Related]:
        for one, other, steps in _reaching(one_side.above, other_side.above):
            # No step at all means that one synset has both words.
            yield _Related("hyponym" if steps else "synonym", one, other, steps)
        for other, one, steps in _reaching(other_side.above, one_side.above):
            if steps:
                yield _Related("hypernym", one, other, steps)
        for one, other, steps in _reaching(one_side.above, other_side.above, 1):
            # Both words are one step below the same synset.
            if steps == 1:
                yield _Related("distinct", one, other, 2)
        for one, other, steps in _reaching(one_side.wholes, other_side.above):
            yield _Related("part", one, other, steps)
        for other, one, steps in _reaching(other_side.wholes, one_side.above):
            yield _Related("whole", one, other, steps)
        for one, other in self._database.rows(_ANTONYMS, list(one_side.above), list(other_side.above)):
            yield _Related("antonym", one, other, 0)

    def _told(self, related: Sequence[_Related]) -> tuple[Hit, ...]:
        words = sorted({word for each in related for word in (each.one, each.other)})
        spellings = dict(self._database.rows(_WRITTEN, words))
        return ranked(
            Sentence(
                id=f"wordnet:{each.relation}/{each.one}/{each.other}".replace(" ", "_"),
                text=capitalized(TEMPLATES[each.relation].format(spellings[each.one], spellings[each.other])),
                score=1 - each.steps / MOST_DISTANCE,
            )
            for each in related
        )


def _reaching(start: Reach, goal: Reach, level: int = 0) -> Iterator[tuple[str, str, int]]:
    """Pairs of words with a synset that the first one leads to and the other one in `level` steps; and the first's
    steps.
    """
    ends: dict[int, list[str]] = defaultdict(list)
    for other, reached in goal.items():
        for synset, steps in reached.items():
            if steps == level:
                ends[synset].append(other)
    for one, reached in start.items():
        for synset, steps in reached.items():
            yield from ((one, other, steps) for other in ends.get(synset, ()))
