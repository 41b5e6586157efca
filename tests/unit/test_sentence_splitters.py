"""Pipelines of spaCy as splitters; those here are made at test time, so that the tests need no model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from cotrail.core.actions.generate import REASON, Reason
from cotrail.core.actions.kind import Engines, Splitter
from cotrail.core.binding import MODEL, Binding
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.results import Generated
from cotrail.engines.language_models.result import generated
from cotrail.engines.language_models.sentence_splitters import open_pipeline, pinned
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import InputError, ModelChangedError, NotInstalledError
from cotrail.services.runs.configuring import system_settings
from cotrail.services.runs.experiments import read_experiment_file
from cotrail.services.runs.requests import RunRequest
from cotrail.systems.parts.prompting import few_shot_prompt
from cotrail.systems.registry import find_system

Install = Callable[..., str]

PACKAGE = """from pathlib import Path
from spacy.util import load_model_from_path


def load(**overrides):
    return load_model_from_path(Path(__file__).parent / "pipeline", **overrides)
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a pipeline as a package, which ends sentences at ";"; returns its name and version."""
    spacy = pytest.importorskip("spacy", reason="spaCy isn't installed")

    def install_(name: str, version: str = "1.2.0", *, sentencizer: bool = True) -> str:
        nlp = spacy.blank("en")
        if sentencizer:
            nlp.add_pipe("sentencizer", config={"punct_chars": [";"]})
        (tmp_path / name).mkdir()
        nlp.to_disk(tmp_path / name / "pipeline")
        (tmp_path / name / "__init__.py").write_text(PACKAGE)
        described = tmp_path / f"{name}-{version}.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        monkeypatch.syspath_prepend(tmp_path)
        return f"{name}@{version}"

    return install_


def settings_of(splitter: str) -> dict[str, Any]:
    request = RunRequest(system="ircot", dataset="jsonl", questions="q.jsonl", settings={"splitter": splitter})
    return system_settings(find_system("ircot"), request)


class Writing:
    """A worker's engines, whose language model writes one line; `asked` are the ends that it was given."""

    binding = Binding(model="m@1", profile="fast", temperature=0.0, seed=0)
    cancellation = None

    def __init__(self, line: str) -> None:
        self.line = line
        self.asked: list[str] = []

    def language_model(self, _: str = MODEL) -> "Writing":
        return self

    def splitter(self, name: str) -> Splitter:
        return open_pipeline(name)

    def generate(self, request: GenerationRequest, cancellation: object) -> Generated:
        self.asked.append(request.until)
        return generated(request.prompt, self.line, self.line, TokenCounts(1, 0, 1))


def perform(here: Writing, splitter: str) -> Generated:
    prompt = few_shot_prompt(demonstrations=Demonstrations(), paragraphs=(), question="Who?")
    return REASON.carry_out(Reason(prompt=prompt, max_tokens=20, splitter=splitter), cast(Engines, here))


def test_the_model_writes_its_line_to_the_end_and_the_pipeline_says_where_its_first_sentence_ends(
    install: Install,
) -> None:
    here = Writing(" It is Dr. Who. He left; so did she; then")
    written = perform(here, install("en_ends_a"))
    assert written.text == "It is Dr. Who. He left;"
    assert written.raw == here.line
    assert here.asked == ["line"]


def test_with_rules_the_model_itself_stops_behind_its_sentence() -> None:
    here = Writing(" It is so.")
    assert perform(here, "rules").text == here.line
    assert here.asked == ["sentence"]


def test_a_line_without_a_sentence_is_the_empty_text(install: Install) -> None:
    assert perform(Writing("  "), install("en_ends_b")).text == ""


@pytest.mark.parametrize("line", ["1" * 1_200_000, "a(" * 600_000, "a " * 600_000 + "; b"])
def test_a_line_without_an_end_is_one_sentence_however_long_it_is(install: Install, line: str) -> None:
    here = Writing(line)
    splitter = install("en_ends_e")
    assert perform(here, splitter).text == line.strip()
    here.line = f"It is so; {line}"
    assert perform(here, splitter).text == "It is so;"


def test_a_worker_without_the_pipeline_says_what_to_install_before_the_model_writes() -> None:
    here = Writing("It is so.")
    with pytest.raises(NotInstalledError, match="python -m spacy download en_core_web_none"):
        perform(here, "en_core_web_none@3.8.0")
    assert here.asked == []


def test_a_worker_with_another_version_of_the_pipeline_says_so(install: Install) -> None:
    install("en_ends_c", "1.2.0")
    with pytest.raises(ModelChangedError, match=r"pipeline en_ends_c 1\.1\.0, and this worker has 1\.2\.0"):
        open_pipeline("en_ends_c@1.1.0")


def test_a_pipeline_without_sentences_is_refused(install: Install) -> None:
    with pytest.raises(InputError, match="en_ends_d sets no ends of sentences"):
        perform(Writing("It is so."), install("en_ends_d", sentencizer=False))


def test_a_package_that_is_no_pipeline_is_refused() -> None:
    pytest.importorskip("spacy", reason="spaCy isn't installed")
    with pytest.raises(InputError, match="msgspec can't be loaded as a spaCy pipeline"):
        open_pipeline(pinned("msgspec"))


def test_a_run_pins_the_version_that_is_installed_where_it_is_submitted(install: Install) -> None:
    install("en_ends_e", "3.8.0")
    assert settings_of("en_ends_e")["splitter"] == "en_ends_e@3.8.0"
    assert settings_of("en_ends_e@3.7.1")["splitter"] == "en_ends_e@3.7.1"
    assert settings_of("rules")["splitter"] == "rules"
    with pytest.raises(NotInstalledError, match="install 'spacy>="):
        settings_of("en_core_web_none")


def test_an_experiment_pins_it_too(install: Install, tmp_path: Path) -> None:
    install("en_ends_f", "3.8.0")
    file = tmp_path / "experiment.toml"
    file.write_text(
        'name = "e"\n[settings.ircot]\nsplitter = "en_ends_f"\n'
        '[datasets.hotpotqa]\nquestions = "q.json"\ncorpus = "c"\ndemonstrations = "d"\n'
    )
    assert read_experiment_file(file).settings == {"ircot": {"splitter": "en_ends_f@3.8.0"}}
