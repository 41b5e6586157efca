"""Scores of questions and their means."""

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.evaluation.metrics.question_scores import KindedScores, kinded_means, mean_scores
from cotrail.systems.registry import find_system
from tests.cases import each_case
from tests.unit.scored import question_scores


def test_an_unfinished_question_scores_nothing_for_its_answer_and_recall_for_what_it_has() -> None:
    ink = Paragraph(id="1", title="Ink", text="Stains.")
    gold = (GoldParagraph(title="Ink", text="Stains."),)
    done = question_scores("jsonl", "ink", ("ink",), [ink], gold)
    unfinished = question_scores("jsonl", None, ("ink",), [ink], gold)
    assert (done["answer_em"], done["answer_f1"], done["paragraph_recall"]) == (1, 1, 1)
    assert (unfinished["answer_em"], unfinished["answer_f1"], unfinished["paragraph_recall"]) == (0, 0, 1)
    expected = {"answer_em": 0.5, "answer_f1": 0.5, "paragraph_recall": 1.0, "paragraphs_collected": 1}
    assert expected.items() <= mean_scores([done, unfinished]).metrics.items()


def test_means_leave_out_questions_without_published_answers() -> None:
    published = question_scores("jsonl", "ink", ("ink",), [], ())
    unpublished = question_scores("jsonl", "ink", (), [], ())
    assert mean_scores([published, unpublished]).metrics["answer_em"] == 1
    assert mean_scores([unpublished]).metrics["answer_em"] is None
    assert mean_scores([]).metrics["paragraphs_collected"] is None


def test_an_empty_answer_scores_nothing_and_none_of_a_run_that_has_no_answers_is_not_scored() -> None:
    ink = Paragraph(id="1", title="Ink", text="Stains.")
    gold = (GoldParagraph(title="Ink", text="Stains."),)
    empty = question_scores("jsonl", "", ("ink",), [ink], gold)
    collected = question_scores("jsonl", "", ("ink",), [ink], gold, answering=False)
    assert (empty["answer_em"], empty["answer_f1"], empty["cover_em"]) == (0, 0, 0)
    assert {collected[name] for name in ("answer_em", "answer_f1", "tuning_f1", "cover_em")} == {None}
    assert collected["paragraph_recall"] == empty["paragraph_recall"] == 1
    assert collected["answer_support_recall"] == empty["answer_support_recall"] == 1
    assert question_scores("jsonl", "ink", ("ink",), [], (), answering=False)["answer_em"] == 1
    assert mean_scores([collected]).intervals["answer_em"] is None


WITHOUT_READER = {"reading": {"reader": "none"}}


@each_case("system", ["ircot", "rethinking"])
def test_a_run_without_a_reader_has_the_answers_that_its_chains_state(system: str) -> None:
    assert find_system(system).answers_with(WITHOUT_READER)


def test_a_run_that_neither_reads_nor_states_answers_has_none() -> None:
    assert not find_system("one-step").answers_with(WITHOUT_READER)
    assert find_system("one-step").answers_with({"reading": {"reader": "direct"}})
    assert find_system("zero-shot").answers_with({})


def test_the_answer_of_an_unfinished_question_covers_nothing() -> None:
    done = question_scores("eli5", "it is ink", ("The ink!",), [], ())
    unfinished = question_scores("eli5", None, ("The",), [], ())
    assert (done["cover_em"], done["cover_em_words"], done["rouge_l"]) == (1, 1, 2 / 5)
    assert (unfinished["cover_em"], unfinished["cover_em_words"], unfinished["rouge_l"]) == (0, 0, 0)
    assert mean_scores([done, unfinished]).metrics["cover_em"] == 0.5


def test_exact_match_and_f1_are_of_the_span_that_an_answer_states_and_the_others_of_all_of_it() -> None:
    said = "Ink stains. So the answer is ink."
    spanned = question_scores("jsonl", said, ("ink",), [], (), stated="ink")
    whole = question_scores("jsonl", said, ("ink",), [], ())
    assert (spanned["answer_em"], spanned["answer_f1"], spanned["tuning_f1"]) == (1, 1, 1)
    assert (whole["answer_em"], whole["cover_em"]) == (0, 1)
    assert question_scores("jsonl", said, ("stains",), [], (), stated="ink")["cover_em"] == 1
    assert question_scores("jsonl", None, ("ink",), [], (), stated="ink")["answer_em"] == 0


def test_a_fact_check_is_accurate_where_the_label_is_the_whole_answer() -> None:
    exact = question_scores("fever", "False.", ("false",), [], ())
    longer = question_scores("fever", "It is false.", ("false",), [], ())
    assert (exact["answer_em"], exact["cover_em"], exact["rouge_l"]) == (1, 1, None)
    assert (longer["answer_em"], longer["answer_f1"], longer["cover_em"]) == (0, 0, 1)


def scored(answer: str | None, **kinds: str) -> KindedScores:
    return KindedScores(kinds=kinds, scores=question_scores("jsonl", answer, ("ink",), [], ()))


def test_each_sort_of_kinds_has_the_means_of_its_kinds_those_of_most_questions_first() -> None:
    questions = [
        scored("ink", type="bridge", level="hard"),
        scored("ink", type="comparison"),
        scored(None, type="comparison", level="easy"),
        scored("ink"),
    ]
    whole, parts = kinded_means(questions)
    assert whole == mean_scores([question.scores for question in questions])
    sizes = {sort: {kind: part.questions for kind, part in of.items()} for sort, of in parts.items()}
    assert sizes == {"type": {"comparison": 2, "bridge": 1}, "level": {"easy": 1, "hard": 1}}
    assert [list(of) for of in parts.values()] == [["comparison", "bridge"], ["easy", "hard"]]
    assert parts["type"]["comparison"] == mean_scores([question.scores for question in questions[1:3]])
    assert parts["type"]["comparison"].metrics["answer_em"] == 0.5


def test_an_interval_is_over_the_questions_that_have_the_metric() -> None:
    unpublished = question_scores("jsonl", "ink", (), [], ())
    means = mean_scores([scored("ink").scores, scored(None).scores, unpublished])
    interval = means.intervals["answer_em"]
    assert interval is not None
    assert (means.questions, interval.questions) == (3, 2)
    assert means.intervals["paragraph_recall"] is None
    assert set(mean_scores([]).intervals.values()) == {None}


def test_a_number_of_paragraphs_is_no_share() -> None:
    found = [Paragraph(id=str(number), title="Ink", text=str(number)) for number in range(9)]
    rows = [question_scores("jsonl", "ink", ("ink",), found[:count], ()) for count in (0, 1, 1, 9)]
    interval = mean_scores(rows).intervals["paragraphs_collected"]
    assert interval is not None
    assert interval.method == "student-t"
    assert (interval.low, interval.high > 9) == (0, True)
    assert mean_scores(rows[1:3]).intervals["paragraphs_collected"] is None
