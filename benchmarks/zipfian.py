"""Synthetic abstracts with the word distribution of natural text, any number of them, by a seed.

Words follow the Zipf-Mandelbrot law: the word of rank r, out of a million, has a probability proportional to
1 / (r + 2.7) ^ 1.05. The first ranks are English function words, so that stop words are as frequent as in English.
Lengths are log-normal with the mean of HotpotQA's abstracts, 46 words. Words are independent, except that an abstract
begins with its title.
"""

from collections.abc import Iterator
from functools import cache
from itertools import islice

import numpy as np
from msgspec import Struct

VOCABULARY = 1_000_000
OFFSET, EXPONENT = 2.7, 1.05
MEDIAN_WORDS, SPREAD, MOST_WORDS = 37, 0.66, 600
SENTENCE_WORDS = 17
TITLE_WORDS = 3
CHUNK = 20_000
"""Abstracts drawn at once."""

FUNCTION_WORDS = (  # noqa: SIM905
    "the of and in a to was is for as on by with he from at that it his an were are which be this has or had also "
    "first one their not who after its but they her she been new have two"
).split()

_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"]


class Abstract(Struct, frozen=True):
    """A title and sentences."""

    title: str
    sentences: tuple[str, ...]


def abstracts(count: int, seed: int) -> Iterator[Abstract]:
    """Generate `count` abstracts; a smaller count gives the first ones of a larger."""
    chunks = np.random.SeedSequence(seed).spawn(-(-count // CHUNK))
    return islice((abstract for chunk in chunks for abstract in _chunk(np.random.default_rng(chunk))), count)


def queries(count: int, seed: int) -> list[str]:
    """First sentences of the abstracts of this seed, as queries."""
    return [abstract.sentences[0] for abstract in abstracts(count, seed)]


def _chunk(random: np.random.Generator) -> Iterator[Abstract]:
    lengths = np.clip(random.lognormal(np.log(MEDIAN_WORDS), SPREAD, CHUNK), 1, MOST_WORDS).astype(int)
    title_lengths = random.integers(1, TITLE_WORDS, CHUNK, endpoint=True)
    words = iter(_words()[np.searchsorted(_cumulated(), random.random(lengths.sum()))].tolist())
    names = iter(_words()[_name_ranks(random, title_lengths.sum())].tolist())
    for length, title_length in zip(lengths.tolist(), title_lengths.tolist(), strict=True):
        title = " ".join(word.capitalize() for word in islice(names, title_length))
        yield Abstract(title, tuple(_sentences(title, list(islice(words, length)))))


def _sentences(title: str, words: list[str]) -> Iterator[str]:
    for start in range(0, len(words), SENTENCE_WORDS):
        text = " ".join(words[start : start + SENTENCE_WORDS])
        yield f" {text.capitalize()}." if start else f"{title} {text}."


def _name_ranks(random: np.random.Generator, count: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Names are rarer than other words: their ranks' logarithms are uniform."""
    return np.exp(random.uniform(np.log(1000), np.log(VOCABULARY), count)).astype(np.int64)


@cache
def _words() -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
    made_up = [_word(number) for number in range(VOCABULARY - len(FUNCTION_WORDS))]
    return np.array(FUNCTION_WORDS + made_up, dtype=object)


def _word(number: int) -> str:
    """The number-th word of two or more syllables; words of low rank are short."""
    number += len(_SYLLABLES)
    syllables = []
    while number >= 0:
        number, syllable = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[syllable])
        number -= 1
    return "".join(reversed(syllables))


@cache
def _cumulated() -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    weights = (np.arange(1, VOCABULARY + 1) + OFFSET) ** -EXPONENT
    return np.cumsum(weights / weights.sum())
