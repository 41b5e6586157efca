"""The runs of an experiment by the protocol of Rethinking with Retrieval."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.evaluation.experiments.ircot.cells import SYSTEMS as NAMED_BY_IRCOT
from cotrail.evaluation.experiments.ircot.protocol import IRCoTExperiment
from cotrail.evaluation.experiments.registry import experiment_of
from cotrail.evaluation.experiments.rethinking.paper import (
    SETTINGS,
    RethinkingExperiment,
    TableNumber,
    TaskFiles,
    trials,
)
from cotrail.evaluation.experiments.rethinking.tables import METHODS
from cotrail.evaluation.experiments.searchain.paper import METHODS as NAMED_BY_SEARCHAIN
from cotrail.systems.registry import SYSTEMS
from cotrail.systems.rethinking.settings import RethinkingSettings
from tests.cases import each_case

FILES = TaskFiles(questions="dev.json", demonstrations="chains.txt", corpus="wikipedia")
WHOLE = RethinkingExperiment(
    name="paper",
    datasets={"strategyqa": replace(FILES, evidence="evidence"), "tempquestions": FILES, "infotabs": FILES},
    models=("gpt",),
)


def names(experiment: RethinkingExperiment, *tables: TableNumber) -> list[str]:
    return [trial.name for trial in trials(replace(experiment, tables=tables) if tables else experiment)]


def test_every_method_answers_every_task() -> None:
    assert names(WHOLE, 1) == [f"{dataset}/gpt/{method}" for dataset in WHOLE.datasets for method in METHODS]


def test_each_ablation_is_made_on_the_tasks_that_the_paper_has_it_for() -> None:
    assert names(WHOLE, 3) == [
        f"{dataset}/gpt/rethinking{query}"
        for dataset in ("strategyqa", "tempquestions")
        for query in ("/by-question", "")
    ]
    assert names(WHOLE, 4) == [f"infotabs/gpt/rethinking{knowledge}" for knowledge in ("/external", "/background", "")]
    assert names(WHOLE, 5) == [
        f"strategyqa/gpt/rethinking/{each}"
        for each in ("evidence-greedy", "evidence-unvoted", "evidence", "selection", "generation")
    ]
    assert names(WHOLE, 7) == [
        *(f"strategyqa/gpt/{each}" for each in ("zero-shot", "chain-of-thought")),
        *(f"strategyqa/gpt/{each}/gold-facts" for each in ("zero-shot", "chain-of-thought")),
        *(f"strategyqa/gpt/rethinking/generation-{each}" for each in ("zero-shot", "cot")),
    ]


def test_unifiedqa_answers_alone_and_infers_from_the_facts_of_each_model_where_it_is_named() -> None:
    inferring = replace(WHOLE, models=("gpt", "llama"), inferrer="qa")
    others = names(replace(WHOLE, models=("gpt", "llama")), 7)
    assert names(inferring, 7) == [
        *others,
        *(f"strategyqa/qa/zero-shot/{each}" for each in ("unifiedqa", "gold-facts-unifiedqa")),
        *(f"strategyqa/{each}/rethinking/generation-unifiedqa" for each in ("gpt", "llama")),
    ]
    assert names(inferring, 1, 5) == names(replace(inferring, inferrer=None), 1, 5)


def test_without_annotated_evidence_nothing_is_asked_of_it() -> None:
    bare = replace(WHOLE, datasets={"strategyqa": FILES})
    assert names(bare, 5) == []
    assert not any(trial.has_evidence for trial in trials(bare))


@given(st.lists(st.sampled_from(get_args(TableNumber)), min_size=1), st.lists(st.sampled_from(["a", "b"]), min_size=1))
def test_each_run_is_there_once_whichever_tables_need_it(tables: list[TableNumber], models: list[str]) -> None:
    found = names(replace(WHOLE, models=tuple(models)), *tables)
    assert len(found) == len(set(found))
    assert set(found) == {name for table in tables for name in names(replace(WHOLE, models=tuple(models)), table)}


@each_case("settings", SETTINGS.values())
def test_variations_are_settings_that_the_system_has(settings: dict[str, Any]) -> None:
    assert msgspec.convert(settings, RethinkingSettings) is not None


def test_only_the_section_on_evidence_looks_at_evidence() -> None:
    on_evidence = {trial.name for trial in trials(WHOLE) if trial.has_evidence}
    assert on_evidence == {*names(WHOLE, 5), *names(WHOLE, 7)[-2:]}


def test_only_strategyqa_has_facts_of_its_annotators() -> None:
    own = replace(WHOLE, datasets={"mine": replace(FILES, format="jsonl", task="commonsense")})
    assert names(own, 7) == ["mine/gpt/zero-shot", "mine/gpt/chain-of-thought"]


def test_the_tables_name_systems_as_their_specs_do() -> None:
    titles = {spec.name: spec.title for spec in SYSTEMS}
    named = NAMED_BY_IRCOT | METHODS | {"searchain": NAMED_BY_SEARCHAIN[""]}
    assert [(name, title) for name, title in titles.items() if name in named] == list(named.items())


def test_settings_of_what_is_no_method_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"no method 'rethinkin' .*; there are: zero-shot, few-shot"):
        experiment_of(msgspec.to_builtins(WHOLE) | {"settings": {"rethinkin": {}}})


def test_a_file_that_names_no_protocol_is_for_ircots() -> None:
    dataset = {"corpus": "c", "demonstrations": "d", "questions": "q"}
    assert isinstance(experiment_of({"name": "e", "datasets": {"hotpotqa": dataset}}), IRCoTExperiment)
    again = experiment_of(msgspec.to_builtins(WHOLE))
    assert again == WHOLE


@each_case(
    ("change", "says"),
    [
        ({"protocol": "selfask"}, "selfask"),
        ({"datasets": {"mine": {"questions": "q", "demonstrations": "d"}}}, "say with `task`"),
        ({"datasets": {"infotabs": {"questions": "q", "demonstrations": "d", "task": "tabular"}}}, "task of its own"),
        ({"tables": [2]}, "tables"),
        ({"tables": []}, "tables"),
        ({"readers": ["direct"]}, "readers"),
        ({"settings": {"ircot": {}}}, "ircot"),
        ({"chains": 0}, "chains"),
    ],
)
def test_what_the_protocol_does_not_have_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=says):
        experiment_of(msgspec.to_builtins(WHOLE) | change)


def test_questions_of_ones_own_say_what_they_ask() -> None:
    own = replace(WHOLE, datasets={"mine": replace(FILES, format="jsonl", task="temporal")})
    assert names(own, 3) == ["mine/gpt/rethinking/by-question", "mine/gpt/rethinking"]
