"""Texts that patterns stumble over: pieces repeated without end, behind and before others."""

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

PIECES = (
    *("1", "1,", "1.", "1 + ", "1 = ", " ", "\n", "\n ", "\t", "\r\n", "\x00", "\xa0", "a", "A", "A.", "A. ", "a. "),
    *("Ab ", "a, ", "a-", "_", "é", "שלום ", "\u0591", "\u0301", "\u0301\u0323", "a\u0301", "中", "\x1b[", "\x1b]"),
    *("(", ")", "()", "[", "]", "[]", "{", "<", ">", "<a ", "<|", '"', "'", "“", "”", "«", "`", "/", "://", "@", ":"),
    *("-", "%", "\\"),
    *(".", "..", "! ", "? ", "…", "The ", "[Question] ", "[Query 1]: ", "(1) ", "[1]", "1. ", "* ", "#1", "Dr. ", "&"),
)
ENDS = ("", "a\x01")
MOST_OWN = 6


def texts(pattern: re.Pattern[Any], characters: int) -> Iterator[str]:
    """Texts for one pattern: the pieces, its own words, and each of its words before and between others."""
    own = _own(pattern)
    for piece, end in product((*PIECES, *own), ENDS):
        yield repeated(piece, characters) + end
    for word, piece in product(own[:MOST_OWN], (*own[:MOST_OWN], " ", "1", "a", "A", "x ", "\n")):
        yield word + repeated(piece, characters)
        yield repeated(word + piece, characters) + "\x01"


def repeated(piece: str, characters: int) -> str:
    """The piece again and again, up to so many characters."""
    return piece * (characters // len(piece))


def _own(pattern: re.Pattern[Any]) -> list[str]:
    """The words that stand in a pattern, each with one character for each of its classes; the longest first."""
    words: list[str] = []
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    _collect(parser.parse(pattern.pattern, flags), words)
    return sorted(dict.fromkeys(filter(None, words)), key=len, reverse=True)


def _collect(parsed: Sequence[Any], words: list[str]) -> str:
    """Adds the words of a part of a pattern; returns the shortest text that looks like the whole part."""
    text, word = "", ""
    for code, value in parsed:
        inner = [_collect(each, words) for each in _parts(code, value)]
        one = _one(code, value) if not inner else inner[0]
        text += one
        if inner:
            words.append(word)
            word = ""
        else:
            word += one
    words += [word, text]
    return text


def _parts(code: Any, value: Any) -> list[Any]:
    """The parts inside an element of a pattern."""
    if code in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}:
        return [value[2]]
    if code in {op.ASSERT, op.ASSERT_NOT}:
        return [value[1]]
    if code is op.SUBPATTERN:
        return [value[3]]
    if code is op.ATOMIC_GROUP:
        return [value]
    return list(value[1]) if code is op.BRANCH else []


def _one(code: Any, value: Any) -> str:
    """A character that an element may match; none for a place."""
    if code is op.LITERAL:
        return chr(value)
    if code is op.IN:
        kind, first = next(each for each in value if each[0] is not op.NEGATE)
        if value[0][0] is op.NEGATE:
            return "x"
        return _one(op.LITERAL, first[0]) if kind is op.RANGE else _one(kind, first)
    if code is op.CATEGORY:
        return {op.CATEGORY_DIGIT: "1", op.CATEGORY_SPACE: " ", op.CATEGORY_WORD: "a"}.get(value, "x")
    return "" if code is op.AT else "x"
