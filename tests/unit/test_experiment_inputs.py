"""What an experiment's file names, read and checked."""

import json
from pathlib import Path

import msgspec
import pytest

from cotrail.configuration.settings import settings
from cotrail.core.demonstrations import AnswerForm
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.stores import build_index
from cotrail.errors import CotrailError, DatasetError, DemonstrationError, InputError, UnknownNameError
from cotrail.evaluation.experiments.ircot.cells import Cell, Line
from cotrail.evaluation.experiments.ircot.paper import IRCoTInputs
from cotrail.services.runs.conducting import Schedule
from cotrail.services.runs.experiments import read_experiment_file
from tests.cases import each_case
from tests.unit.test_datasets import musique, processed

INSTRUCTION = "Answer the following question by reasoning step-by-step."

SAMPLE = Path(__file__).parents[2] / "cotrail" / "sample"

FILE = """
name = "sample"
systems = ["no-retrieval", "one-step", "ircot"]
models = ["scripted"]
demonstration_sets = 2
demonstrations_per_set = 3
development_questions = 8
test_questions = 20
grid = { ircot_counts = [2, 4], one_step_counts = [5], distractors = [1, 2] }

[datasets.jsonl]
questions = "questions.jsonl"
corpus = "sample"
demonstrations = { cot = "with_{M}.txt" }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the sample's corpus and a scripted model, and beside it the files of an experiment."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    build_index(read_corpus([SAMPLE / "corpus.jsonl"]), tmp_path / "corpora" / "sample")
    (tmp_path / "script.json").write_text(json.dumps({"name": "s", "questions": {}}))
    (tmp_path / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
    (tmp_path / "questions.jsonl").write_bytes((SAMPLE / "questions.jsonl").read_bytes())
    demonstrations = (SAMPLE / "demonstrations.txt").read_text()
    (tmp_path / "with_1.txt").write_text(demonstrations)
    (tmp_path / "with_2.txt").write_text(demonstrations)
    return tmp_path


def inputs(folder: Path, file: str = FILE) -> Schedule:
    path = folder / "experiment.toml"
    path.write_text(file)
    return Schedule(read_experiment_file(path), folder)


def cells(opened: Schedule) -> list[Cell]:
    return [cell for cell in opened.cells if isinstance(cell, Cell)]


def asked(opened: Schedule, stage: str) -> set[str]:
    """The ids of the questions of a stage, which are the same for all its runs."""
    runs = [cell for cell in cells(opened) if cell.stage == stage]
    (ids,) = {frozenset(question.id for question in opened.prepare(cell).questions) for cell in runs}
    return set(ids)


def test_every_cell_can_be_submitted(folder: Path) -> None:
    opened = inputs(folder)
    for cell in cells(opened):
        prepared = opened.prepare(cell)
        configured, line = prepared.submission.settings, cell.line
        assert prepared.submission.system == line.system
        assert configured["reading"]["reader"] == line.reader
        assert configured.get("retrieval", {}).get("retrieval_count") == cell.retrieval_count
        assert len(prepared.questions) == (8 if cell.stage == "search" else 20)
        assert msgspec.convert(prepared.submission.provenance["cell"], Cell) == cell


def test_development_and_test_questions_have_none_in_common(folder: Path) -> None:
    opened = inputs(folder)
    drawn = [asked(opened, stage) for stage in ("search", "test")]
    assert [len(ids) for ids in drawn] == [8, 20]
    assert drawn[0].isdisjoint(drawn[1])


def test_a_file_of_each_is_taken_up_to_the_numbers_asked_for(folder: Path) -> None:
    rows = (folder / "questions.jsonl").read_text().splitlines()
    (folder / "dev.jsonl").write_text("\n".join(rows[:5]))
    (folder / "test.jsonl").write_text("\n".join(rows[5:]))
    each = FILE.replace('questions = "questions.jsonl"', 'development = "dev.jsonl"\ntest = "test.jsonl"')
    opened = inputs(folder, each)
    assert len(asked(opened, "search")) == 5
    assert len(asked(opened, "test")) == 20


def test_all_forms_and_all_m_of_a_set_show_the_same_demonstrations(folder: Path) -> None:
    opened = inputs(folder)
    shown: dict[int, set[tuple[str, ...]]] = {}
    for cell in cells(opened):
        for shots in opened.prepare(cell).submission.shots.values():
            shown.setdefault(cell.demonstration_set, set()).add(tuple(each.id for each in shots.items))
    assert [len(ids) for ids in shown.values()] == [1, 1]
    assert shown[1] != shown[2]


def test_sets_that_a_dataset_names_are_shown_as_they_are(folder: Path) -> None:
    named = [["sample-demo-4", "sample-demo-1"], ["sample-demo-2", "sample-demo-3", "sample-demo-1"]]
    (folder / "sets.json").write_text(json.dumps(named))
    opened = inputs(folder, f'{FILE}sets = "sets.json"\n')
    for cell in cells(opened):
        for shots in opened.prepare(cell).submission.shots.values():
            assert [each.id for each in shots.items] == named[cell.demonstration_set - 1]
    assert "sets.json" in opened.plan()["files"]


def test_without_retrieval_demonstrations_have_no_paragraphs(folder: Path) -> None:
    opened = inputs(folder)
    bare = [cell for cell in cells(opened) if cell.line.system == "no-retrieval"]
    shots = [opened.prepare(cell).submission.shots[AnswerForm.DIRECT] for cell in bare]
    assert {each.paragraphs for demonstrations in shots for each in demonstrations.items} == {()}


def test_released_rules_are_in_the_settings(folder: Path) -> None:
    opened = inputs(folder, FILE.replace("grid =", 'rules = "released"\ngrid ='))
    (cell, *_) = [cell for cell in cells(opened) if cell.line.system == "ircot"]
    configured = opened.prepare(cell).submission.settings
    assert configured["max_sentences"] == 10
    assert configured["prompting"] == {"drop": "released", "pinned": "top"}
    assert configured["pages"]["scope"] == "after"
    assert configured["retrieval"]["duplicates"] == "released"
    assert configured["retrieval"]["distinct_texts"]
    assert configured["reading"]["answers"] == "released"


@pytest.mark.parametrize(("instruction", "tokens"), [("", 300), ("Answer the following question.\n", 200)])
def test_released_rules_have_the_authors_limits_at_every_step(folder: Path, instruction: str, tokens: int) -> None:
    for number in (1, 2):
        file = folder / f"with_{number}.txt"
        file.write_text(file.read_text().replace("\nQ: ", f"\nQ: {instruction}"))
    opened = inputs(folder, FILE.replace("grid =", 'rules = "released"\ngrid ='))
    (cell, *_) = [cell for cell in cells(opened) if cell.line.system == "ircot"]
    configured = opened.prepare(cell).submission.settings
    reading, pages = configured["reading"], configured["pages"]
    limits = {configured["max_sentence_tokens"], reading["max_answer_tokens"], reading["max_chain_tokens"]}
    assert limits == {pages["max_tokens"]} == {tokens}


def test_with_instructed_demonstrations_the_released_rules_put_a_pinned_passage_last(folder: Path) -> None:
    plain = (SAMPLE / "demonstrations.txt").read_text()
    for name in ("with_1.txt", "with_2.txt"):
        (folder / name).write_text(plain.replace("\nQ: ", "\nQ: Answer the following question.\n"))
    for rules, place in (("paper", "top"), ("released", "bottom")):
        opened = inputs(folder, FILE.replace("grid =", f'rules = "{rules}"\ngrid ='))
        prompting = [opened.prepare(cell).submission.settings["prompting"] for cell in cells(opened)]
        assert {each["pinned"] for each in prompting} == {place}


PROCESSED = """
[datasets.musique]
questions = "processed.jsonl"
official = "musique.jsonl"
format = "ircot"
corpus = "sample"
demonstrations = { cot = "with_{M}.txt" }
"""


def processed_files(folder: Path) -> str:
    """An experiment on processed questions of MuSiQue, and its files."""
    records = [processed("musique", question_id=f"2hop__{number}") for number in range(28)]
    (folder / "processed.jsonl").write_text("\n".join(map(json.dumps, records)))
    own = [musique(id=f"2hop__{number}") for number in range(28)]
    (folder / "musique.jsonl").write_text("\n".join(map(json.dumps, own)))
    return FILE.partition("[datasets")[0] + PROCESSED


@pytest.mark.parametrize("format_", ['format = "ircot"', ""])
def test_processed_questions_are_their_dataset_s_whether_their_format_is_named_or_not(
    folder: Path, format_: str
) -> None:
    opened = inputs(folder, processed_files(folder).replace('format = "ircot"', format_))
    assert "musique.jsonl" in opened.plan()["files"]
    for cell in cells(opened):
        prepared = opened.prepare(cell)
        assert prepared.submission.dataset == "musique"
        assert {(question.answers, question.kinds["hops"]) for question in prepared.questions} == {
            (("ink", "the ink"), "2hop")
        }


def test_processed_questions_of_musique_without_its_own_file_are_an_error(folder: Path) -> None:
    file = processed_files(folder).replace('official = "musique.jsonl"', "")
    with pytest.raises(DatasetError, match=r"musique_ans_v1\.0_dev\.jsonl has them\. Name that file with --official"):
        prepare_all(folder, file)


def test_processed_questions_of_a_table_with_a_name_of_its_own_are_an_error(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="no dataset 'mine'"):
        prepare_all(folder, processed_files(folder).replace("[datasets.musique]", "[datasets.mine]"))


def test_settings_by_hand_overrule_the_rules(folder: Path) -> None:
    by_hand = f'{FILE}\n[settings.ircot]\nmax_sentences = 3\nprompting = {{ drop = "first" }}\n'
    opened = inputs(folder, by_hand.replace("grid =", 'rules = "released"\ngrid ='))
    (cell, *_) = [cell for cell in cells(opened) if cell.line.system == "ircot"]
    configured = opened.prepare(cell).submission.settings
    assert (configured["max_sentences"], configured["prompting"]["drop"]) == (3, "first")


def test_the_plan_changes_with_whatever_decides_a_result(folder: Path) -> None:
    before = inputs(folder).plan()
    assert inputs(folder).plan() == before
    assert inputs(folder, FILE.replace("[2, 4]", "[2, 6]")).plan() != before
    (folder / "with_2.txt").write_text((SAMPLE / "demonstrations.txt").read_text().replace("the", "a", 1))
    assert inputs(folder).plan()["files"] != before["files"]


STYLED = (
    FILE.replace("{M}", "{M}_{style}")
    .replace('models = ["scripted"]\n', "")
    .replace("grid =", 'readers = ["cot"]\ngrid =')
)
MODELS = """
[[models]]
name = "scripted"

[[models]]
name = "flan"
style = "flan_t5"
readers = ["direct"]
"""


def in_two_styles(folder: Path) -> None:
    """A second model, and demonstrations with and without an instruction."""
    with (folder / "models.toml").open("a") as file:
        file.write('[models.flan]\nengine = "scripted"\npath = "script.json"\n')
    plain = (SAMPLE / "demonstrations.txt").read_text()
    for distractors in (1, 2):
        (folder / f"with_{distractors}_codex.txt").write_text(plain)
        (folder / f"with_{distractors}_flan_t5.txt").write_text(plain.replace("Q: ", f"Q: {INSTRUCTION}\n"))


def test_each_model_has_its_own_prompts_reader_and_rules(folder: Path) -> None:
    in_two_styles(folder)
    opened = inputs(folder, STYLED.replace("grid =", 'rules = "released"\ngrid =') + MODELS)
    seen = set()
    for cell in cells(opened):
        if cell.line.goal == "qa" and cell.line.system == "ircot":
            submission = opened.prepare(cell).submission
            instruction = submission.shots[AnswerForm.COT].instruction
            drop = submission.settings["prompting"]["drop"]
            seen.add((submission.model_name, instruction, drop, submission.settings["reading"]["reader"]))
    assert seen == {("scripted", "", "released", "cot"), ("flan", INSTRUCTION, "first", "direct")}
    files = opened.plan()["files"]
    assert {f"with_{m}_{style}.txt" for m in (1, 2) for style in ("codex", "flan_t5")} <= files.keys()


def test_models_by_name_alone_are_stored_as_they_always_were(folder: Path) -> None:
    assert inputs(folder).plan()["experiment"]["models"] == ("scripted",)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (STYLED.replace("_{style}", "") + MODELS, "jsonl"),
        (STYLED + MODELS + '[[models]]\nname = "flan"\n', "flan is named twice"),
        (STYLED + MODELS.replace("readers", "reader"), "reader"),
    ],
)
def test_models_that_can_not_be_told_apart_are_refused(folder: Path, file: str, says: str) -> None:
    in_two_styles(folder)
    with pytest.raises(InputError, match=says):
        inputs(folder, file)


@each_case(
    ("change", "error", "says"),
    [
        (('name = "sample"', ""), InputError, "name"),
        (('"scripted"', '"a\\u0000b"'), InputError, "NUL"),
        (("[2, 4]", "[0]"), InputError, "ircot_counts"),
        (('"ircot"]', '"selfask"]'), InputError, "selfask"),
        (("development_questions = 8", "development_question = 8"), InputError, "development_question"),
        (("development_questions = 8", "development_questions = 30"), DatasetError, "32"),
        (("demonstrations_per_set = 3", "demonstrations_per_set = 5"), DemonstrationError, "with_1.txt"),
        (("demonstrations_per_set = 3", "demonstrations_per_set = 4"), DemonstrationError, "`demonstration_sets = 1`"),
        (('corpus = "sample"', 'corpus = "sample"\nsets = "none.json"'), InputError, "none.json can't be read"),
        (('corpus = "sample"', 'corpus = "sample"\nsets = "released"'), DemonstrationError, "none of these"),
        (('"with_{M}.txt"', '"none.txt"'), InputError, "none.txt"),
        (('corpus = "sample"', 'corpus = "other"'), InputError, "other"),
        (('questions = "questions.jsonl"', ""), InputError, "development"),
        (('models = ["scripted"]', 'models = ["gpt"]'), InputError, "gpt"),
        (('"questions.jsonl"', '"with_1.txt"'), DatasetError, "with_1.txt"),
    ],
)
def test_what_can_not_be_used_is_said_before_anything_is_queued(
    folder: Path, change: tuple[str, str], error: type[CotrailError], says: str
) -> None:
    assert change[0] in FILE
    with pytest.raises(error, match=says):
        prepare_all(folder, FILE.replace(*change))


def prepare_all(folder: Path, file: str) -> None:
    opened = inputs(folder, file)
    opened.plan()
    for cell in cells(opened):
        opened.prepare(cell)


def test_gold_paragraphs_that_the_corpus_lacks_are_counted(folder: Path) -> None:
    lacking = {
        "id": "lost",
        "question": "Where is it?",
        "answers": ["There"],
        "gold": [{"title": "Nowhere", "text": "It is nowhere."}],
    }
    with (folder / "questions.jsonl").open("a") as file:
        file.write(json.dumps(lacking) + "\n")
    whole = inputs(folder, FILE.replace("test_questions = 20", "test_questions = 25"))
    assert isinstance(whole.inputs, IRCoTInputs)
    gold, missing = whole.inputs.missing_gold("jsonl")
    assert missing == 1
    assert gold > 33


def test_a_folder_of_released_names_is_taken_by_its_style(folder: Path) -> None:
    released = folder / "prompts"
    released.mkdir()
    text = (SAMPLE / "demonstrations.txt").read_text()
    for name in ("gold_with_1_distractors_context_cot_qa", "gold_with_2_distractors_context_cot_qa"):
        (released / f"{name}_flan_t5.txt").write_text(text)
        (released / f"{name.replace('cot_qa', 'direct_qa')}_flan_t5.txt").write_text(text)
    for name in ("no_context_cot_qa", "no_context_direct_qa"):
        (released / f"{name}_flan_t5.txt").write_text(text)
    file = FILE.replace('{ cot = "with_{M}.txt" }', '"prompts"').replace("grid =", 'style = "flan_t5"\ngrid =')
    opened = inputs(folder, file)
    line = Line(goal="qa", dataset="jsonl", demonstrations="jsonl", model="scripted", system="ircot", reader="direct")
    cell = Cell(line=line, stage="test", demonstration_set=1, retrieval_count=2, distractors=2)
    assert set(opened.prepare(cell).submission.shots) == {AnswerForm.COT, AnswerForm.DIRECT}
    assert "prompts/no_context_direct_qa_flan_t5.txt" in opened.plan()["files"]
