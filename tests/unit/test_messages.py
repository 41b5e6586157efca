"""Steps' messages are read, and nothing else is."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.registry import KINDS
from cotrail.errors import InputError
from cotrail.models.records.steps import Dispatch
from cotrail.tasks.routing import read_message
from tests.cases import each_case
from tests.garbage import GARBAGE, called, message


@each_case("kind", KINDS)
def test_a_steps_message_is_read(kind: str) -> None:
    handed_on, dispatch = read_message(message(called(2**63 - 1, 7), kind), kind)
    assert dispatch == Dispatch(2**63 - 1, 7, kind)
    assert handed_on == json.loads(message(called(2**63 - 1, 7), kind))


def test_a_message_of_a_served_models_step_is_read_out_of_its_own_queue() -> None:
    delivery = {"exchange": "", "routing_key": "reason.served"}
    raw = message(called(3, 1), "reason", delivery_info=delivery)
    assert read_message(raw, "reason.served")[1] == Dispatch(3, 1, "reason")
    for other in ("reason", "read.served"):
        with pytest.raises(InputError):
            read_message(raw, other)
    with pytest.raises(InputError):
        read_message(
            message(called(3, 1), "retrieve", delivery_info={**delivery, "routing_key": "retrieve.served"}), "reason"
        )


@each_case("garbage", GARBAGE.values(), ids=GARBAGE)
def test_what_is_none_is_refused_in_few_words(garbage: bytes) -> None:
    with pytest.raises(InputError) as refused:
        read_message(garbage, "reason")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 250


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=8,
)
NAMES = ["headers", "properties", "content_type", "task", "id", "priority", "delivery_info", "delivery_tag"]


@given(st.binary())
def test_any_bytes_are_refused(garbage: bytes) -> None:
    with pytest.raises(InputError):
        read_message(garbage, "reason")


@given(VALUES, st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_whatever_is_changed_in_one_it_is_read_or_refused(body: object, changes: dict[str, Any]) -> None:
    for changed in (message(body), message(called(1, 0), **changes)):
        with suppress(InputError):
            read_message(changed, "reason")
