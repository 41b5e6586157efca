"""Free comparisons: their file, their runs, and what is refused; and stages of runs."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cotrail.configuration.settings import settings
from cotrail.core.demonstrations import AnswerForm
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.folders import build_index
from cotrail.errors import InputError
from cotrail.evaluation.experiments.compare.experiment import (
    CompareExperiment,
    Variation,
)
from cotrail.evaluation.experiments.compare.paper import PAPER
from cotrail.evaluation.experiments.registry import PAPERS, experiment_of, paper_of
from cotrail.evaluation.experiments.stages import GridCell, Stage
from cotrail.services.papers.files import read_experiment_file
from cotrail.services.papers.schedule import Schedule
from cotrail.services.runs.requests import RunRequest, make_request

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text("utf-8")
_, _, SECTION = PAGE.partition("## A comparison of your own")
EXAMPLE: dict[str, Any] = tomllib.loads(re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)[0])


def read(described: dict[str, Any]) -> CompareExperiment:
    experiment = experiment_of(described)
    assert isinstance(experiment, CompareExperiment)
    return experiment


def requests(experiment: CompareExperiment) -> dict[str, RunRequest]:
    """All requests by the names of their runs."""
    cells = [cell for stage in PAPER.stages(experiment) for cell in stage.cells]
    return {cell.name: make_request(PAPER.request(experiment, cell)) for cell in cells}


def cell(method: str) -> GridCell:
    return GridCell(dataset="d", model="m", method=method)


@pytest.mark.parametrize("protocol", PAPERS)
def test_each_line_is_a_paper_of_that_protocol(protocol: str) -> None:
    assert paper_of(protocol).file.__struct_config__.tag == protocol


def test_the_page_s_example_has_a_run_for_each_cell_in_the_order_of_its_file() -> None:
    runs = requests(read(EXAMPLE))
    assert list(runs) == [
        f"hotpotqa/{model}/{run}"
        for model in ("smollm2-135m", "llama")
        for run in ("one-step", "one-step/another-seed", "ircot", "ircot/short", "ircot/another-seed")
    ]
    short, seeded = runs["hotpotqa/llama/ircot/short"], runs["hotpotqa/llama/ircot/another-seed"]
    assert (short.max_sentences, short.reader, short.seed, short.temperature) == (4, "cot", 0, 0.0)
    assert (seeded.max_sentences, seeded.reader, seeded.seed, seeded.temperature) == (None, "cot", 1, 0.7)
    assert {(run.dataset, run.corpus, run.demonstrations) for run in runs.values()} == {
        ("hotpotqa", "hotpotqa", "prompts/hotpotqa.txt")
    }


def test_the_page_names_every_key() -> None:
    named = set(re.findall(r"\w+", SECTION.partition("\n## ")[0]))
    assert named >= {*CompareExperiment.__struct_fields__, *GridFiles.__struct_fields__, *Variation.__struct_fields__}


def test_settings_of_a_variation_go_before_those_of_the_file() -> None:
    varied = {"name": "v", "run": {"settings": {"retrieval": {"retrieval_count": 7}}}}
    given = {"ircot": {"max_sentences": 3, "retrieval": {"retrieval_count": 2, "max_paragraphs": 9}}}
    runs = requests(read(EXAMPLE | {"settings": given, "variations": [varied], "models": ["m"]}))
    assert runs["hotpotqa/m/ircot"].settings == given["ircot"]
    assert runs["hotpotqa/m/ircot/v"].settings == {
        "max_sentences": 3,
        "retrieval": {"retrieval_count": 7, "max_paragraphs": 9},
    }
    assert runs["hotpotqa/m/one-step"].settings == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"systems": []}, "systems"),
        ({"variations": [{"name": "a", "run": {}}, {"name": "a", "run": {}}]}, "two variations a"),
        ({"variations": [{"name": "a", "systems": ["ircott"], "run": {}}]}, "did you mean ircot"),
        ({"variations": [{"name": "a/b", "run": {}}]}, "name"),
        ({"datasets": {"hotpotqa": {"corpus": "c"}}}, "questions"),
        ({"grid": {}}, "grid"),
        ({"protocol": "gird"}, "gird"),
        ({"protocol": ["grid"]}, "grid"),
    ],
)
def test_what_a_grid_does_not_have_is_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(msgspec.ValidationError, match=said):
        experiment_of(EXAMPLE | change)
    path = tmp_path / "mine.toml"
    path.write_text("protocol = 'gird'\n")
    with pytest.raises(InputError, match=r"mine\.toml: .*gird.*did you mean grid"):
        read_experiment_file(path)


def test_a_key_that_no_run_has_is_refused() -> None:
    with pytest.raises(InputError, match="retrieval_cuont"):
        requests(read(EXAMPLE | {"run": {"retrieval_cuont": 3}}))


def test_a_stage_plans_with_its_first_cell_what_it_may_do_with_any() -> None:
    stage = Stage(
        cells=(cell("a"), cell("b")),
        choose=lambda scores: max(scores, key=lambda each: len(scores[each])),
        then=lambda best: (cell(f"{best.method}1"), cell(f"{best.method}2")),
    )
    assert [each.method for each in stage.planned] == ["a", "b", "a1", "a2"]
    assert [each.method for each in stage.possible] == ["a", "b", "a1", "a2", "b1", "b2"]
    assert Stage(cells=(cell("a"),)).planned == Stage(cells=(cell("a"),)).possible == (cell("a"),)


SAMPLE = Path(__file__).parents[2] / "cotrail" / "sample"
FILE = """
protocol = "grid"
name = "small"
systems = ["no-retrieval", "one-step"]
models = ["scripted"]
run = { reader = "cot", limit = 9 }

[datasets.sample]
format = "jsonl"
questions = "questions.jsonl"
corpus = "sample"
demonstrations = "demonstrations.txt"
test_questions = 4

[[variations]]
name = "two"
run = { sets = "sets.json", set_number = 2 }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the sample's corpus and a scripted model, and beside it the files of an experiment."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    build_index(read_corpus([SAMPLE / "corpus.jsonl"]), tmp_path / "corpora" / "sample")
    (tmp_path / "script.json").write_text(json.dumps({"name": "s", "questions": {}}))
    (tmp_path / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
    for name in ("questions.jsonl", "demonstrations.txt"):
        (tmp_path / name).write_bytes((SAMPLE / name).read_bytes())
    (tmp_path / "sets.json").write_text(json.dumps([["sample-demo-1"], ["sample-demo-4", "sample-demo-2"]]))
    return tmp_path


def opened(folder: Path, file: str = FILE) -> Schedule:
    path = folder / "grid.toml"
    path.write_text(file)
    return Schedule(read_experiment_file(path), folder)


def test_a_cell_is_prepared_as_a_run_file_with_these_keys(folder: Path) -> None:
    schedule = opened(folder)
    runs = {cell.name.removeprefix("sample/scripted/"): schedule.prepare(cell) for cell in schedule.cells}
    assert list(runs) == ["no-retrieval", "no-retrieval/two", "one-step", "one-step/two"]
    first = [json.loads(line)["id"] for line in (folder / "questions.jsonl").read_text().splitlines()[:9]]
    for name, run in runs.items():
        shots = [each.id for each in run.submission.shots[AnswerForm.COT].items]
        assert (shots == ["sample-demo-4", "sample-demo-2"]) == name.endswith("two")
        assert run.submission.settings["reading"]["reader"] == "cot"
        assert len(run.questions) == 4
        assert {question.id for question in run.questions} <= set(first)
    assert schedule.check() == []
    plan = schedule.plan()
    assert plan["files"].keys() == {"questions.jsonl", "demonstrations.txt", "sets.json"}
    assert plan["corpora"].keys() == {"sample"}


def test_gold_paragraphs_are_those_of_the_corpus_whatever_a_system_searches(folder: Path) -> None:
    schedule = opened(folder, FILE.replace(', "one-step"', ""))
    assert schedule.plan()["corpora"].keys() == {"sample"}
    assert all(not run.submission.binding.corpora for run in map(schedule.prepare, schedule.cells))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('corpus = "sample"', ""), "name the corpus"),
        (("set_number = 2", "set_number = 3"), "demonstrations.txt"),
        (("limit = 9", 'prompt = "demonstrations.txt"'), "takes no prompt"),
        (('reader = "cot"', "chains = 3"), "has no chains"),
    ],
)
def test_what_can_not_be_used_is_said_before_anything_is_queued(
    folder: Path, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        opened(folder, FILE.replace(*change)).check()


def test_runs_leave_out_the_engines_that_they_have_no_use_for(folder: Path) -> None:
    schedule = opened(folder, FILE.replace('reader = "cot"', 'extractor = "nobody", embedder = "nobody"'))
    assert {schedule.prepare(cell).submission.embedder_name for cell in schedule.cells} == {""}
