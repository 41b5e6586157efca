"""What is certain to block a run is refused as it is submitted, and a host that only submits needs no libraries."""

import struct
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cotrail.common import optional_packages
from cotrail.common.optional_packages import install_extra
from cotrail.configuration.settings import settings
from cotrail.engines.language_models import sentence_splitters
from cotrail.errors import InputError
from cotrail.services.runs.experiments import read_experiment_file
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


WEIGHTS = struct.pack("<Q", 2) + b"{}"
"""A safetensors file of no tensors."""

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
    (home / "folder" / "model.safetensors").write_bytes(WEIGHTS)
    (home / "folder" / "tokenizer.json").write_text("{}")
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


def text(content: str) -> bytes:
    return struct.pack("<Q", len(content)) + content.encode()


def gguf(*, tokenizer: bool = False, template: str = "", tensors: bool = False) -> bytes:
    """A GGUF file, of one tensor at most, which begins behind its end."""
    values = {"tokenizer.ggml.model": "gpt2"} if tokenizer else {}
    values |= {"tokenizer.chat_template": template} if template else {}
    head = struct.pack("<4sIQQ", b"GGUF", 3, int(tensors), len(values))
    said = b"".join(text(name) + struct.pack("<I", 8) + text(value) for name, value in values.items())
    return head + said + (text("t") + struct.pack("<IQIQ", 1, 8, 0, 4096) if tensors else b"")


CONFIG = b'{"model_type": "bert"}'
TENSOR = b'{"t": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}'
CUT = struct.pack("<Q", len(TENSOR)) + TENSOR + b"1234"

DAMAGED: dict[str, tuple[dict[str, bytes], str]] = {
    "a GGUF file's tensors": ({"m.gguf": gguf(tokenizer=True, tensors=True)}, "its tensors are cut off"),
    "a GGUF file's head": ({"m.gguf": gguf(tokenizer=True)[:-3]}, "is no GGUF file, or damaged: it is cut off"),
    "a GGUF file's tokenizer": ({"m.gguf": gguf()}, r"m.gguf holds no tokenizer (`tokenizer.ggml.model`)"),
    "a GGUF file's template": (
        {"m.gguf": gguf(tokenizer=True, template="{% for m in %}")},
        "m.gguf: the model's chat template can't be read: Expected an expression",
    ),
    "a folder's weights": ({"m/model.safetensors": CUT}, "model.safetensors is cut off, as by a download"),
    "no weights": ({"m/model.safetensors": b"<html>not found"}, "model.safetensors is no safetensors file"),
    "no tokenizer": ({"m/tokenizer.json": b""}, "m has no tokenizer (tokenizer.json, tokenizer.model, vocab.txt"),
    "half a tokenizer": ({"m/tokenizer.json": b'{"model": '}, "tokenizer.json can't be read: Input data was truncated"),
}


def damage(home: Path, changes: dict[str, bytes]) -> str:
    """Writes a model, a whole folder but for these files, of which empty ones are missing; returns its path."""
    whole = {"config.json": CONFIG, "model.safetensors": WEIGHTS, "tokenizer.json": b"{}"}
    in_folder = any("/" in name for name in changes)
    files = ({f"m/{name}": content for name, content in whole.items()} if in_folder else {}) | changes
    for name, content in files.items():
        if content:
            (home / name).parent.mkdir(exist_ok=True)
            (home / name).write_bytes(content)
    return "m" if in_folder else "m.gguf"


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_damaged_is_refused_with_what_to_do(case: str, given: Given, home: Path) -> None:
    changes, said = DAMAGED[case]
    path = damage(home, changes)
    assert said in refused(given, home, f'[models.m]\nengine = "transformers"\npath = "{path}"\n')
    if not path.endswith(".gguf"):
        return
    assert said in refused(given, home, f'[models.m]\nengine = "llamacpp"\npath = "{path}"\n')


@pytest.mark.parametrize("case", [case for case, (changes, _) in DAMAGED.items() if "m.gguf" not in changes])
def test_models_that_compare_are_looked_at_too(case: str, given: Given, home: Path) -> None:
    changes, said = DAMAGED[case]
    damage(home, changes)
    table = EVIDENCE.replace('path = "folder"', 'path = "m"')
    compared = {"system": "rethinking", "embedder": "e", "entailer": "prompted", "demonstrations": None}
    assert said in refused(given, home, table, **compared)


def test_files_of_models_are_accepted(given: Given, home: Path) -> None:
    (home / "model.gguf").write_bytes(gguf(tokenizer=True))
    assert submitted(given, home, '[models.m]\nengine = "llamacpp"\npath = "model.gguf"\n')
    (home / "model").mkdir()
    (home / "model" / "config.json").write_text('{"model_type": "gpt2"}')
    (home / "model" / "model.safetensors").write_bytes(WEIGHTS)
    (home / "model" / "tokenizer_config.json").write_text("{}")
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


def test_a_temperature_that_a_model_is_not_sent_is_refused(given: Given, home: Path) -> None:
    omitting = f'{OPENAI}api = "chat"\nomits = ["temperature"]\n'
    assert submitted(given, home, omitting)
    assert submitted(given, home, omitting, temperature=1)
    assert submitted(given, home, OPENAI, temperature=0.7)
    assert "give temperature = 1, or none" in refused(given, home, omitting, temperature=0.7)


def test_a_model_without_batches_is_refused_for_a_run_in_batches(given: Given, home: Path) -> None:
    assert submitted(given, home, f'{OPENAI}api = "chat"\nbatch = "openai"\n', serving="batch")
    assert "or submit the run without --serving batch" in refused(given, home, OPENAI, serving="batch")


def test_what_a_system_needs_and_the_model_lacks_leads_to_a_system_that_fits(given: Given, home: Path) -> None:
    said = refused(given, home, f'{OPENAI}api = "completions"\n', system="search-r1", demonstrations=None)
    assert said.startswith("the model m is asked for completions, which know no turns")
    nearest = said.rpartition("The system search-r1 needs that; ")[2].removesuffix(" doesn't")
    assert submitted(given, home, system=nearest, model="m", demonstrations=None)
