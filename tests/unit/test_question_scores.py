"""Scores of questions and their means."""

from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import GoldParagraph
from cotrail.evaluation.metrics.question_scores import means
from cotrail.evaluation.metrics.question_scoring import question_scores


def test_an_unfinished_question_scores_nothing_for_its_answer_and_recall_for_what_it_has() -> None:
    ink = Paragraph(id="1", title="Ink", text="Stains.")
    gold = (GoldParagraph(title="Ink", text="Stains."),)
    done = question_scores("jsonl", "ink", ("ink",), [ink], gold)
    unfinished = question_scores("jsonl", None, ("ink",), [ink], gold)
    assert (done.answer_em, done.answer_f1, done.support_recall) == (1, 1, 1)
    assert (unfinished.answer_em, unfinished.answer_f1, unfinished.support_recall) == (0, 0, 1)
    expected = {"answer_em": 0.5, "answer_f1": 0.5, "support_recall": 1.0, "paragraphs_collected": 1}
    assert expected.items() <= means([done, unfinished]).items()


def test_means_leave_out_questions_without_published_answers() -> None:
    published = question_scores("jsonl", "ink", ("ink",), [], ())
    unpublished = question_scores("jsonl", "ink", (), [], ())
    assert means([published, unpublished])["answer_em"] == 1
    assert means([unpublished])["answer_em"] is None
    assert means([])["paragraphs_collected"] is None


def test_the_answer_of_an_unfinished_question_covers_nothing() -> None:
    done = question_scores("eli5", "it is ink", ("The ink!",), [], ())
    unfinished = question_scores("eli5", None, ("The",), [], ())
    assert (done.cover_em, done.cover_em_words, done.rouge_l) == (1, 1, 2 / 5)
    assert (unfinished.cover_em, unfinished.cover_em_words, unfinished.rouge_l) == (0, 0, 0)
    assert means([done, unfinished])["cover_em"] == 0.5


def test_a_fact_check_is_accurate_where_the_label_is_the_whole_answer() -> None:
    exact = question_scores("fever", "False.", ("false",), [], ())
    longer = question_scores("fever", "It is false.", ("false",), [], ())
    assert (exact.answer_em, exact.cover_em, exact.rouge_l) == (1, 1, None)
    assert (longer.answer_em, longer.answer_f1, longer.cover_em) == (0, 0, 1)
