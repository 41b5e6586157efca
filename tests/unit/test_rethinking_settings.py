"""What runs of Rethinking with Retrieval and of its baselines need, by their settings."""

from typing import Any

import msgspec
import pytest

from cotrail.core.demonstrations import AnswerForm
from cotrail.core.ports.encoders import EMBEDDER, ENTAILER
from cotrail.core.ports.role import INFERRER
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.rethinking.settings import RethinkingSettings
from cotrail.systems.spec import Needs
from tests.cases import each_case

COT, DIRECT = AnswerForm.COT, AnswerForm.DIRECT


def needs(system: str, **settings: Any) -> Needs:
    spec = find_system(system)
    return spec.needs(msgspec.convert(settings, spec.settings))


@each_case(
    ("system", "settings", "forms"),
    [
        ("ircot", {}, {COT, DIRECT}),
        ("ircot", {"reading": {"reader": "cot"}}, {COT}),
        ("ircot", {"reading": {"reader": "none"}}, {COT}),
        ("one-step", {}, {DIRECT}),
        ("one-step", {"reading": {"reader": "none"}}, set()),
        ("no-retrieval", {"reading": {"reader": "cot"}}, {COT}),
        ("rethinking", {}, {COT}),
        ("rethinking", {"variant": "selection"}, {COT, DIRECT}),
        ("rethinking", {"variant": "generation", "reading": {"reader": "cot"}}, {COT}),
        ("self-consistency", {}, {COT}),
        ("chain-of-thought", {}, {COT}),
        ("few-shot", {}, {DIRECT}),
        ("zero-shot", {}, set()),
    ],
)
def test_demonstrations_are_needed_in_these_forms(system: str, settings: dict[str, Any], forms: set[str]) -> None:
    assert needs(system, **settings).forms == forms


@each_case("spec", SYSTEMS, ids=lambda spec: spec.name)
def test_only_these_systems_compare_sentences(spec: Any) -> None:
    comparing = {"rethinking": (EMBEDDER, ENTAILER), "verify-and-edit": (EMBEDDER,)}
    assert spec.needs(spec.settings()).engines == comparing.get(spec.name, ())


@each_case(
    ("settings", "is_needed"),
    [
        ({"variant": "selection"}, True),
        ({"variant": "generation", "inference": "unifiedqa"}, True),
        ({}, False),
        ({"variant": "selection", "reading": {"reader": "none"}}, False),
        ({"variant": "selection", "inferring_model": "own"}, False),
    ],
)
def test_a_second_model_is_needed_only_where_it_infers(settings: dict[str, Any], *, is_needed: bool) -> None:
    found = needs("rethinking", **{"inferring_model": "inferrer"} | settings).engines
    assert (INFERRER in found) == is_needed


@each_case(
    ("settings", "needed"),
    [
        ({}, (True, ())),
        ({"task": "temporal"}, (False, ("wikidata",))),
        ({"task": "tabular"}, (False, ("wordnet", "conceptnet", "table"))),
        ({"knowledge": ["evidence"]}, (True, ())),
        ({"task": "temporal", "knowledge": ["table", "corpus"]}, (True, ("table",))),
    ],
)
def test_a_corpus_and_knowledge_are_the_task_s_unless_they_are_named(
    settings: dict[str, Any], needed: tuple[bool, tuple[str, ...]]
) -> None:
    found = needs("rethinking", **settings)
    assert (found.corpus, found.knowledge) == needed


@each_case(
    ("settings", "function"),
    [
        ({}, 1),
        ({"task": "temporal"}, 2),
        ({"task": "tabular"}, 1),
        ({"variant": "selection"}, 3),
        ({"variant": "generation"}, 3),
        ({"knowledge": ["evidence"]}, 3),
        ({"variant": "selection", "function": 2}, 2),
    ],
)
def test_the_function_is_the_task_s_but_for_the_variants_and_the_dataset_s_evidence(
    settings: dict[str, Any], function: int
) -> None:
    assert msgspec.convert(settings, RethinkingSettings).faithfulness_function == function


def test_fact_generation_brings_the_demonstrations_that_it_asks_with() -> None:
    assert set(needs("rethinking", variant="generation").brought) == {AnswerForm.QUESTION, AnswerForm.SPAN}
    assert needs("rethinking", variant="selection").brought == {}
    assert not needs("zero-shot").brought[DIRECT].items


@each_case(
    "wrong",
    [
        {"chains": 0},
        {"temperature": -1},
        {"task": "spatial"},
        {"knowledge": ["dbpedia"]},
        {"function": 0},
        {"thresholds": {"similarity": 2}},
        {"thresholds": {"similarty": 0.5}},
        {"variant": "third"},
        {"retrieval_count": 0},
        {"topics": 0.5},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, RethinkingSettings)
