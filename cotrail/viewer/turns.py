"""Turns: what was searched for, and what a model wrote from it.

A turn continues until a model has written: steps that were asked for together stay together. Pages of turns are made by
what they weigh, so that a question of thousands of steps is shown as fast as a short one.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from cotrail.common.printable_text import without_commands
from cotrail.core import views
from cotrail.core.actions.registry import carried_out_by, has_prompt
from cotrail.services.results.steps import ShownStep

WORD = re.compile(r"(\w+(?:['’＇]\w+)*)")  # noqa: RUF001 - all three are written for possessives
"""A word, as those are that searches tell (`cotrail.engines.retrieval.manifest`)."""

LENGTH, LEAD = 220, 60
"""Characters of a snippet, and how many of them stand before the first word that matches."""


def snippet(text: str, words: Collection[str]) -> str:
    """Where a text, in one line, first has one of the words."""
    line = " ".join(without_commands(text).split())
    first = next((found.start() for found in WORD.finditer(line) if found[0] in words), 0)
    begin = 0 if first <= LENGTH - LEAD else line.rfind(" ", 0, first - LEAD) + 1
    end = begin + LENGTH
    return f"{'…' if begin else ''}{line[begin:end].rstrip()}{'…' if end < len(line) else ''}"


MOST_HITS, MOST_CHARACTERS = 20, 2000
"""The paragraphs of a search that are shown next to its step, and how much of each; the step's own page has all."""

PAGE_WEIGHT, STEP_WEIGHT, NEW_WEIGHT, SEEN_WEIGHT = 1700, 16, 24, 9
"""How many elements a page of turns has, about; and each step without what it found, and paragraphs, new and seen.

No turn has more than a page: systems that write once and then compare for long have several turns of it.
"""


Form = Literal["alone", "beside", "table"]
"""A step below the one before, steps next to each other, or a table of steps of which a line says all."""


class ShownHit(Struct, frozen=True, kw_only=True):
    """A paragraph that a search found.

    seen_at: the turn in which it was found before, None at its first sight; matched: its words that stand in the query.
    """

    hit: views.FoundParagraph
    seen_at: int | None
    matched: Sequence[str]

    @property
    def text(self) -> str:
        """Its text, as far as it is shown; empty where it was before."""
        return "" if self.seen_at else self.hit.paragraph.text[:MOST_CHARACTERS]

    @property
    def snippet(self) -> str:
        """Its text where a word of the query is."""
        return snippet(self.text, self.matched)

    @property
    def folds(self) -> bool:
        """Whether its text is longer than the snippet."""
        return len(self.text) > LENGTH

    @property
    def is_cut(self) -> bool:
        """Whether there is more of its text."""
        return len(self.hit.paragraph.text) > MOST_CHARACTERS


class Row(Struct, frozen=True, kw_only=True):
    """Steps that stand together, and how."""

    form: Form
    steps: tuple[ShownStep, ...]


class Turn(Struct, frozen=True, kw_only=True):
    """A turn; number: from 1; gold, new: digests of the gold paragraphs found, and of paragraphs first found, in it."""

    number: int
    steps: tuple[ShownStep, ...]
    gold: frozenset[str]
    new: frozenset[str]

    @property
    def heading(self) -> str:
        """What it is about: what was asked first, or else what was written."""
        asked = (step.view.asked for step in self.steps if step.view.asked)
        return next(asked, next(filter(None, map(written, self.steps)), self.steps[0].kind))

    @property
    def rows(self) -> list[Row]:
        """Its steps; those side by side in which a model wrote at the same time, and of evidence those in one table."""
        return [
            Row(form=form if len(steps) > 1 else "alone", steps=steps)
            for form, group in groupby(self.steps, _form)
            for steps in ([(step,) for step in group] if form == "alone" else [tuple(group)])
        ]

    @property
    def failed(self) -> bool:
        """Whether a step of it failed."""
        return any(step.failure for step in self.steps)

    @property
    def weight(self) -> int:
        """How many elements a page has of it, about."""
        hits = sum(min(len(step.view.found), MOST_HITS) for step in self.steps)
        new = min(len(self.new), hits)
        return STEP_WEIGHT * len(self.steps) + NEW_WEIGHT * new + SEEN_WEIGHT * (hits - new)


class TurnPage(Struct, frozen=True, kw_only=True):
    """Turns that are shown together."""

    turns: tuple[Turn, ...]

    @property
    def first(self) -> int:
        """The number of the first one."""
        return self.turns[0].number

    @property
    def last(self) -> int:
        """The number of the last one."""
        return self.turns[-1].number

    @property
    def gold(self) -> int | None:
        """The first turn that found a gold paragraph; None where none did."""
        return next((turn.number for turn in self.turns if turn.gold), None)

    @property
    def failed(self) -> int | None:
        """The first turn with a failed step; None where there is none."""
        return next((turn.number for turn in self.turns if turn.failed), None)


def turns_of(steps: Sequence[ShownStep], batches: Mapping[int, int]) -> tuple[Turn, ...]:
    """The turns of a question; batches: numbers of the steps that were asked for together, by step."""
    seen: set[str] = set()
    turns = []
    for number, group in enumerate(_groups(steps, batches), start=1):
        found = {hit.digest: hit.gold for step in group for hit in step.view.found}
        gold = frozenset(digest for digest, is_gold in found.items() if is_gold)
        turns.append(Turn(number=number, steps=group, gold=gold, new=frozenset(found.keys() - seen)))
        seen |= found.keys()
    return tuple(turns)


def pages_of(turns: Iterable[Turn]) -> tuple[TurnPage, ...]:
    """The turns on pages, each as full as it may be."""
    pages: list[list[Turn]] = []
    weight = PAGE_WEIGHT
    for turn in turns:
        if weight + turn.weight > PAGE_WEIGHT:
            pages.append([])
            weight = 0
        pages[-1].append(turn)
        weight += turn.weight
    return tuple(TurnPage(turns=tuple(page)) for page in pages)


def shown_hits(step: ShownStep, turn: Turn, first_seen: Mapping[str, int]) -> list[ShownHit]:
    """What a step found, as far as it is shown; first_seen: the turns in which paragraphs were first found."""
    try:  # imported here: what searches is loaded only where texts are looked through, and a notebook may lack it
        from cotrail.engines.retrieval.tantivy import MatchedWords
    except ModuleNotFoundError:
        matched: Callable[[str], Sequence[str]] = lambda _: ()  # noqa: E731
    else:
        matched = MatchedWords(step.view.asked).of
    found = step.view.found[:MOST_HITS]
    before = (first_seen[hit.digest] if hit.digest not in turn.new else None for hit in found)
    return [
        ShownHit(hit=hit, seen_at=seen_at, matched=() if seen_at else matched(hit.paragraph.text[:MOST_CHARACTERS]))
        for hit, seen_at in zip(found, before, strict=True)
    ]


def first_seen(turns: Iterable[Turn]) -> dict[str, int]:
    """The turn in which each paragraph was first found."""
    return {digest: turn.number for turn in turns for digest in turn.new}


def written(step: ShownStep) -> str:
    """What a model wrote; empty where there is none."""
    return " ".join(part.text for part in step.view.parts if isinstance(part, views.WrittenText))


def other_parts(step: ShownStep) -> list[views.Part]:
    """The parts of a step but for the paragraphs that it found, where it found any."""
    return [part for part in step.view.parts if not (isinstance(part, views.FoundParagraphs) and part.hits)]


def _form(step: ShownStep) -> Form:
    if has_prompt(step.kind):
        return "beside"
    said = not step.failure and all(isinstance(part, views.Note) for part in step.view.parts)
    return "table" if said and step.kind in carried_out_by("evidence") else "alone"


def _most_weight(step: ShownStep) -> int:
    return STEP_WEIGHT + NEW_WEIGHT * min(len(step.view.found), MOST_HITS)


def _groups(steps: Sequence[ShownStep], batches: Mapping[int, int]) -> Iterator[tuple[ShownStep, ...]]:
    group, weight = list[ShownStep](), 0
    for _, together in groupby(steps, lambda step: batches.get(step.sequence, -step.sequence)):
        for step in together:
            weight += _most_weight(step)
            if group and weight > PAGE_WEIGHT:
                yield tuple(group)
                group, weight = [], _most_weight(step)
            group.append(step)
        if any(has_prompt(step.kind) for step in group):
            yield tuple(group)
            group, weight = [], 0
    if group:
        yield tuple(group)


def turns_with(text: str, turns: Iterable[Turn]) -> list[Turn]:
    """The turns in which the text stands, in whichever case: in what was asked for, written, thought, called, found."""
    sought = text.casefold()
    return [
        turn for turn in turns if any(sought in each.casefold() for step in turn.steps for each in _texts_of_step(step))
    ]


def text_fragment(text: str) -> str:
    """What stands behind the fragment of an address, so that the browser goes to the text and marks it."""
    return f":~:text={quote(text, safe='').replace('-', '%2D')}"


def _texts_of_step(step: ShownStep) -> Iterator[str]:
    yield step.view.asked
    for part in step.view.parts:
        yield from _texts_of_part(part)
    if step.failure:
        yield step.failure.message


def _texts_of_part(part: views.Part) -> Iterator[str]:
    match part:
        case views.WrittenText() | views.Thoughts() | views.Note():
            yield part.text
        case views.FoundParagraphs():
            yield from (text for hit in part.hits for text in (hit.paragraph.title, hit.paragraph.text))
        case views.ScoredTexts():
            yield from (row.text for row in part.rows)
        case views.ToolCalls():
            yield from (text for call in part.calls for text in (call.name, call.arguments))
