import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.demonstrations import AnswerForm
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_annotated, load_questions
from cotrail.data.datasets.strategyqa import title_of
from cotrail.data.demonstrations.building import DemonstrationShape, build_demonstrations
from cotrail.data.demonstrations.sets import in_form, read_demonstrations, write_demonstrations
from cotrail.errors import CorpusError, DatasetError
from tests.cases import each_case
from tests.unit.test_datasets import DATA, Write, needs_data, strategyqa, write

__all__ = ["write"]

PARAGRAPHS: dict[str, dict[str, Any]] = {
    "Ink-1": {"title": "Ink", "section": "", "headers": [], "para_index": 1, "content": "Ink stains."},
    "Paper-3": {"title": "Paper", "section": "Uses", "headers": ["Uses"], "para_index": 3, "content": "Paper is pulp."},
}
DEV = DATA / "strategyqa" / "dev.json"


def test_an_answer_is_yes_or_no_and_evidence_is_the_titles_of_its_paragraphs(write: Write) -> None:
    assert load_questions("strategyqa", write("strategyqa", strategyqa(), strategyqa(qid="q2", answer=False))) == (
        Question(id="q1", text="Does ink stain paper?", answers=("yes",), evidence=("Ink", "Paper", "Pen-and-ink")),
        Question(id="q2", text="Does ink stain paper?", answers=("no",), evidence=("Ink", "Paper", "Pen-and-ink")),
    )


@each_case(
    ("id_", "title"), [("Albany, Georgia-1", "Albany, Georgia"), ("Pen-and-ink-12", "Pen-and-ink"), ("Ink", "Ink")]
)
def test_a_paragraphs_title_is_its_id_without_the_number(id_: str, title: str) -> None:
    assert title_of(id_) == title


def test_the_chain_is_the_facts_as_sentences_and_the_answer(write: Write) -> None:
    (annotated,) = load_annotated("strategyqa", write("strategyqa", strategyqa()))
    assert annotated.chain == ("Ink is a dye.", "Paper takes dyes.", "So the answer is yes.")


def test_a_test_file_has_questions_alone(write: Write) -> None:
    (annotated,) = load_annotated("strategyqa", write("strategyqa", {"qid": "q1", "question": "Does ink stain?"}))
    assert annotated.question == Question(id="q1", text="Does ink stain?")
    assert annotated.chain == ()


def test_the_annotators_facts_are_pinned_where_they_are_asked_for(write: Write) -> None:
    told = load_questions("strategyqa-facts", write("strategyqa", strategyqa(), {"qid": "q2", "question": "Does it?"}))
    assert [each.pinned for each in told] == [GoldParagraph(title="", text="Ink is a dye. Paper takes dyes."), None]


def test_gold_is_the_evidence_that_the_corpus_has_under_its_ids(write: Write, tmp_path: Path) -> None:
    paragraphs = {each.id: each for each in read_corpus([paragraphs_file(tmp_path)])}

    def lookup(ids: Sequence[str]) -> Mapping[str, Paragraph]:
        return {id_: paragraphs[id_] for id_ in ids if id_ in paragraphs}

    (question,) = load_questions("strategyqa", write("strategyqa", strategyqa()), lookup)
    assert question.gold == (
        GoldParagraph(title="Ink", text="Ink stains."),
        GoldParagraph(title="Paper", text="Paper is pulp."),
    )
    assert question.evidence == (*question.gold, "Pen-and-ink")


def test_an_answer_that_is_neither_true_nor_false_is_an_error_that_names_its_place(write: Write) -> None:
    with pytest.raises(DatasetError, match=r"questions, entry 2: .*`answer`"):
        load_questions("strategyqa", write("strategyqa", strategyqa(), strategyqa(qid="q2", answer="yes")))


def test_the_facts_of_a_question_file_are_a_corpus_each_of_them_once(write: Write) -> None:
    path = write("strategyqa", strategyqa(), strategyqa(qid="q2", facts=["Ink is a dye", " ", "Ink dries."]))
    corpus = list(read_corpus([path]))
    assert [(each.title, each.text) for each in corpus] == [
        ("Ink", "Ink is a dye"),
        ("Ink", "Paper takes dyes."),
        ("Ink", "Ink dries."),
    ]
    assert len({each.id for each in corpus}) == 3


def test_a_question_file_without_facts_is_no_corpus(write: Write) -> None:
    with pytest.raises(CorpusError, match="no paragraphs in"):
        list(read_corpus([write("strategyqa", {"qid": "q1", "question": "Does ink stain?"})]))


def paragraphs_file(folder: Path, **changes: Any) -> Path:
    path = folder / "strategyqa_train_paragraphs.json"
    path.write_text(json.dumps(PARAGRAPHS | changes))
    return path


def test_the_published_paragraphs_are_a_corpus_under_their_ids(tmp_path: Path) -> None:
    assert list(read_corpus([paragraphs_file(tmp_path)])) == [
        Paragraph(id="Ink-1", title="Ink", text="Ink stains."),
        Paragraph(id="Paper-3", title="Paper", text="Paper is pulp."),
    ]


def test_many_published_paragraphs_are_not_taken_for_iircs_articles(tmp_path: Path) -> None:
    many = {f"Ink-{number}": PARAGRAPHS["Ink-1"] | {"content": f"Ink {number}."} for number in range(60)}
    assert len(list(read_corpus([paragraphs_file(tmp_path, **many)]))) == 61


def test_a_paragraph_without_text_is_an_error_that_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"paragraphs\.json, member 3: .*`content`"):
        list(read_corpus([paragraphs_file(tmp_path, **{"Pen-1": {"title": "Pen"}})]))


def test_paragraphs_given_for_questions_are_an_error_that_says_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="seems to hold StrategyQA's paragraphs"):
        load_questions("strategyqa", paragraphs_file(tmp_path))


def test_demonstrations_are_built_of_the_facts_without_paragraphs(write: Write, tmp_path: Path) -> None:
    annotated = load_annotated("strategyqa", write("strategyqa", strategyqa()))
    built = build_demonstrations(
        annotated, DemonstrationShape(form=AnswerForm.COT, style="codex", distractors=2), seed=0
    )
    path = tmp_path / "demonstrations.txt"
    path.write_text(write_demonstrations(built))
    assert read_demonstrations(path) == built
    assert built.text == ("Q: Does ink stain paper?\nA: Ink is a dye. Paper takes dyes. So the answer is yes.\n\n\n")


def test_the_packaged_demonstrations_are_chains_of_as_many_yes_as_no() -> None:
    path = Path(__file__).parents[2] / "cotrail" / "sample" / "yes_no_demonstrations.txt"
    demonstrations = read_demonstrations(path)
    answers = in_form(demonstrations, AnswerForm.DIRECT)
    assert sorted(each.answer for each in answers.items) == ["no"] * 3 + ["yes"] * 3
    assert all(each.question.startswith("Yes or no: ") and not each.paragraphs for each in demonstrations.items)
    assert all(" Thus, " in each.answer for each in demonstrations.items)


@needs_data
def test_the_real_development_questions_are_read_whole() -> None:
    annotated = load_annotated("strategyqa", DEV)
    assert len(annotated) == 229
    assert sum(each.question.answers == ("yes",) for each in annotated) == 107
    assert all(len(each.chain) >= 3 and each.question.evidence for each in annotated)
    assert annotated[0].question.evidence == ("Albany, Georgia", "Albany, New York")
    titles = {title for each in annotated for title in each.question.evidence}
    assert titles.isdisjoint({"operation", "no_evidence", ""})


@needs_data
def test_the_facts_of_the_real_questions_are_a_corpus() -> None:
    assert len(list(read_corpus([DEV]))) == 594
