"""The lists of systems, models, datasets and corpora say all that there is, from the registries."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from typer.testing import CliRunner

from cotrail.cli.main import app
from cotrail.common.structs import field_meanings
from cotrail.data.datasets.registry import DATASETS, scoring_of
from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.metrics.answer_scores import answer_scores
from cotrail.services.library.datasets import list_datasets
from cotrail.services.library.models import describe_models, list_models
from cotrail.services.library.systems import describe_system, list_systems
from cotrail.services.runs.configuring import configure
from cotrail.services.runs.requests import make_request
from cotrail.systems.registry import SYSTEMS, find_system
from tests.cases import each_case
from tests.unit.commands import Given

NAMES = tuple(dict.fromkeys(spec.name for spec in SYSTEMS))


def listed(*arguments: str) -> Any:
    shown = CliRunner().invoke(app, [*arguments, "--json"])
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


def nested(path: str, value: Any) -> dict[str, Any]:
    head, _, rest = path.partition(".")
    return {head: nested(rest, value) if rest else value}


class Documented(Struct, frozen=True, kw_only=True):
    """Some settings."""

    one: int = 0
    """The first."""

    two: int
    """The second, whose meaning
    is long."""

    three: int = 0


class Derived(Documented, frozen=True):
    """Settings with other defaults, and one more."""

    three: int = 3
    """The last. It has one here."""

    two: int = 2


def test_the_meanings_of_fields_are_the_docstrings_below_them() -> None:
    meanings = {"one": "The first", "two": "The second, whose meaning is long"}
    assert field_meanings(Documented) == meanings
    assert field_meanings(Derived) == meanings | {"three": "The last. It has one here"}


def test_fields_of_a_class_without_a_source_have_no_meanings() -> None:
    typed = msgspec.defstruct("Typed", [("one", int)], module="nowhere")
    assert field_meanings(typed) == {}


@each_case("name", NAMES)
def test_every_setting_of_every_system_has_a_meaning(name: str) -> None:
    system = describe_system(name)
    assert system.meaning
    assert system.paper
    assert [setting.name for setting in system.settings if not setting.meaning] == []


@each_case("name", NAMES)
def test_the_described_settings_are_those_that_a_run_may_give(name: str) -> None:
    system = describe_system(name)
    given: list[dict[str, Any]] = [nested(setting.name, setting.default) for setting in system.settings]
    given += [nested(path, value) for changes in system.ablations.values() for path, value in changes.items()]
    for settings in given:
        request = make_request({"system": name, "dataset": "jsonl", "questions": "q", "settings": settings})
        assert configure(find_system(name), request).spec.name == name


def test_the_list_has_every_system_once() -> None:
    assert tuple(system.name for system in list_systems()) == NAMES
    assert [each["name"] for each in listed("systems")] == list(NAMES)


def test_the_list_of_datasets_has_what_can_be_scored_and_built() -> None:
    found = {each.name: each for each in list_datasets()}
    assert list(found) == list(DATASETS)
    for name in found:
        assert answer_scores(scoring_of(name), "yes", ["yes"]) is not None
    assert {name for name, each in found.items() if each.corpus} == {"hotpotqa", "2wikimultihopqa", "musique", "iirc"}
    assert "IIRC's questions" in listed("datasets", "iirc")["formats"]


def test_models_of_the_file_stand_beside_the_built_in_ones(home: Path) -> None:
    (home / "models.toml").write_text(
        '[models.here]\nengine = "scripted"\npath = "script.json"\n'
        '[models.gone]\nengine = "llamacpp"\npath = "gone.gguf"\ncontext = 512\n'
        '[models.far]\nengine = "openai"\nurl = "http://127.0.0.1:1/v1"\n'
        'model = "m"\ncontext = 99\nwithout = ["tools"]\n'
        '[raters.judging]\nengine = "server"\nurl = "http://127.0.0.1:1"\nmodel = "m"\n'
    )
    states = {(each.kind, each.name): each.state for each in list_models()}
    assert {name: states["model", name] for name in ("here", "gone", "far")} == {
        "here": "found",
        "gone": "missing",
        "far": "server",
    }
    assert {kind for kind, _ in states} == {"model", "embedder", "entailer", "extractor", "rater"}
    [far] = describe_models("far")
    assert (far.profiles, far.table["context"], far.location) == (("fast",), 99, "http://127.0.0.1:1/v1")
    assert "no tools" in str(far.capabilities["tools"])
    [judging] = describe_models("judging")
    assert (judging.state, judging.profiles, judging.table["api"]) == ("server", ("fast",), "rerank")
    [gone] = describe_models("gone")
    assert "can't be read" in gone.problem
    assert gone.capabilities == {}


def test_malformed_tables_are_listed_with_their_faults_beside_the_models_that_can_be_used(home: Path) -> None:
    (home / "models.toml").write_text(
        '[models.unfinished]\nengine = "openai"\nurl = "http://127.0.0.1:1/v1"\nkey = "sk-secret"\n'
        '[raters.judging]\nengine = "server"\nurl = "nowhere"\nmodel = "m"\n'
        "[embeders.near]\n"
    )
    found = {(each.kind, each.name): each for each in list_models()}
    assert found["model", "smollm2-135m"].state == "found"
    broken = {key: each for key, each in found.items() if each.state == "malformed"}
    assert {*broken} == {("model", "unfinished"), ("rater", "judging"), ("embeders", "embeders")}
    assert "no key `key`" in broken["model", "unfinished"].problem
    assert "isn't that of a server" in broken["rater", "judging"].problem
    assert "did you mean embedders?" in broken["embeders", "embeders"].problem
    assert not any(each.is_there or each.built_in or "sk-secret" in str(each) for each in broken.values())
    [described] = describe_models("unfinished")
    assert (described.engine, described.table, described.profiles) == ("openai", {}, ())
    shown = CliRunner().invoke(app, ["models"]).output
    assert all(each.problem in shown for each in broken.values())


def test_an_unknown_model_is_answered_with_the_nearest_one(home: Path) -> None:
    with pytest.raises(
        UnknownNameError, match=r"no model 'scriptd' \(did you mean scripted\?\); there are: smollm2-135m"
    ):
        describe_models("scriptd")


def test_corpora_are_listed_with_their_extent_and_removed_only_when_confirmed(home: Path, given: Given) -> None:
    given()
    [corpus] = listed("corpora")
    assert (corpus["corpus"], corpus["paragraphs"]) == ("ink", 1)
    assert corpus["bytes"] > 0
    assert listed("corpora", "ink") == corpus
    refused = CliRunner().invoke(app, ["corpora", "remove", "ink"])
    assert isinstance(refused.exception, InputError)
    assert (home / "corpora" / "ink" / "manifest.json").exists()


@each_case("arguments", [("systems",), ("systems", "ircot"), ("models",), ("datasets",), ("corpora",)])
def test_the_lists_are_printed_for_people_too(arguments: Sequence[str], home: Path) -> None:
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.strip()
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(shown.stdout)
