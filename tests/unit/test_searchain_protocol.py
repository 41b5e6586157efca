"""The experiment file of Search-in-the-Chain, and the runs that it asks for."""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cotrail.data.datasets.registry import DATASETS
from cotrail.evaluation.experiments.registry import experiment_of
from cotrail.evaluation.experiments.searchain.paper import SETTINGS, SearChainExperiment, SearChainFiles, trials
from cotrail.evaluation.experiments.sources import source
from tests.cases import each_case

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text("utf-8")
_, _, SECTION = PAGE.partition("## Search-in-the-Chain's tables")
(EXAMPLE,) = re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)

PUBLISHED = set(source("searchain").table("performance").datasets)

SMALL: dict[str, Any] = {
    "protocol": "searchain",
    "name": "small",
    "models": ["a", "b"],
    "datasets": {"hotpotqa": {"questions": "dev.json", "corpus": "hotpotqa"}},
}


def read(described: dict[str, Any]) -> SearChainExperiment:
    experiment = experiment_of(described)
    assert isinstance(experiment, SearChainExperiment)
    return experiment


def test_the_page_s_example_is_an_experiment() -> None:
    experiment = read(tomllib.loads(EXAMPLE))
    assert set(experiment.datasets) <= PUBLISHED
    assert experiment.datasets["eli5"].test_questions == 1200
    assert len(trials(experiment)) == 4 * len(experiment.datasets)


def test_the_page_names_every_key() -> None:
    named = set(re.findall(r"`(\w+)`", SECTION)) | {"settings"}
    assert named >= {*SearChainExperiment.__struct_fields__, *SearChainFiles.__struct_fields__} - {"datasets"}


def test_each_dataset_is_asked_with_each_model_whole_and_with_one_thing_left_out() -> None:
    assert [trial.name for trial in trials(read(SMALL))] == [
        "hotpotqa/a/searchain",
        "hotpotqa/a/searchain/without-retrieval",
        "hotpotqa/a/searchain/without-verification",
        "hotpotqa/a/searchain/without-completion",
        "hotpotqa/b/searchain",
        "hotpotqa/b/searchain/without-retrieval",
        "hotpotqa/b/searchain/without-verification",
        "hotpotqa/b/searchain/without-completion",
    ]
    assert [dict(SETTINGS[trial.variation]) for trial in trials(read(SMALL))[:4]] == [
        *({}, {"retrieve": False}, {"verify": False}, {"complete": False})
    ]


def test_the_published_datasets_are_ones_that_are_read() -> None:
    assert set(DATASETS) >= PUBLISHED


@each_case(
    "change",
    [
        {"datasets": {}},
        {"datasets": {"hotpotqa": {"questions": "dev.json"}}},
        {"settings": {"ircot": {"max_sentences": 3}}},
        {"temperature": -1},
        {"tables": [1]},
    ],
)
def test_what_the_protocol_does_not_have_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(SMALL | change)
