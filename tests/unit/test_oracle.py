import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.answer_extraction import stated_answer
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.catalogue import find_model, identity, open_model
from cotrail.engines.language_models.oracle import oracle_script, statement
from cotrail.errors import DatasetError
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.cases import each_case

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data isn't beside the repository")


def line(**changes: Any) -> dict[str, Any]:
    return {
        "id": "2hop__1_2",
        "question": "Who runs the mill that makes Grayle paper?",
        "answer": "Orla Venn",
        "paragraphs": [],
        "question_decomposition": [
            {"id": 1, "question": "Grayle paper >> manufacturer", "answer": "Tarn Mill"},
            {"id": 2, "question": "Who runs #1 ?", "answer": "Orla Venn"},
        ],
        **changes,
    }


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


@each_case(
    ("question", "answer", "sentence"),
    [
        ("Grayle >> country", "Tarn", "The country of Grayle is Tarn."),
        ("Grayle >> place of birth", "U.S.", "The place of birth of Grayle is U.S."),
        ("Grayle >> shares border with", "Tarn", "Grayle shares border with Tarn."),
        ("Grayle >> follows", "Tarn", "Grayle follows Tarn."),
        ("Grayle >> located in the state", "Tarn", "Grayle is located in the state Tarn."),
        ("Grayle >> part of", "Tarn", "Grayle is part of Tarn."),
        ("Grayle >> instance of", "town", "Grayle is an instance of town."),
        ("Grayle >> member of sports team", "Tarn", "Grayle is a member of sports team Tarn."),
        ("What is the name of the river in Grayle?", "the Tarn", "The name of the river in Grayle is the Tarn."),
        ("what was Grayle's currency before the mark", "The tarn", "Grayle's currency before the mark was The tarn."),
        ("The oldest town in Grayle is what?", "Tarn", "The oldest town in Grayle is Tarn."),
        ("Where was Orla Venn from?", "Tarn", "Orla Venn was from Tarn."),
        ("What town was Orla Venn born in?", "Tarn", "Orla Venn was born in Tarn."),
        ("What company is Tarn Mill part of?", "Venn", "Tarn Mill is part of Venn."),
        ("What county is Grayle located?", "Tarn", "Grayle is located in Tarn."),
        ("When was Grayle founded?", "1895", "Grayle was founded in 1895."),
        ("When was the flood of Grayle?", "1895", "The flood of Grayle was in 1895."),
        ("how many mills are in Grayle", "35", "35 mills are in Grayle."),
        ("What sea does Tarn River turn into?", "Grayle Sea", "Tarn River does turn into Grayle Sea."),
        ("What year did the Tarn Mill close?", "1895", "What year did the Tarn Mill close: 1895."),
        ("What year did Bank of Tarn close?", "1895", "Bank of Tarn did close in 1895."),
        ("What sport did Orla Venn play?", "chess", "Orla Venn did play chess."),
        ("Who made Grayle paper?", "Orla Venn", "Orla Venn made Grayle paper."),
        ("What company published Grayle?", "Venn", "The company that published Grayle is Venn."),
        ("Which state borders Grayle to the east?", "Tarn", "The state that borders Grayle to the east is Tarn."),
        (
            "peace of Grayle began with the signing of",
            "a treaty",
            "Peace of Grayle began with the signing of a treaty.",
        ),
        ("Why {does} Grayle flood?", "rain", "Why {does} Grayle flood: rain."),
        ("", "rain", "Rain."),
    ],
)
def test_a_hop_s_question_becomes_a_statement_with_its_answer(question: str, answer: str, sentence: str) -> None:
    assert statement(question, answer) == sentence


@given(st.text(), st.text(min_size=1))
def test_a_statement_of_any_question_holds_its_answer(question: str, answer: str) -> None:
    assert answer[1:].removesuffix(".") in statement(question, answer)


@each_case("words", ["what is of ", "how many is ", "what kind did Grayle ", "who >> ", "in "])
def test_a_very_long_question_is_no_trouble(words: str) -> None:
    assert statement(words * 200, "rain").strip().lower().count("rain") == 1


def test_the_chain_has_a_sentence_a_hop_with_the_answers_filled_in(tmp_path: Path) -> None:
    script = oracle_script(write(tmp_path / "dev.jsonl", line()))
    gold = script.questions["Who runs the mill that makes Grayle paper?"]
    assert gold.sentences == ("The manufacturer of Grayle paper is Tarn Mill.", "Orla Venn runs Tarn Mill.")
    assert gold.answer == "Orla Venn"


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Venn, #1 , #2 >> country", "The country of Venn, Tarn, Grayle is Z."),
        ("what was #2 's river", "Grayle's river was Z."),
        ("who sang the #3 hit of #1", "Z sang the #3 hit of Tarn."),
    ],
)
def test_references_are_filled_with_the_answers_of_earlier_hops(tmp_path: Path, question: str, sentence: str) -> None:
    hops = [{"question": "a >> b", "answer": "Tarn"}, {"question": "#1 >> b", "answer": "Grayle"}]
    path = write(tmp_path / "dev.jsonl", line(question_decomposition=[*hops, {"question": question, "answer": "Z"}]))
    (gold,) = oracle_script(path).questions.values()
    assert gold.sentences[2] == sentence


def test_unanswerable_questions_are_left_out_and_the_first_of_a_text_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "full.jsonl", line(answerable=False, answer="no"), line(), line(answer="another"))
    (gold,) = oracle_script(path).questions.values()
    assert gold.answer == "Orla Venn"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"question_decomposition": []}, "no answer or no question_decomposition"),
        ({"answer": None}, "no answer or no question_decomposition"),
        ({"question_decomposition": [{"question": "Who?"}]}, "the key `answer`"),
        ({"question": 7}, "`question` must be text in quotation marks"),
    ],
)
def test_a_line_that_holds_no_chain_is_named(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(DatasetError, match=rf"dev\.jsonl, line 2: .*{problem}"):
        oracle_script(write(tmp_path / "dev.jsonl", line(), line(**changes)))


def test_a_truncated_an_empty_and_a_missing_file_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.jsonl", line(), line())
    path.write_text(path.read_text()[:-20])
    with pytest.raises(DatasetError, match=r"dev\.jsonl, line 2: this isn't valid JSON"):
        oracle_script(path)
    path.write_text("\n")
    with pytest.raises(DatasetError, match=r"dev\.jsonl holds no answerable questions"):
        oracle_script(path)
    with pytest.raises(DatasetError, match=r"gone\.jsonl can't be read"):
        oracle_script(tmp_path / "gone.jsonl")


def test_the_oracle_is_a_model_of_the_catalogue_beside_its_list(tmp_path: Path) -> None:
    write(tmp_path / "musique_dev.jsonl", line())
    models = tmp_path / "models.toml"
    models.write_text('[models.gold]\nengine = "oracle"\npath = "musique_dev.jsonl"\n')
    spec = find_model(models, "gold")
    model = open_model(spec, "deterministic", 1)
    prompt = few_shot_prompt(demonstrations=Demonstrations(), question=line()["question"], sentences=("One.", "Two."))
    assert model.generate(GenerationRequest(prompt, "sentence", 20)).text == "So the answer is: Orla Venn."
    assert model.identity == identity(spec)
    assert model.identity.startswith("gold@")
    write(tmp_path / "musique_dev.jsonl", line(answer="Orla"))
    assert identity(spec) != model.identity


@needs_data
def test_no_sentence_but_the_last_states_an_answer_on_real_questions() -> None:
    script = oracle_script(DATA / "musique" / "questions.jsonl")
    assert len(script.questions) == 20
    assert not [s for gold in script.questions.values() for s in gold.sentences if stated_answer(s) is not None]


@needs_data
def test_interleaving_with_the_oracle_recalls_far_more_than_one_search(tmp_path: Path) -> None:
    corpora = [f"--corpus={DATA / name / 'corpus.jsonl'}" for name in ("hotpotqa", "2wikimultihopqa", "musique")]
    questions, output = DATA / "musique" / "questions.jsonl", tmp_path / "oracle.json"
    command = [sys.executable, "-m", "benchmarks.oracle", f"--questions={questions}", *corpora, f"--output={output}"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    report = json.loads(output.read_text())
    assert (report["questions"], report["paragraphs"], report["gold_paragraphs_not_in_corpus"]) == (20, 9002, 0)
    best = {
        system: max(row["mean_recall"] for row in report["systems"] if row["system"] == system)
        for system in ("ircot", "one-step")
    }
    assert best["ircot"] > best["one-step"] + 0.3
    assert max(max(row["collected"]) for row in report["systems"]) <= 15
    kept = json.loads((ROOT / "benchmarks" / "results" / "oracle.json").read_text())
    assert kept["systems"] == report["systems"]
