"""Parts of speech, and the numbers of synsets, which encode them."""

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
