"""Builds the database from WordNet's files."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from cotrail.engines.knowledge.database import About, Digest, drafted, finish
from cotrail.engines.knowledge.wordnet.database_files import Synset, irregular, synsets
from cotrail.errors import InputError

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
            draft.executemany(_SENSES, digest.passing(_senses(synset)))
            draft.executemany(_LINKS, digest.passing(_links(synset)))
            draft.executemany(_ANTONYMS, digest.passing(_antonyms(synset, by_id)))
        return finish(draft, str(digest), {"synsets": len(by_id)})


def _senses(synset: Synset) -> Iterator[tuple[str, int, str]]:
    return ((word.lower(), synset.id, word) for word in synset.words)


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
