"""What the file of an experiment by the protocol of Rethinking with Retrieval names, read and checked."""

import json
from pathlib import Path
from typing import Any

import pytest

from cotrail.configuration.settings import settings
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import AnswerForm
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.stores import build_index
from cotrail.errors import CotrailError, DatasetError, DemonstrationError, InputError
from cotrail.evaluation.experiments.rethinking.paper import RethinkingTrial
from cotrail.services.runs.conducting import Schedule
from cotrail.services.runs.experiments import read_experiment_file
from tests.cases import each_case
from tests.integration.three_tasks import ASKED, CHAINS, EXPERIMENT, write_three_tasks

FILE = EXPERIMENT.format(name="tasks")
HEAD, _, TEXTS, _ = FILE.split("[datasets.")
ONLY_TEXTS = f"{HEAD}[datasets.{TEXTS}"
SAMPLED = {"rethinking", "self-consistency"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with corpora, knowledge and scripted models, and beside them the files of an experiment."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    write_three_tasks(tmp_path)
    for name in ("facts", "evidence"):
        build_index(read_corpus([tmp_path / "facts.jsonl"]), tmp_path / "corpora" / name)
    return tmp_path


def opened(folder: Path, file: str = FILE) -> Schedule:
    path = folder / "experiment.toml"
    path.write_text(file)
    return Schedule(read_experiment_file(path), folder)


def prepared(schedule: Schedule) -> dict[str, Any]:
    """All runs by their names."""
    return {trial.name: schedule.prepare(trial) for trial in schedule.cells}


def test_every_run_can_be_submitted(folder: Path) -> None:
    schedule = opened(folder)
    found = prepared(schedule)
    assert len(found) == len(schedule.cells) == 28
    for name, run in found.items():
        dataset, model, method, *_ = name.split("/")
        submission = run.submission
        read_as = f"{dataset}-facts" if name.endswith("gold-facts") else dataset
        assert (submission.dataset, submission.model_name, submission.system) == (read_as, model, method)
        assert len(run.questions) == ASKED[dataset]
        sampled = 1 if name.endswith("evidence-greedy") else CHAINS
        assert submission.settings.get("chains") == (sampled if method in SAMPLED else None)
        assert bool(submission.binding.entailer) == bool(submission.embedder_name) == (method == "rethinking")
    assert schedule.check() == []


def test_a_variation_is_its_settings_and_the_evidence_its_corpus(folder: Path) -> None:
    found = {name: run.submission for name, run in prepared(opened(folder)).items()}
    selection = found["strategyqa/scripted/rethinking/selection"]
    assert (selection.settings["variant"], list(selection.settings["knowledge"])) == ("selection", ["evidence"])
    assert found["strategyqa/scripted/rethinking"].binding.corpus()[0] == "facts"
    assert found["strategyqa/scripted/rethinking/evidence-unvoted"].settings["voting"] is False
    assert found["tempquestions/scripted/rethinking/by-question"].settings["query"] == "question"
    assert set(found["infotabs/scripted/rethinking/external"].binding.pins) == {"wordnet", "conceptnet"}
    assert set(found["infotabs/scripted/rethinking"].binding.pins) == {"table", "wordnet", "conceptnet"}
    assert set(selection.shots) >= {AnswerForm.COT}


def test_a_second_model_infers_and_answers_in_its_own_form(folder: Path) -> None:
    found = prepared(opened(folder, FILE.replace("chains", 'tables = [7]\ninferrer = "scripted"\nchains')))
    generating = found["strategyqa/scripted/rethinking/generation-unifiedqa"].submission
    assert generating.binding.pins["inferrer"] == generating.binding.model
    alone = found["strategyqa/scripted/zero-shot/gold-facts-unifiedqa"].submission
    assert (alone.dataset, alone.settings["layout"], alone.binding.pins) == ("strategyqa-facts", "unifiedqa", {})
    assert found["strategyqa/scripted/zero-shot/unifiedqa"].submission.dataset == "strategyqa"


def test_evidence_comes_from_the_corpus_that_has_it(folder: Path) -> None:
    bare = opened(folder, FILE.replace('corpus = "facts"\n', "").replace("chains", "tables = [5]\nchains"))
    on_evidence = {name for name in prepared(bare) if "rethinking" in name}
    assert len(on_evidence) == 5
    run = bare.prepare(
        RethinkingTrial(dataset="strategyqa", model="scripted", method="rethinking", variation="evidence")
    )
    assert {len(question.gold) for question in run.questions} == {1}


def test_what_samples_chains_samples_the_same_ones(folder: Path) -> None:
    runs = prepared(opened(folder)).values()
    sampling = [run.submission for run in runs if run.submission.system in SAMPLED]
    found = [submission for submission in sampling if submission.settings["chains"] != 1]

    def decides(binding: Binding) -> Any:
        return binding.model, binding.profile, binding.seed, binding.temperature

    assert len({decides(submission.binding) for submission in found}) == 1
    assert {submission.settings["temperature"] for submission in found} == {0.7}
    assert len({submission.shots[AnswerForm.COT].digest for submission in found}) == 1


def test_questions_are_drawn_by_the_seed(folder: Path) -> None:
    def keys(seed: int) -> set[tuple[str, ...]]:
        runs = prepared(opened(folder, FILE.replace("chains", f"test_questions = 2\nseed = {seed}\nchains")))
        return {tuple(question.id for question in run.questions) for run in runs.values()}

    assert {len(each) for each in keys(0)} == {2}
    assert keys(0) == keys(0)
    assert keys(0) != keys(3)


def test_settings_by_hand_reach_every_run_of_their_system(folder: Path) -> None:
    by_hand = FILE + "[settings.rethinking]\nthresholds = { similarity = 0.4 }\nreading = { max_answer_tokens = 9 }\n"
    runs = prepared(opened(folder, by_hand)).items()
    configured = [run.submission.settings for name, run in runs if "rethinking" in name]
    assert {each["thresholds"]["similarity"] for each in configured} == {0.4}
    assert {each["reading"]["max_answer_tokens"] for each in configured} == {9}


def test_the_plan_changes_with_whatever_decides_a_result(folder: Path) -> None:
    before = opened(folder).plan()
    assert opened(folder).plan() == before
    assert before["corpora"].keys() == {"facts", "evidence"}
    assert before["knowledge"].keys() == {"table", "wordnet", "conceptnet", "wikidata"}
    assert before["files"].keys() == {
        "strategyqa.json",
        "tempquestions.json",
        "data/maindata/infotabs_dev.tsv",
        "demonstrations.txt",
    }
    assert opened(folder, FILE.replace("chains = 3", "chains = 5")).plan() != before
    (folder / "judgements.json").write_text(json.dumps({"default": {"contradiction": 0.5}}))
    changed = opened(folder).plan()
    assert {key for key in before if changed[key] != before[key]} == {"entailers"}


@each_case(
    ("change", "error", "says"),
    [
        (('corpus = "facts"', 'corpus = "none"'), CotrailError, "none"),
        (('corpus = "facts"', ""), InputError, "strategyqa needs a `corpus`"),
        (('embedder = "scripted"', 'embedder = "nobody"'), InputError, "nobody"),
        (('models = ["scripted"]', 'models = ["nobody"]'), InputError, "nobody"),
        (('"tempquestions.json"', '"strategyqa.json"'), DatasetError, "strategyqa"),
        (("chains = 3", "test_questions = 9"), DatasetError, "9"),
        (('"demonstrations.txt"', '"facts.jsonl"'), DemonstrationError, "facts.jsonl"),
        (("chains = 3", 'chains = 3\nrules = "ours"'), InputError, "rules"),
        (("chains = 3", "chains = 3\nsettings = { zero-shot = { chains = 2 } }"), InputError, "chains"),
    ],
)
def test_what_can_not_be_used_is_said_before_anything_is_queued(
    folder: Path, change: tuple[str, str], error: type[CotrailError], says: str
) -> None:
    assert change[0] in FILE
    with pytest.raises(error, match=says):
        opened(folder, FILE.replace(*change)).plan()


def test_questions_without_answers_are_refused(folder: Path) -> None:
    asked = json.loads((folder / "strategyqa.json").read_text())
    del asked[1]["answer"]
    (folder / "strategyqa.json").write_text(json.dumps(asked))
    with pytest.raises(InputError, match="'s1' has no answer"):
        opened(folder).plan()


def test_tables_that_no_dataset_has_a_part_in_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="no dataset of the experiment"):
        opened(folder, ONLY_TEXTS.replace("chains", "tables = [4]\nchains")).check()
