"""Datasets that today's search agents are evaluated on, from made-up records in their publishers' forms."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_questions, sample_file, suffix
from cotrail.data.datasets.open_domain import titles_of
from cotrail.data.datasets.registry import DATASETS, datasets_in
from cotrail.data.datasets.spec import id_of
from cotrail.errors import DatasetError
from cotrail.evaluation.metrics.corpus_coverage import coverage, located
from cotrail.models.queries.traces import Collected
from cotrail.services.results.export_formats import lines as lines_of
from cotrail.services.results.exporting import Source
from cotrail.services.results.reasoning import gold_paragraphs
from cotrail.services.runs.requests import make_request
from cotrail.services.runs.scores import scores_of
from cotrail.services.runs.submission import prepare
from tests.cases import each_case
from tests.unit.commands import Given
from tests.unit.made_runs import question as made_question
from tests.unit.made_runs import record


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def lines(*records: object) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def pages(*titles: str) -> tuple[GoldParagraph, ...]:
    return tuple(GoldParagraph(title=title, text="", by="title") for title in titles)


def by_id(id_: str, grade: int = 1, title: str = "") -> GoldParagraph:
    return GoldParagraph(title=title, text="", id=id_, by="id", grade=grade)


def only(dataset: str, path: Path) -> Question:
    [question] = load_questions(dataset, path)
    return question


# Bamboogle, FRAMES and PopQA: tables


BAMBOOGLE = 'Question,Answer\nWho made the ink that stains?,Ann Pen\n"Which, of two, dries?",ink\n'
FRAMES_LINKS = ["https://en.wikipedia.org/wiki/Iron_gall_ink", "https://en.wikipedia.org/wiki/Caf%C3%A9#History"]


def frames(**changes: Any) -> dict[str, Any]:
    return {
        "Prompt": "Which ink did the café sell? ",
        "Answer": "Iron gall ink",
        "wikipedia_link_1": FRAMES_LINKS[0],
        "wikipedia_link_11+": "",
        "reasoning_types": "Numerical reasoning | Tabular reasoning",
        "wiki_links": str(FRAMES_LINKS),
    } | changes


POPQA_HEADER = "id\tsubj\tprop\tobj\ts_pop\tquestion\tpossible_answers\n"
POPQA = POPQA_HEADER + '7\tInk\tcolor\tblack\t142\tWhat color is Ink?\t"[""black"", ""jet black""]"\n'


@pytest.mark.parametrize(
    "content",
    [
        BAMBOOGLE,
        BAMBOOGLE.replace('"Which, of two, dries?",', "Which, of two, dries?\t")
        .replace("?,", "?\t")
        .replace("n,A", "n\tA"),
        lines(
            {"Question": "Who made the ink that stains?", "Answer": "Ann Pen"},
            {"Question": "Which, of two, dries?", "Answer": "ink"},
        ),
        [
            {"Question": "Who made the ink that stains?", "Answer": "Ann Pen"},
            {"Question": "Which, of two, dries?", "Answer": "ink"},
        ],
    ],
    ids=["comma-separated", "tab-separated", "lines", "list"],
)
def test_bamboogle_is_read_from_a_table_and_from_json(content: object, tmp_path: Path) -> None:
    first, second = load_questions("bamboogle", write(tmp_path / "bamboogle", content))
    assert first == Question(id=id_of(first.text), text="Who made the ink that stains?", answers=("Ann Pen",))
    assert (second.text, second.answers) == ("Which, of two, dries?", ("ink",))


def test_bamboogle_may_have_a_second_answer(tmp_path: Path) -> None:
    table = write(tmp_path / "bamboogle.csv", "Question,Answer,Answer 2\nWhich ink?,black,jet black\nAnd then?,red,\n")
    assert [each.answers for each in load_questions("bamboogle", table)] == [("black", "jet black"), ("red",)]


@pytest.mark.parametrize("form", ["tab", "lines", "list", "listed links", "Question"])
def test_frames_has_the_pages_linked_as_gold_and_its_kinds(form: str, tmp_path: Path) -> None:
    record = frames()
    if form == "tab":
        cells = [f'"{cell}"' for cell in record.values()]
        content: object = "\t".join(["", *record]) + "\n" + "\t".join(["0", *cells]) + "\n"
    elif form == "listed links":
        content = lines(frames(wiki_links=FRAMES_LINKS))
    elif form == "Question":
        record["Question"] = record.pop("Prompt")
        content = [record]
    else:
        content = [record] if form == "list" else lines(record)
    question = only("frames", write(tmp_path / "test", content))
    assert question == Question(
        id=id_of("Which ink did the café sell?"),
        text="Which ink did the café sell?",
        answers=("Iron gall ink",),
        gold=pages("Iron gall ink", "Café"),
        kinds={"reasoning": "Numerical reasoning | Tabular reasoning", "pages": "2"},
    )


@each_case(
    ("text", "titles"),
    [
        ("https://en.wikipedia.org/wiki/Ink", ["Ink"]),
        ("https://en.m.wikipedia.org/wiki/blue_moon#Dates", ["Blue moon"]),
        ("['https://en.wikipedia.org/wiki/A_(B)', \"https://en.wikipedia.org/wiki/C's_D\"]", ["A (B)", "C's D"]),
        ("https://en.wikipedia.org/wiki/A,_B, https://en.wikipedia.org/wiki/C, ", ["A, B", "C"]),
        ("https://en.wikipedia.org/wiki/A,https://en.wikipedia.org/wiki/A", ["A"]),
        ("https://en.wikipedia.org/w/index.php?title=Bronco&redirect=no", ["Bronco"]),
        ("https://en.wikipedia.org/w/index.php?title=Special:Search&search=x", []),
        ("https://w.wiki/ASFv", []),
        ("https://wikipedia.org.example/wiki/Ink", []),
        ("https://[x/wiki/Ink", []),
        ("https://en.wikipedia.org/wiki/", []),
        ("", []),
    ],
)
def test_titles_of_links(text: str, titles: list[str]) -> None:
    assert list(titles_of(text)) == titles


@given(st.text(alphabet="https://en.wikipedia.org/wiki/[](),'\" #?%_A0", max_size=80))
def test_any_text_has_titles_or_none(text: str) -> None:
    assert all(title and title == title.strip() for title in titles_of(text))


def test_popqa_has_every_possible_answer_and_its_relation(tmp_path: Path) -> None:
    question = only("popqa", write(tmp_path / "popQA.tsv", POPQA))
    assert question == Question(
        id="7", text="What color is Ink?", answers=("black", "jet black"), kinds={"relation": "color"}
    )


# MoreHopQA and MultiHop-RAG


def morehopqa(**changes: Any) -> dict[str, Any]:
    return {
        "_id": "q1_1",
        "question": "How many letters has what stains paper?",
        "answer": "3",
        "previous_question": "What stains paper?",
        "previous_answer": "ink",
        "question_decomposition": [
            {"sub_id": "1", "question": "?", "answer": "ink", "paragraph_support_title": "Ink"},
            {"sub_id": "2", "question": "?", "answer": "3", "paragraph_support_title": "", "details": []},
        ],
        "context": [["Pen", ["A pen."]], ["Ink", ["Ink stains.", " It dries."]]],
        "answer_type": "number",
        "no_of_hops": 1,
        "reasoning_type": "Symbolic",
    } | changes


def test_morehopqa_has_the_paragraphs_of_its_steps_as_gold(tmp_path: Path) -> None:
    path = write(tmp_path / "morehopqa_final.json", [morehopqa()])
    question = only("morehopqa", path)
    assert (question.id, question.answers) == ("q1_1", ("3",))
    assert question.gold == (GoldParagraph(title="Ink", text="Ink stains. It dries."),)
    assert question.kinds == {"added_hops": "1", "answer_type": "number", "reasoning": "Symbolic"}
    assert [each.title for each in read_corpus([path])] == ["Pen", "Ink"]


INK = "Ink stains paper, and it has done so for three thousand years. Nobody minds."
ARTICLE = {
    "title": "On ink",
    "source": "The Pen",
    "published_at": "2023-10-01T10:00:00+00:00",
    "url": "https://p.example/1",
}
ARTICLES = [
    ARTICLE | {"author": None, "category": "science", "body": f"{INK}\n\n{'More of it. ' * 40}\n\nIt ends."},
    ARTICLE | {"title": "On paper", "author": "A", "category": "science", "body": "Paper is made of pulp."},
]


def multihop(**changes: Any) -> dict[str, Any]:
    evidence = ARTICLE | {"author": None, "category": "science", "fact": "it has done so for three thousand years"}
    return {
        "query": "Does The Pen say that ink stains?",
        "answer": "Yes",
        "question_type": "comparison_query",
        "evidence_list": [evidence],
    } | changes


def test_multihop_rag_finds_its_facts_among_the_passages_of_its_articles(tmp_path: Path) -> None:
    path = write(tmp_path / "MultiHopRAG.json", [multihop()])
    corpus = list(read_corpus([write(tmp_path / "corpus.json", ARTICLES)]))
    assert [each.title for each in corpus] == ["On ink (The Pen, 2023-10-01)"] * 3 + ["On paper (The Pen, 2023-10-01)"]
    assert all(len(each.text.split()) <= 100 for each in corpus)

    def of_title(title: str) -> list[Paragraph]:
        return [each for each in corpus if each.title == title]

    questions = load_questions("multihop-rag", path)
    [question] = located(questions, of_title, snippets=True)
    assert question.kinds == {"type": "comparison_query"}
    assert question.gold == (GoldParagraph(title=corpus[0].title, text=corpus[0].text),)
    assert coverage([question], of_title, lambda _: {}).missing == ()


def test_a_null_query_has_its_answer_and_no_gold(tmp_path: Path) -> None:
    null = multihop(answer="Insufficient information.", question_type="null_query", evidence_list=[])
    question = only("multihop-rag", write(tmp_path / "MultiHopRAG.json", [null]))
    assert (question.answers, question.gold) == (("Insufficient information.",), ())


def test_articles_are_no_questions(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"seems to hold MultiHop-RAG's articles, .* and no questions"):
        load_questions("multihop-rag", write(tmp_path / "corpus.json", ARTICLES))


# NQ, TriviaQA and FlashRAG's form


def test_open_natural_questions_have_ids_of_their_content_and_equal_lines_count_once(tmp_path: Path) -> None:
    record = {"question": "what stains paper", "answer": ["ink", "dye"]}
    path = write(tmp_path / "NQ-open.dev.jsonl", lines(record, record, record | {"answer": ["ink"]}))
    first, second = load_questions("nq", path)
    assert first == Question(
        id=id_of("what stains paper", "ink", "dye"), text="what stains paper", answers=("ink", "dye")
    )
    assert second.answers == ("ink",)


def triviaqa(*questions: dict[str, Any]) -> dict[str, Any]:
    return {"Data": list(questions), "Domain": "unfiltered-web", "VerifiedEval": False, "Version": 1.0}


TRIVIA = {
    "Answer": {
        "Aliases": ["Ink", "The ink"],
        "MatchedWikiEntityName": "Ink",
        "NormalizedAliases": ["ink", "the ink"],
        "NormalizedValue": "ink",
        "Type": "WikipediaEntity",
        "Value": "Ink",
    },
    "EntityPages": [{"DocSource": "Search", "Filename": "Ink.txt", "Title": "Ink"}],
    "Question": "What stains paper?",
    "QuestionId": "tc_1",
    "QuestionSource": "http://www.triviacountry.com/",
    "SearchResults": [],
}


def test_triviaqa_has_every_name_of_an_answer_and_none_in_test_files(tmp_path: Path) -> None:
    untold = {name: value for name, value in TRIVIA.items() if name != "Answer"} | {"QuestionId": "tc_2"}
    path = write(tmp_path / "unfiltered-web-dev.json", triviaqa(TRIVIA, untold))
    first, second = load_questions("triviaqa", path)
    assert first == Question(id="tc_1", text="What stains paper?", answers=("Ink", "The ink", "ink", "the ink"))
    assert second.answers == ()


FLASHRAG = {"id": "test_0", "question": "What stains paper?", "golden_answers": ["ink", "dye", "ink"]}


@each_case("dataset", ["hotpotqa", "2wikimultihopqa", "musique", "bamboogle", "nq", "triviaqa", "popqa"])
def test_the_form_that_agents_are_evaluated_on_is_read_for_its_datasets(dataset: str, tmp_path: Path) -> None:
    path = write(tmp_path / "test.jsonl", lines(FLASHRAG, FLASHRAG | {"id": "test_1", "metadata": {"context": 3}}))
    first, second = load_questions(dataset, path)
    assert first == Question(id="test_0", text="What stains paper?", answers=("ink", "dye"))
    assert second.gold == ()


def test_flashrag_s_metadata_names_kinds_and_the_pages_that_support_an_answer(tmp_path: Path) -> None:
    facts = {"title": ["Ink", "Ink", "Paper"], "sent_id": [0, 1, 0]}
    hotpotqa = {"type": "bridge", "level": "hard", "supporting_facts": facts, "context": {"title": [], "sentences": []}}
    question = only("hotpotqa", write(tmp_path / "dev.jsonl", lines(FLASHRAG | {"metadata": hotpotqa})))
    assert question.kinds == {"type": "bridge", "level": "hard"}
    assert question.gold == pages("Ink", "Paper")
    question = only("popqa", write(tmp_path / "dev.jsonl", lines(FLASHRAG | {"metadata": {"prop": "color"}})))
    assert question.kinds == {"relation": "color"}


def test_flashrag_s_form_of_another_dataset_is_refused_with_those_that_have_it(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.jsonl", lines(FLASHRAG))
    with pytest.raises(
        DatasetError, match=r"line 1: this seems to be from questions as FlashRAG .* 'hotpotqa' or .* 'popqa'"
    ):
        load_questions("beir", path)


# Judged topics: BEIR, TREC and BrowseComp-Plus


QRELS = "q1 0 d1 1\nq1\tQ0\td2\t3\nq1 0 d3 0\nq1 0 d4 -2\nq3 0 d1 0\n"
TOPICS = "q1\twhat stains paper\nq2\tnot judged\nq3\tnothing relevant\n"
TOPIC_ELEMENTS = """<top>
<num> Number: 051
<title> Topic: ink and
paper
<desc> Description:
What stains?
<narr> Narrative:
Ink does.
</top>

<top>
<num>q3</num>
<title>pens</title>
</top>
"""


def corpus(*ids: str) -> Any:
    def lookup(asked: Sequence[str]) -> dict[str, Paragraph]:
        return {id_: Paragraph(id=id_, title=f"Title {id_}", text="Text.") for id_ in ids if id_ in asked}

    return lookup


def test_topics_have_what_is_relevant_as_gold_with_its_grade_and_those_that_nobody_judged_are_left_out(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "topics.tsv", TOPICS)
    write(tmp_path / "2019qrels-pass.txt", QRELS)
    first, third = load_questions("trec", path)
    assert first == Question(id="q1", text="what stains paper", gold=(by_id("d1"), by_id("d2", 3)))
    assert (third.id, third.answers, third.gold) == ("q3", (), ())


def test_gold_by_id_has_the_titles_of_those_in_the_corpus_and_keeps_the_others(tmp_path: Path) -> None:
    path = write(tmp_path / "topics.tsv", TOPICS)
    write(tmp_path / "qrels", QRELS)
    first, _ = load_questions("trec", path, corpus("d2", "d9"))
    assert first.gold == (by_id("d1"), by_id("d2", 3, "Title d2"))
    with pytest.raises(
        DatasetError, match=r"qrels: the corpus has none of the first 2 relevant documents, 'd1' for one"
    ):
        load_questions("trec", path, corpus("d9"))


def test_topics_as_elements(tmp_path: Path) -> None:
    path = write(tmp_path / "topics.txt", TOPIC_ELEMENTS)
    write(tmp_path / "qrels.txt", QRELS.replace("q1", "51"))
    first, second = load_questions("trec", path)
    assert (first.id, first.text, first.gold) == ("51", "ink and paper", (by_id("d1"), by_id("d2", 3)))
    assert (second.id, second.text) == ("q3", "pens")


def beir(folder: Path, qrels: str = "q2\td9\t1\nq1\td1\t2\nq1\td2\t0\n") -> Path:
    write(folder / "queries.jsonl", lines(*({"_id": f"q{n}", "text": f"query {n}", "metadata": {}} for n in range(9))))
    write(
        folder / "corpus.jsonl", lines({"_id": "d1", "title": "Ink", "text": "Stains."}, {"_id": "d9", "text": "Pulp."})
    )
    return write(folder / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{qrels}")


def test_a_split_of_beir_asks_the_queries_that_it_judges(tmp_path: Path) -> None:
    second, first = load_questions("beir", beir(tmp_path))
    assert second == Question(id="q2", text="query 2", gold=(by_id("d9"),))
    assert first == Question(id="q1", text="query 1", gold=(by_id("d1", 2),))
    assert [each.id for each in read_corpus([tmp_path / "corpus.jsonl"])] == ["d1", "d9"]


def browsecomp(folder: Path) -> tuple[Path, Path]:
    """The decrypted questions and the topics, in the folders in which their scripts put them."""
    write(folder / "topics-qrels" / "qrel_evidence.txt", "7 Q0 d1 1\n7 Q0 d2 1\n")
    write(folder / "topics-qrels" / "qrel_golds.txt", "7 Q0 d2 1\n")
    documents = [{"docid": "d1", "text": "Stains.", "url": "https://x.example"}]
    record = {"query_id": "7", "query": "what stains", "answer": "ink", "evidence_docs": documents}
    questions = write(folder / "data" / "browsecomp_plus_decrypted.jsonl", lines(record))
    return questions, write(folder / "topics-qrels" / "queries.tsv", "7\twhat stains\n")


def test_browsecomp_plus_is_judged_by_evidence_or_by_what_holds_the_answer(tmp_path: Path) -> None:
    questions, topics = browsecomp(tmp_path)
    evidence, answering = (only(name, questions) for name in ("browsecomp-plus", "browsecomp-plus-gold"))
    assert evidence == Question(id="7", text="what stains", answers=("ink",), gold=(by_id("d1"), by_id("d2")))
    assert answering.gold == (by_id("d2"),)
    untold = only("browsecomp-plus", topics)
    assert (untold.answers, untold.gold) == ((), evidence.gold)


# What is refused


@each_case(
    ("dataset", "content", "said"),
    [
        ("bamboogle", "Question,Answer\nWho?\n", "line 2: 1 cells, and the header names 2"),
        ("bamboogle", "Question,Answer\nWho?,Ann\nWho?,Bo\n", "line 3: this question is there before"),
        ("bamboogle", lines({"Question": "Who?", "Answer": 3}), "line 1: .*Answer"),
        ("frames", lines(frames(wiki_links=3)), "line 1: .*wiki_links"),
        ("frames", [frames() | {"Prompt": None}], "entry 1: there is no Prompt"),
        (
            "popqa",
            POPQA_HEADER + "7\tInk\tcolor\tblack\t1\tWhat color?\tblack\n",
            "line 2, possible_answers: .*valid JSON",
        ),
        ("morehopqa", [morehopqa(), morehopqa(context="none")], "entry 2: .*context"),
        ("multihop-rag", [multihop(evidence_list=[{"title": "On ink"}])], "entry 1: .*fact"),
        ("nq", lines({"question": "what", "answer": "ink"}), "line 1: .*answer"),
        ("triviaqa", triviaqa({"Question": "What?"}), "question 1: .*QuestionId"),
        ("nq", lines(FLASHRAG | {"golden_answers": "ink"}), "line 1: .*golden_answers"),
        ("trec", "q1 what stains\n", "line 1: 1 cells, and a topic has two"),
        ("trec", "<top>\n<num> 1\n<title> x\n", "line 1: this topic has no end </top>"),
        ("trec", "<top>\n<title> x\n</top>\n", "line 1: this topic has no <num>"),
        ("trec", "q9\tnot judged\n", "qrels.txt judges no document for any topic of .*questions"),
        ("browsecomp-plus", lines({"query_id": 7, "query": "what", "answer": 3}), "line 1: .*answer"),
    ],
)
def test_a_bad_record_is_refused_with_its_place(dataset: str, content: object, said: str, tmp_path: Path) -> None:
    path = write(tmp_path / "questions", content)
    write(tmp_path / ("qrel_evidence.txt" if dataset == "browsecomp-plus" else "qrels.txt"), QRELS)
    with pytest.raises(DatasetError, match=said):
        load_questions(dataset, path)


@each_case(
    ("qrels", "said"),
    [
        ("q1 0 d1\n", "qrels.txt, line 1: 3 fields, and a judgment has four"),
        (
            "q1 0 d1 1\nq1 0 d2 high\n",
            'qrels.txt, line 2: the grade is "high"; it has to be a whole number up to 1,000',
        ),
        ("q1 0 d1 1001\n", 'qrels.txt, line 1: the grade is "1001"'),
        ("q1 0 d1 1_0\n", 'qrels.txt, line 1: the grade is "1_0"'),
        ("q1 0 d1 1\nq1 0 d1 2\n", "qrels.txt, line 2: the document 'd1' has the grade 2, and 1 at .*line 1"),
    ],
)
def test_bad_judgments_are_refused_with_their_place(qrels: str, said: str, tmp_path: Path) -> None:
    write(tmp_path / "qrels.txt", qrels)
    with pytest.raises(DatasetError, match=said):
        load_questions("trec", write(tmp_path / "topics.tsv", TOPICS))


def test_judgments_must_be_there_and_be_one_file(tmp_path: Path) -> None:
    path = write(tmp_path / "topics.tsv", TOPICS)
    with pytest.raises(DatasetError, match=r"in one file with 'qrel' in its name, and there is none"):
        load_questions("trec", path)
    for name in ("qrels-docs.txt", "qrels-pass.txt"):
        write(tmp_path / name, QRELS)
    with pytest.raises(DatasetError, match=r"there are 2 \(qrels-docs.txt, qrels-pass.txt\)"):
        load_questions("trec", path)
    questions, _ = browsecomp(tmp_path / "b")
    (tmp_path / "b" / "topics-qrels" / "qrel_golds.txt").unlink()
    with pytest.raises(DatasetError, match=r"its judgments qrel_golds.txt aren't there"):
        load_questions("browsecomp-plus-gold", questions)


@pytest.mark.parametrize(
    ("qrels", "said"),
    [
        ("q77\td1\t1\n", "test.tsv, line 2: queries.jsonl has no query 'q77'"),
        ("q1\td1\tx\n", 'test.tsv, line 2: the grade is "x"'),
        ("q1\td1\n", "test.tsv, line 2: 2 cells, and the header names 3"),
    ],
)
def test_a_bad_split_of_beir_is_refused_with_its_place(qrels: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=said):
        load_questions("beir", beir(tmp_path, qrels))


def test_a_split_of_beir_without_its_queries_is_refused(tmp_path: Path) -> None:
    path = beir(tmp_path)
    (tmp_path / "queries.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"its queries .*queries.jsonl aren't there"):
        load_questions("beir", path)


# All of them


def every(folder: Path) -> dict[str, Path]:
    """A file of each of the datasets, of two questions where a sample is drawn."""
    write(folder / "trec" / "qrels.txt", QRELS)
    write(folder / "top" / "qrels.txt", QRELS.replace("q1", "51"))
    trivia = triviaqa(TRIVIA, TRIVIA | {"QuestionId": "tc_2"})
    return {
        "bamboogle": write(folder / "b.csv", BAMBOOGLE),
        "frames": write(folder / "f.jsonl", lines(frames(), frames(Prompt="Which pen?"))),
        "popqa": write(folder / "p.tsv", POPQA + POPQA.splitlines()[1].replace("7", "8") + "\n"),
        "morehopqa": write(folder / "m.json", [morehopqa(), morehopqa(_id="q2_1")]),
        "multihop-rag": write(folder / "r.json", [multihop(), multihop(query="Does it?")]),
        "nq": write(folder / "n.jsonl", lines({"question": "a", "answer": ["b"]}, {"question": "c", "answer": ["d"]})),
        "triviaqa": write(folder / "t.json", trivia),
        "trec": write(folder / "trec" / "topics.tsv", TOPICS),
        "beir": beir(folder / "beir"),
    }


def test_a_sample_is_of_the_same_form(tmp_path: Path) -> None:
    for dataset, path in every(tmp_path).items():
        whole = {question.id: question for question in load_questions(dataset, path)}
        drawn = sample_file(dataset, path, 1, 1, 13)
        assert suffix(dataset, path) == path.suffix
        for content in drawn:
            beside = path.parent / f"drawn{path.suffix}"
            beside.write_bytes(content)
            question = only(dataset, beside)
            assert question == whole[question.id]
            beside.unlink()


def test_topics_as_elements_are_drawn_as_such(tmp_path: Path) -> None:
    path = write(tmp_path / "topics.txt", TOPIC_ELEMENTS)
    write(tmp_path / "qrels.txt", QRELS.replace("q1", "51"))
    first, second = sample_file("trec", path, 1, 1, 13)
    path.write_bytes(first + second)
    assert {each.id for each in load_questions("trec", path)} == {"51", "q3"}


def test_a_file_of_another_dataset_is_named(tmp_path: Path) -> None:
    for given_, path in every(tmp_path).items():
        if given_ == "trec":  # lines of an id and a text are told by nothing
            continue
        for asked in set(DATASETS) - {given_, "jsonl"}:  # that reads whatever has a question
            with pytest.raises(DatasetError, match=rf"name the dataset .*'{given_}'"):
                load_questions(asked, path)


def test_no_two_datasets_but_those_that_share_a_form_have_one(tmp_path: Path) -> None:
    shared = {("strategyqa", "strategyqa-facts"), ("browsecomp-plus", "browsecomp-plus-gold")}
    for spec in DATASETS.values():
        own = spec.forms[0].format
        names = datasets_in([own])
        assert names == (spec.name,) or names in shared or own.holds == "KILT's records"


# Runs of them


def test_questions_without_answers_are_submitted_and_scored_by_what_was_found(given: Given, tmp_path: Path) -> None:
    """The corpus has the paragraph `1` alone."""
    path = beir(tmp_path / "beir", "q1\t1\t2\nq1\td9\t1\n")
    ranking = {"retrieval_count": 100, "max_paragraphs": 100, "max_paragraph_words": 10**6, "duplicate_similarity": 100}
    settings_ = {"retrieval": ranking, "reading": {"reader": "none"}}
    keys = given(system="one-step", dataset="beir", questions=str(path), demonstrations=None, settings=settings_)
    prepared = prepare(make_request(keys))
    assert prepared.missing_gold == 1
    [question] = prepared.questions
    assert (question.answers, question.gold) == ((), (by_id("1", 2, "Ink"), by_id("d9")))
    found = (Collected(paragraph=Paragraph(id="1", title="Ink", text="Ink."), step=0, query="", rank=1, score=1.0),)
    run = record(system="one-step", dataset="beir", settings=settings_)
    asked = made_question("q1", answers=(), answer="", gold=question.gold, collected=found)
    scores = scores_of(run, asked)
    assert (scores["recall_at_5"], scores["mrr"], scores["answer_em"]) == (1 / 2, 1, None)
    ink, lost = gold_paragraphs(asked, "beir")
    assert (ink.name, ink.collected, lost.name, lost.collected) == ("Ink", True, "d9", False)
    assert (
        json.loads(next(lines_of(Source(record=run, questions=[asked]), "jsonl")))["gold_paragraphs"][1]["id"] == "d9"
    )


def test_judgments_of_another_corpus_are_refused_as_a_run_is_submitted(given: Given, tmp_path: Path) -> None:
    keys = given(dataset="beir", questions=str(beir(tmp_path / "beir")))
    with pytest.raises(DatasetError, match="the corpus has none of the first 2 relevant documents, 'd9' for one"):
        prepare(make_request(keys))
