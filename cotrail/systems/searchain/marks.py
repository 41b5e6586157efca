"""Marks: which parts of a final content which nodes support (Search-in-the-Chain, section 3.2, tracing)."""

import re
from collections.abc import Iterator, Mapping, Sequence

from cotrail.common.answer_normalization import normalized
from cotrail.core.answer_extraction import stated_answer
from cotrail.faithfulness.sentences import all_sentences
from cotrail.systems.searchain.tree import Mark, Node

_ONE = r"[\[【]\s{0,3}(?:(?:query|answer|pair)\s{0,3})?\d{1,3}(?:\s{0,3}[,;\u2013-]\s{0,3}\d{1,3}){0,30}\s{0,3}[\]】]"
_MARKS = re.compile(rf"(?:\s{{0,3}}{_ONE}){{1,30}}(?!\s?[:\uff1a])", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d{1,3})(?:\s{0,3}[\u2013-]\s{0,3}(\d{1,3}))?")


def marked_parts(final: str, cited: Mapping[int, Node]) -> tuple[tuple[Mark, ...], tuple[str, ...]]:
    """The parts of a final content by its marks "[n]", and the marks of no node, as written.

    cited: the nodes by the numbers of marks. A part reaches from the mark before it to its own.
    """
    marks, unknown, start = [], [], 0
    for match in _MARKS.finditer(final):
        numbers = tuple(dict.fromkeys(_numbers(match[0], max(cited, default=0))))
        if not cited.keys() >= set(numbers):
            unknown.append(match[0].strip())
        nodes = tuple(dict.fromkeys(cited[number].number for number in numbers if number in cited))
        text = final[start : match.start()].strip(" \t\r\n.,;:")
        start = match.end()
        if nodes and text:
            marks.append(Mark(text=text, nodes=nodes))
    return tuple(marks), tuple(unknown)


def parts_by_answers(final: str, path: Sequence[Node]) -> tuple[Mark, ...]:
    """The sentences of a final content without marks, by the nodes whose answers they contain."""
    answers = [(node.number, answer) for node in path if (answer := normalized(node.extracted or node.accepted))]
    sentences = ((sentence, normalized(sentence)) for sentence in all_sentences(final))
    marks = (
        Mark(text=sentence, nodes=tuple(number for number, answer in answers if answer in words))
        for sentence, words in sentences
    )
    return tuple(mark for mark in marks if mark.nodes)


def without_marks(final: str) -> str:
    """The final content without its marks."""
    return _MARKS.sub("", final).strip()


def stated(final: str) -> str:
    """The answer that a final content states behind "answer is", without marks; empty where it states none."""
    return stated_answer(" ".join(without_marks(final).split())) or ""


def _numbers(marks: str, most: int) -> Iterator[int]:
    """The numbers that marks name; those above `most`, which no node has, as the one above it."""
    for match in _NUMBERS.finditer(marks):
        first, last = (min(int(number), most + 1) for number in (match[1], match[2] or match[1]))
        yield from range(first, last + 1) if first <= last else (first, last)
