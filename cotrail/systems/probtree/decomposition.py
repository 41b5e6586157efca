"""The decomposition of a question into a tree, as a model writes it (Cao et al., 2023, section 3.1)."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from cotrail.common.storable_text import storable
from cotrail.core.results import Generated
from cotrail.systems.parts.token_scores import mean_score
from cotrail.systems.probtree.tree import UNKNOWN, Node, has_references

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s*")


class Parts(Struct, frozen=True):
    """The questions that a question is decomposed into, and the mean log probability of their list."""

    questions: tuple[str, ...]
    score: float


NO_PARTS = Parts((), UNKNOWN)


def tree_of(question: str, written: Generated, most: int) -> tuple[Node, ...]:
    """The tree under a question, in post-order, of at most so many nodes.

    The question's own parts are those under it, or else the first ones, since a model may copy it with a difference.
    """
    parts = parts_in(written)
    nodes: list[Node] = []
    room = most - 1

    def plant(asked: str, own: Parts, above: frozenset[str]) -> int:
        nonlocal room
        above |= {asked}
        if has_references(asked) or len(own.questions) > room or above & set(own.questions):
            own = NO_PARTS
        room -= len(own.questions)
        children = tuple(plant(each, parts.get(each, NO_PARTS), above) for each in own.questions)
        score = own.score if children else None
        nodes.append(Node(number=len(nodes), question=asked, children=children, decomposition=score))
        return len(nodes) - 1

    plant(question, parts.get(question, next(iter(parts.values()), NO_PARTS)), frozenset())
    return tuple(nodes)


def parts_in(written: Generated) -> Mapping[str, Parts]:
    """The parts of each question that a text names, before its JSON ends or breaks off."""
    return {
        storable(name.strip()): Parts(_questions(value), UNKNOWN if score is None else score)
        for name, value, start, end in _entries(written.text)
        for score in (mean_score(written, start, end),)
    }


def _questions(value: Any) -> tuple[str, ...]:
    """The questions in a list; none where it holds anything else."""
    asked = value if isinstance(value, list) else ()
    texts = tuple(storable(each.strip()) for each in asked if isinstance(each, str))
    return texts if all(texts) and len(texts) == len(asked) else ()


def _entries(text: str) -> Iterator[tuple[str, Any, int, int]]:
    """The names and values of the first JSON object in a text, and where each value begins and ends."""
    place, separator = text.find("{"), "{"
    while place >= 0 and text[place : place + 1] == separator:
        try:
            name, place = _DECODER.raw_decode(text, _behind_space(text, place + 1))
            place = _behind_space(text, place)
            if not isinstance(name, str) or text[place : place + 1] != ":":
                return
            start = _behind_space(text, place + 1)
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            return
        yield name, value, start, end
        place, separator = _behind_space(text, end), ","


def _behind_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place
