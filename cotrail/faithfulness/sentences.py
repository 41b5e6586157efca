"""The sentences of a chain of thought, split by the library sentencex."""

import re
from itertools import takewhile

from cotrail.common.sentence_boundaries import segments

_WRAP = re.compile(
    r"(?:(?<=answer is)|(?<=answer is:))[^\S\n]*+\n\s*+(?!Q:|Question:)"
    r"|(?<![^\S\n])[^\S\n]*+\n[^\S\n]*+(?=[a-z])"
)
"""A line break within a sentence."""

_QUESTION = re.compile(r"\A\s*+(Q|Question):")
_MARKER = re.compile(r"^(\d{1,2}[.)]|[-*•])(\s+|$)")
_BREAK = re.compile(r"(?<!\s)[^\S\n]*+\n\s*+")


def sentences(chain: str) -> tuple[str, ...]:
    """The chain's sentences, line by line, without list markers, up to where the chain ends.

    A line continues the one before if it begins with a lower-case letter, or if that one ends in "answer is". The chain
    ends where the model continues with a question of its own, at a line that begins with "Q:" or "Question:".
    """
    lines = takewhile(lambda line: not _QUESTION.match(line), _WRAP.sub(" ", chain).splitlines())
    return tuple(sentence for line in lines for sentence in _sentences_of_line(line))


def all_sentences(text: str) -> tuple[str, ...]:
    """The sentences of the whole text, across its lines, with spaces for the line breaks within them."""
    return tuple(_BREAK.sub(" ", each.strip()) for each in segments(text) if each.strip())


def _sentences_of_line(line: str) -> list[str]:
    sentences: list[list[str]] = []
    for part in segments(line):
        text = _MARKER.sub("", part.strip())
        if any(map(str.isalpha, text)):
            sentences.append([text])
        elif text and sentences:
            # sentencex cuts "approx. 3,776." in two, so that a part without a letter belongs to the sentence before.
            # It is joined by a space whatever stood between the two: recorded runs replay with these very sentences.
            sentences[-1].append(text)
    return list(map(" ".join, sentences))
