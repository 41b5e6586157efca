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
from cotrail.engines.retrieval.stores import build_index
from cotrail.errors import InputError
from cotrail.evaluation.experiments.compare.experiment import (
    ComparedFiles,
    ComparedSystem,
    CompareExperiment,
    Retriever,
    Variation,
)
from cotrail.evaluation.experiments.compare.paper import PAPER
from cotrail.evaluation.experiments.paper import GridCell, Stage
from cotrail.evaluation.experiments.registry import PAPERS, experiment_of, paper_of
from cotrail.services.runs.conducting import Schedule
from cotrail.services.runs.experiments import read_experiment_file
from cotrail.services.runs.requests import RunRequest, make_request
from tests.cases import each_case
from tests.integration.three_trees import write_three_trees

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


@each_case("protocol", PAPERS)
def test_each_line_is_a_paper_of_that_protocol(protocol: str) -> None:
    assert paper_of(protocol).file.__struct_config__.tag == protocol


def test_the_page_s_example_has_a_run_for_each_cell_in_the_order_of_its_file() -> None:
    runs = requests(read(EXAMPLE))
    systems = {"no-retrieval": ("another-seed",), "ircot": ("short", "another-seed"), "one-step-15": ("another-seed",)}
    assert list(runs) == [
        "/".join(filter(None, ("hotpotqa", model, system, retriever, variation)))
        for model in ("smollm2-135m", "llama")
        for system, variations in systems.items()
        for retriever in ("", "bm25", "dense")
        for variation in ("", *variations)
    ]
    short, seeded = runs["hotpotqa/llama/ircot/bm25/short"], runs["hotpotqa/llama/ircot/dense/another-seed"]
    assert (short.max_sentences, short.reader, short.seed, short.temperature) == (4, "cot", 0, 0.0)
    assert (seeded.max_sentences, seeded.reader, seeded.seed, seeded.temperature) == (None, "cot", 1, 0.7)
    assert {(run.dataset, run.demonstrations) for run in runs.values()} == {("hotpotqa", "prompts/hotpotqa.txt")}
    assert {(name.split("/")[3], run.corpus) for name, run in runs.items() if name.count("/") == 3} >= {
        ("bm25", "hotpotqa"),
        ("dense", "hotpotqa-e5"),
    }


def test_what_the_file_says_of_fewer_runs_goes_first() -> None:
    runs = requests(read(EXAMPLE))
    counts = {name: run.retrieval_count for name, run in runs.items() if name.startswith("hotpotqa/llama/")}
    assert counts["hotpotqa/llama/ircot/bm25"] == 5
    assert counts["hotpotqa/llama/ircot/dense"] is None
    assert counts["hotpotqa/llama/one-step-15/bm25"] == counts["hotpotqa/llama/one-step-15/dense"] == 15
    assert runs["hotpotqa/llama/one-step-15/bm25"].system == "one-step"
    varied = EXAMPLE | {"variations": [{"name": "v", "run": {"corpora": ["a", "b"]}}], "models": ["m"]}
    run = requests(read(varied))["hotpotqa/m/ircot/dense/v"]
    assert (run.corpus, run.all_corpora) == (None, ("a", "b"))


def test_a_retriever_s_short_keys_are_left_out_where_a_system_has_no_such_setting() -> None:
    file = EXAMPLE | {"systems": ["searchain", "search-r1"], "run": {}, "variations": [], "models": ["m"]}
    runs = requests(read(file))
    assert runs["hotpotqa/m/searchain/bm25"].retrieval_count is None
    assert runs["hotpotqa/m/search-r1/bm25"].retrieval_count == 5


def test_the_page_names_every_key() -> None:
    named = set(re.findall(r"\w+", SECTION.partition("\n## ")[0]))
    types = (CompareExperiment, ComparedFiles, ComparedSystem, Retriever, Variation)
    assert named >= {field for each in types for field in each.__struct_fields__}


def test_settings_of_a_variation_go_before_those_of_the_file() -> None:
    varied = {"name": "v", "run": {"settings": {"retrieval": {"retrieval_count": 7}}}}
    given = {"ircot": {"max_sentences": 3, "retrieval": {"retrieval_count": 2, "max_paragraphs": 9}}}
    file = {"settings": given, "variations": [varied], "models": ["m"], "systems": ["one-step", "ircot"]}
    runs = requests(read(EXAMPLE | file | {"retrievers": {}}))
    assert runs["hotpotqa/m/ircot"].settings == given["ircot"]
    assert runs["hotpotqa/m/ircot/v"].settings == {
        "max_sentences": 3,
        "retrieval": {"retrieval_count": 7, "max_paragraphs": 9},
    }
    assert runs["hotpotqa/m/one-step"].settings == {}


@each_case(
    ("change", "said"),
    [
        ({"systems": []}, "systems"),
        ({"variations": [{"name": "a", "run": {}}, {"name": "a", "run": {}}]}, "two variations a"),
        ({"variations": [{"name": "a", "systems": ["ircott"], "run": {}}]}, "did you mean ircot"),
        ({"variations": [{"name": "a/b", "run": {}}]}, "name"),
        ({"datasets": {"hotpotqa": {"corpus": "c"}}}, "questions"),
        ({"systems": ["ircot", {"system": "ircot"}]}, "two systems ircot"),
        ({"systems": [{"name": "ircot"}]}, "system"),
        ({"systems": [{"system": "ircot", "runs": {}}]}, "runs"),
        ({"retrievers": {"bm25": {"corpus": {"hotpot": "c"}}}}, "did you mean hotpotqa"),
        ({"retrievers": {"bm/25": {}}}, "retrievers"),
        ({"datasets": {"hotpotqa": {"questions": "q", "corpus": "c", "corpora": ["d"]}}}, "one of the two"),
        ({"grid": {}}, "grid"),
        ({"protocol": "comapre"}, "comapre"),
        ({"protocol": ["compare"]}, "compare"),
    ],
)
def test_what_a_comparison_does_not_have_is_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(msgspec.ValidationError, match=said):
        experiment_of(EXAMPLE | change)
    path = tmp_path / "mine.toml"
    path.write_text("protocol = 'comapre'\n")
    with pytest.raises(InputError, match=r"mine\.toml: .*comapre.*did you mean compare"):
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
protocol = "compare"
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
    path = folder / "small.toml"
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


@each_case(
    ("change", "said"),
    [
        (('corpus = "sample"', ""), "name the corpus"),
        (("set_number = 2", "set_number = 3"), "demonstrations.txt"),
        (("limit = 9", 'prompt = "demonstrations.txt"'), "no run has a use for `prompt` demonstrations.txt"),
        (('reader = "cot"', "chains = 3"), "has no chains"),
        (('reader = "cot"', 'extractor = "nobody"'), "no run has a use for `extractor` nobody"),
        (('reader = "cot"', 'engines = { embedder = "nobody" }'), "no run has a use for `embedder` nobody"),
        (('systems = ["no-retrieval", "one-step"]', 'systems = ["search-r1"]\n'), "no reader"),
        (("[[variations]]", "[settings.ircot]\nmax_sentences = 2\n[[variations]]"), "no system 'ircot'"),
        ((', "one-step"]', "]\nretrievers = { bm25 = {} }"), "no run searches by the retriever bm25"),
        (
            ('"no-retrieval", "one-step"]', '"one-step"]\nretrievers = { bm25 = { corpus = "other" } }'),
            "`corpus` sample",
        ),
        (("run = { reader", 'retrievers = { bm25 = { corpus = "nowhere" } }\nrun = { reader'), "nowhere"),
    ],
)
def test_what_can_not_be_used_is_said_before_anything_is_queued(
    folder: Path, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        opened(folder, FILE.replace(*change)).check()


TASK = "[settings]\nzero-shot = { task = 'temporal' }\nchain-of-thought = { task = 'temporal' }\n[run]"
TREES = """
protocol = "compare"
name = "trees"
models = ["scripted"]
systems = [
  "zero-shot",
  { system = "searchain", run = { settings = { reader = "extractor" } } },
  { system = "searchain", name = "alone", run = { settings = { retrieve = false } } },
]

[run]
extractor = "reader"
demonstrations = "demonstrations.txt"
prompt = "words.txt"

[datasets.musique]
questions = "musique.jsonl"
corpus = "wikipedia"
"""


def test_runs_leave_out_what_they_have_no_use_for(folder: Path) -> None:
    write_three_trees(folder)
    build_index(read_corpus([folder / "corpus.jsonl"]), folder / "corpora" / "wikipedia")
    (folder / "words.txt").write_text("Ask for [Question]: {question}")
    with pytest.raises(InputError, match=r"no run has a use for `demonstrations` demonstrations\.txt"):
        opened(folder, TREES)
    schedule = opened(folder, TREES.replace('"zero-shot",', '"zero-shot", "chain-of-thought",').replace("[run]", TASK))
    assert schedule.check() == []
    runs = {cell.name.split("/")[2]: schedule.prepare(cell).submission for cell in schedule.cells}
    assert {name: run.binding.pins.keys() for name, run in runs.items()} == {
        "zero-shot": set(),
        "chain-of-thought": set(),
        "searchain": {"extractor"},
        "alone": set(),
    }
    assert {name for name, run in runs.items() if AnswerForm.PROMPT in run.shots} == {"searchain", "alone"}
    assert {name for name, run in runs.items() if any(each.items for each in run.shots.values())} == {
        *("chain-of-thought", "searchain", "alone")
    }
    assert {name for name, run in runs.items() if run.binding.corpora} == {"searchain"}


def test_systems_that_search_run_with_every_retriever_and_others_once(folder: Path) -> None:
    (folder / "corpora" / "other").symlink_to(folder / "corpora" / "sample")
    retrievers = """
    [retrievers.three]
    run = { retrieval_count = 3 }

    [retrievers.other]
    corpus = { sample = ["other", "sample"] }
    """
    schedule = opened(folder, FILE + retrievers)
    runs = {cell.name.removeprefix("sample/scripted/"): schedule.prepare(cell).submission for cell in schedule.cells}
    assert list(runs) == [
        *("no-retrieval", "no-retrieval/two"),
        *("one-step/three", "one-step/three/two", "one-step/other", "one-step/other/two"),
    ]
    assert {name: list(run.binding.corpora) for name, run in runs.items() if not name.endswith("two")} == {
        "no-retrieval": [],
        "one-step/three": ["sample"],
        "one-step/other": ["other", "sample"],
    }
    assert runs["one-step/three"].settings["retrieval"]["retrieval_count"] == 3
    assert schedule.check() == []
    assert schedule.plan()["corpora"].keys() == {"sample", "other"}


def test_a_dataset_that_no_retriever_names_is_searched_in_its_own_corpus(folder: Path) -> None:
    file, _, _ = FILE.partition("[[variations]]")
    again = file.partition("[datasets.sample]")[2]
    schedule = opened(folder, f'{file}[datasets.again]{again}[retrievers.other]\ncorpus = {{ again = "sample" }}\n')
    assert [cell.name.replace("/scripted/", " ") for cell in schedule.cells] == [
        "sample no-retrieval",
        "sample one-step",
        "again no-retrieval",
        "again one-step/other",
    ]
