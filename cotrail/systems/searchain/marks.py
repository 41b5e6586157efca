"""Marks: which parts of a final content which nodes support (Search-in-the-Chain, section 3.2, tracing)."""

import re
from collections.abc import Iterator, Sequence

from cotrail.common.answer_normalization import normalized
from cotrail.common.text_overlap import contained
from cotrail.core.answer_extraction import stated_answer
from cotrail.faithfulness.sentences import all_sentences
from cotrail.systems.searchain.tree import Mark, Node

_ONE = r"[\[【]\s{0,3}(?:(?:query|answer|pair)\s{0,3})?\d{1,3}(?:\s{0,3}[,;\u2013-]\s{0,3}\d{1,3}){0,30}\s{0,3}[\]】]"
_MARKS = re.compile(rf"(?:\s{{0,3}}{_ONE}){{1,30}}(?!\s?[:\uff1a])", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d{1,3})(?:\s*[\u2013-]\s*(\d{1,3}))?")


def marked_parts(final: str, path: Sequence[Node]) -> tuple[tuple[Mark, ...], tuple[str, ...]]:
    """The parts of a final content by its marks "[n]", n being the number of a pair; and marks of no pair, as written.

    A part reaches from the mark before it to its own.
    """
    marks, unknown, start = [], [], 0
    for match in _MARKS.finditer(final):
        numbers = tuple(dict.fromkeys(_numbers(match[0])))
        if any(not 1 <= number <= len(path) for number in numbers):
            unknown.append(match[0].strip())
        nodes = tuple(path[number - 1].number for number in numbers if 1 <= number <= len(path))
        text = final[start : match.start()].strip(" \t\r\n.,;:")
        start = match.end()
        if nodes and text:
            marks.append(Mark(text=text, nodes=nodes))
    return tuple(marks), tuple(unknown)


def parts_by_answers(final: str, path: Sequence[Node]) -> tuple[Mark, ...]:
    """The sentences of a final content without marks, by the nodes whose answers they contain."""
    found = (
        Mark(text=sentence, nodes=tuple(node.number for node in path if _tells(sentence, node)))
        for sentence in all_sentences(final)
    )
    return tuple(mark for mark in found if mark.nodes)


def without_marks(final: str) -> str:
    """The final content without its marks."""
    return _MARKS.sub("", final).strip()


def stated(final: str) -> str:
    """The answer that a final content states behind "answer is", without marks; empty where it states none."""
    return stated_answer(" ".join(without_marks(final).split())) or ""


def _numbers(marks: str) -> Iterator[int]:
    for match in _NUMBERS.finditer(marks):
        first, last = int(match[1]), int(match[2] or match[1])
        yield from range(first, last + 1) if first <= last else (first, last)


def _tells(sentence: str, node: Node) -> bool:
    answer = node.extracted or node.accepted
    return normalized(answer) != "" and contained(answer, sentence)
