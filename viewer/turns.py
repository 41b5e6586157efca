"""Turns: what was searched for, and what a model wrote from it.

A turn goes on until a model has written: steps that were asked for together stay together. Pages of turns are made by
what they weigh, so that a question of thousands of steps is shown as fast as a short one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from cotrail.core.actions.registry import has_prompt
from cotrail.core.views import FoundParagraph, FoundParagraphs, Part, WrittenText
from cotrail.services.views.shown_steps import ShownStep
from cotrail.viewer.matched_words import MOST_CHARACTERS, SNIPPET, Piece, marked, snippet, words_of

MOST_HITS = 20
"""The paragraphs of a search that are shown beside its step; its own page has all."""

PAGE_WEIGHT, STEP_WEIGHT, NEW_WEIGHT, SEEN_WEIGHT = 1700, 16, 24, 9
"""How many elements a page of turns has, about; and each step without what it found, and paragraphs, new and seen.

No turn has more than a page: systems that write once and then compare for long have several turns of it.
"""


class ShownHit(Struct, frozen=True, kw_only=True):
    """A paragraph that a search found.

    seen_at: the turn in which it was found before, None at its first sight.
    """

    hit: FoundParagraph
    seen_at: int | None
    snippet: Sequence[Piece]
    text: Sequence[Piece]
    longer: bool

    @property
    def folded(self) -> bool:
        """Whether its text is longer than the snippet."""
        return len(self.hit.paragraph.text) > SNIPPET


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
    def rows(self) -> list[tuple[ShownStep, ...]]:
        """Its steps; those side by side in which a model wrote at the same time."""
        return [
            row
            for writes, group in groupby(self.steps, lambda step: has_prompt(step.kind))
            for row in ([tuple(group)] if writes else [(step,) for step in group])
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
    words = words_of(step.view.asked)
    return [_shown_hit(hit, turn, first_seen, words) for hit in step.view.found[:MOST_HITS]]


def first_seen(turns: Iterable[Turn]) -> dict[str, int]:
    """The turn in which each paragraph was first found."""
    return {digest: turn.number for turn in turns for digest in turn.new}


def written(step: ShownStep) -> str:
    """What a model wrote; empty where there is none."""
    return " ".join(part.text for part in step.view.parts if isinstance(part, WrittenText))


def other_parts(step: ShownStep) -> list[Part]:
    """The parts of a step but for the paragraphs that it found, where it found any."""
    return [part for part in step.view.parts if not (isinstance(part, FoundParagraphs) and part.hits)]


def _shown_hit(hit: FoundParagraph, turn: Turn, seen_at: Mapping[str, int], words: frozenset[str]) -> ShownHit:
    before = seen_at[hit.digest] if hit.digest not in turn.new else None
    text = "" if before else hit.paragraph.text
    return ShownHit(
        hit=hit,
        seen_at=before,
        snippet=snippet(text, words),
        text=marked(text[:MOST_CHARACTERS], words),
        longer=len(text) > MOST_CHARACTERS,
    )


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
