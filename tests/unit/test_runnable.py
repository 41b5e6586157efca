"""What is certain to block a run is refused as it is submitted, and a host that only submits needs no libraries."""

import struct
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cotrail.configuration.settings import settings
from cotrail.engines import optional_packages
from cotrail.engines.language_models import sentence_splitters
from cotrail.engines.optional_packages import install_extra
from cotrail.errors import InputError
from cotrail.services.papers.files import read_experiment_file
from cotrail.services.runs.requests import make_request
from cotrail.services.runs.submission import prepare
from tests.unit.commands import Given

OPENAI = '[models.m]\nengine = "openai"\nurl = "http://host/v1"\nmodel = "m"\ncontext = 9\n'


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """A deployment whose workers may be on other hosts."""
    monkeypatch.setenv("COTRAIL_DATABASE_URL", "postgresql://u@host/d")
    settings.cache_clear()


def without(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional_packages, "find_spec", lambda name: None if name == package else find_spec(name))


def submitted(given: Given, home: Path, table: str = "", **changes: Any) -> str:
    """Submits with a model m, or as changed; returns the identity of its model."""
    if table:
        (home / "models.toml").write_text(table)
        changes = {"model": "m", **changes}
    return prepare(make_request(given(**changes))).submission.binding.model


def refused(given: Given, home: Path, table: str = "", **changes: Any) -> str:
    with pytest.raises(InputError) as error:
        submitted(given, home, table, **changes)
    return str(error.value)


def test_a_model_whose_library_is_missing_is_refused_with_its_extra(
    given: Given, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert submitted(given, home, OPENAI)
    without("httpx2", monkeypatch)
    said = refused(given, home, OPENAI)
    assert said.startswith(f"the model m can't run here: httpx2 isn't installed: `{install_extra('openai')}`")
    assert "`cotrail down` and `cotrail up`" in said


@pytest.mark.usefixtures("elsewhere")
def test_a_host_that_only_submits_needs_no_library(given: Given, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without("httpx2", monkeypatch)
    assert submitted(given, home, OPENAI)
    assert submitted(given, home, OPENAI, settings={"splitter": "en_core_web_none@3.8.0"})


EVIDENCE = """
[embedders.e]
engine = "sentence-transformers"
path = "folder"

[models.m]
engine = "scripted"
path = "script.json"
"""


def test_a_model_that_compares_needs_its_library_too(given: Given, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "folder").mkdir()
    (home / "folder" / "model.safetensors").write_bytes(b"")
    compared = {"system": "rethinking", "embedder": "e", "entailer": "prompted", "demonstrations": None}
    said = refused(given, home, EVIDENCE, **compared)
    assert "there is no model in" in said
    assert "neither config.json nor modules.json" in said
    (home / "folder" / "modules.json").write_text("[]")
    assert submitted(given, home, EVIDENCE, **compared)
    without("sentence_transformers", monkeypatch)
    said = refused(given, home, EVIDENCE, **compared)
    missing = f"sentence_transformers isn't installed: `{install_extra('evidence')}`"
    assert f"the embedder e can't run here: {missing}" in said


SERVED = """
[embedders.e]
engine = "server"
url = "https://host/v1"
model = "e5"
key_variable = "A_KEY"

[models.m]
engine = "scripted"
path = "script.json"
"""
COMPARED = {"system": "rethinking", "embedder": "e", "entailer": "prompted", "demonstrations": None}


def test_an_embedder_behind_a_server_needs_its_key_and_an_http_client_here(
    given: Given, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refused(given, home, SERVED, **COMPARED)
    assert said.startswith("the model e needs a key, and the environment variable A_KEY isn't set")
    monkeypatch.setenv("A_KEY", "sentinel")
    assert submitted(given, home, SERVED, **COMPARED)
    without("httpx2", monkeypatch)
    missing = f"httpx2 isn't installed: `{install_extra('openai')}`"
    assert f"the embedder e can't run here: {missing}" in refused(given, home, SERVED, **COMPARED)


@pytest.mark.usefixtures("elsewhere")
def test_a_host_that_only_submits_needs_neither_the_embedder_s_key_nor_its_library(
    given: Given, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without("httpx2", monkeypatch)
    assert submitted(given, home, SERVED, **COMPARED)


def test_a_sampled_run_with_an_embedder_behind_a_server_is_fast(
    given: Given, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "sentinel")
    (home / "models.toml").write_text(SERVED)
    (home / "similarities.json").write_text("{}")

    def profile(**changes: Any) -> str:
        return prepare(make_request(given(**COMPARED | {"model": "m"} | changes))).submission.binding.profile

    assert profile() == "fast"
    (home / "models.toml").write_text(f'{SERVED}[embedders.s]\nengine = "scripted"\npath = "similarities.json"\n')
    assert profile(embedder="s") == "deterministic"
    with pytest.raises(InputError, match=r"e is behind a server.*take the profile fast"):
        profile(profile="deterministic")


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize(
    ("files", "table", "said"),
    [
        (
            {"model.gguf": '{"id": "1"}\n'},
            'engine = "llamacpp"\npath = "model.gguf"',
            "model.gguf is no GGUF file, or damaged: it doesn't begin with GGUF; its path must be a model",
        ),
        ({"model.gguf": '{"id": "1"}\n'}, 'engine = "transformers"\npath = "model.gguf"', "is no GGUF file"),
        ({"model/config.json": "{}"}, 'engine = "llamacpp"\npath = "model"', "model can't be read: Is a directory"),
        ({}, 'engine = "llamacpp"\npath = "model.gguf"', "model.gguf can't be read: No such file or directory"),
        ({}, 'engine = "transformers"\npath = "model"', "model can't be read: No such file or directory"),
        ({"model/a.txt": ""}, 'engine = "transformers"\npath = "model"', "model, which has no config.json"),
        ({"model/config.json": "{}"}, 'engine = "transformers"\npath = "model"', "config.json names no `model_type`"),
        ({"model/config.json": "["}, 'engine = "transformers"\npath = "model"', "config.json can't be read: "),
        (
            {"model/config.json": '{"model_type": "gpt2"}'},
            'engine = "transformers"\npath = "model"',
            "there is no model in",
        ),
    ],
)
def test_files_that_are_none_of_a_model_are_refused_wherever_workers_are(
    files: dict[str, str],
    table: str,
    said: str,
    remote: bool,  # noqa: FBT001 - a parameter of the test
    given: Given,
    home: Path,
    request: pytest.FixtureRequest,
) -> None:
    if remote:
        request.getfixturevalue("elsewhere")
    for name, content in files.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(content)
    assert said in refused(given, home, f"[models.m]\n{table}\n")


def test_files_of_models_are_accepted(given: Given, home: Path) -> None:
    (home / "model.gguf").write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 0))
    assert submitted(given, home, '[models.m]\nengine = "llamacpp"\npath = "model.gguf"\n')
    (home / "model").mkdir()
    (home / "model" / "config.json").write_text('{"model_type": "gpt2"}')
    (home / "model" / "model.safetensors").write_bytes(b"")
    assert submitted(given, home, '[models.m]\nengine = "transformers"\npath = "model"\n')


def test_a_pipeline_in_a_version_that_is_not_there_is_refused_with_the_command_for_that_version(
    given: Given, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pinned: dict[str, Any] = {"settings": {"splitter": "en_core_web_sm@3.7.1"}}
    download = "`python -m spacy download en_core_web_sm-3.7.1 --direct`"

    def absent(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(sentence_splitters, "version", absent)
    said = refused(given, home, **pinned)
    assert said.startswith(f"the spaCy pipeline en_core_web_sm 3.7.1 isn't installed: `{install_extra('spacy')}`")
    assert said.endswith(download)
    monkeypatch.setattr(sentence_splitters, "version", lambda _: "3.8.0")
    monkeypatch.setattr(sentence_splitters, "check_package", lambda *_: None)
    said = refused(given, home, **pinned)
    assert f"en_core_web_sm 3.8.0 is: {download}, or name en_core_web_sm@3.8.0" in said
    file = tmp_path / "experiment.toml"
    file.write_text(
        'name = "e"\n[settings.ircot]\nsplitter = "en_core_web_sm@3.7.1"\n'
        '[datasets.hotpotqa]\nquestions = "q.json"\ncorpus = "c"\ndemonstrations = "d"\n'
    )
    with pytest.raises(InputError, match=r"en_core_web_sm-3\.7\.1 --direct"):
        read_experiment_file(file)
    monkeypatch.setattr(sentence_splitters, "version", lambda _: "3.7.1")
    assert submitted(given, home, **pinned)
