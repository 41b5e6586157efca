"""Parts of speech, and the numbers of synsets, which on_progress them."""

SPEECHES = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
"""The parts of speech as files are named for them, and their numbers."""

_LETTERS = {b"n": 1, b"v": 2, b"a": 3, b"s": 3, b"r": 4}
_SPAN = 100_000_000


def synset_id(letter: bytes, offset: bytes) -> int:
    """The number of the synset at an offset of the file for a part of speech, by the letter that WordNet gives it."""
    return _LETTERS[letter] * _SPAN + int(offset)


def speech_of(synset: int) -> int:
    """The part of speech of a synset, by its number."""
    return synset // _SPAN
