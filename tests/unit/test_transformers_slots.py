from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cotrail.engines.language_models.transformers.kv_cache import RowCache
    from cotrail.engines.language_models.transformers.scheduler import Slot, Slots

pytestmark = pytest.mark.usefixtures("transformers")

SHARED = list(range(100, 110))
"""Demonstrations."""


def make(rows: int, grain: int = 1) -> "tuple[Slots, RowCache]":
    import torch

    from cotrail.engines.language_models.transformers.kv_cache import RowCache, Shape
    from cotrail.engines.language_models.transformers.scheduler import Slots

    cache = RowCache([Shape(heads=1, key=1, value=1)], rows, context=64, like=torch.zeros(0))
    return Slots(cache, rows, grain), cache


def prompt(*tokens: int) -> Any:
    """A request as far as slots see it."""
    return SimpleNamespace(tokens=[*SHARED, *tokens], written=[], shared=len(SHARED), cached=0)


def read(slot: "Slot", cache: "RowCache") -> None:
    """As if the model had read what is pending: its keys are here the tokens themselves."""
    layer: Any = cache.layers[0]
    for position, token in enumerate(slot.pending, len(slot.held)):
        layer.keys[slot.row, 0, position] = token
    slot.held += slot.pending


def holds(slot: "Slot", cache: "RowCache") -> bool:
    """Whether the cache has the keys of what a slot says it holds."""
    layer: Any = cache.layers[0]
    return bool(layer.keys[slot.row, 0, : len(slot.held), 0].tolist() == slot.held)


def done(slots: "Slots", cache: "RowCache", *tokens: int) -> "tuple[Slot, int]":
    """A prompt from beginning to end: its slot, and how much of it was there."""
    request = prompt(*tokens)
    slot = slots.take(request)
    read(slot, cache)
    assert holds(slot, cache)
    slots.free(slot)
    return slot, request.cached


def test_a_questions_next_step_takes_its_slot_and_another_question_copies_the_demonstrations() -> None:
    slots, cache = make(3)
    first, cached = done(slots, cache, 1, 2, 3, 4)
    assert cached == 0
    other, cached = done(slots, cache, 5, 6, 7)
    assert (cached, other.row != first.row) == (len(SHARED), True)
    again, cached = done(slots, cache, 1, 2, 3, 9, 9)
    assert (again.row, cached) == (first.row, len(SHARED) + 3)


def test_the_slot_used_least_lately_makes_way() -> None:
    slots, cache = make(2)
    rows = [done(slots, cache, start, start)[0].row for start in (1, 2, 3, 4)]
    assert rows == [rows[0], rows[1], rows[0], rows[1]]


def test_a_follower_waits_until_its_leader_has_read_what_they_share() -> None:
    slots, cache = make(2)
    leader, follower = slots.take(prompt(1)), slots.take(prompt(2))
    assert slots.follow(leader)
    assert not slots.follow(follower)
    read(leader, cache)
    assert slots.follow(follower)
    assert follower.held == SHARED
    assert holds(follower, cache)


def test_a_follower_reads_by_itself_where_its_leader_is_gone() -> None:
    slots, _ = make(2)
    leader, follower = slots.take(prompt(1)), slots.take(prompt(2))
    slots.free(leader)
    later = slots.take(prompt(3))
    assert slots.follow(follower)
    assert follower.held == []
    assert not slots.follow(later)


def test_only_whole_grains_are_reused_and_never_the_last_token() -> None:
    slots, cache = make(2, grain=4)
    done(slots, cache, 1, 2, 3)
    assert done(slots, cache, 1, 2)[1] == 8  # of 12, the last of which has to be read
    assert done(slots, cache, 1, 2, 3)[1] == 12
