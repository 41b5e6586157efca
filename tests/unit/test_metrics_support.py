from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.question_scores import mean_scores
from cotrail.evaluation.metrics.supporting_paragraphs import answer_support_recall, content_key, support_scores
from tests.cases import each_case
from tests.unit.scored import paragraph_recall, question_scores


def paragraph(title: str, text: str) -> Paragraph:
    return Paragraph(id=f"{title}-{text}", title=title, text=text)


def gold(*contents: tuple[str, str]) -> tuple[GoldParagraph, ...]:
    return tuple(GoldParagraph(title=title, text=text) for title, text in contents)


def test_recall_is_the_share_of_gold_paragraphs_collected() -> None:
    collected = [paragraph("Ink", "Stains."), paragraph("Pen", "Writes."), paragraph("Ink", "Stains.")]
    assert paragraph_recall(collected, gold(("Ink", "Stains."), ("Paper", "Pulp."))) == 1 / 2
    assert paragraph_recall(collected, gold(("Ink", "Stains."), ("Ink", "Stains."))) == 1
    assert paragraph_recall([], gold(("Ink", "Stains."))) == 0


def test_without_gold_there_is_no_recall() -> None:
    assert paragraph_recall([paragraph("Ink", "Stains.")], ()) is None


def test_white_space_case_and_marks_beyond_ascii_do_not_matter() -> None:
    assert content_key("Alû  demon", "It\u2019s\u00a0so.") == content_key("AL DEMON", "It's so .")


@each_case(
    "other", [("Ink", "Stain."), ("Inks", "tains."), ("", "InkStains."), ("Stains.", "Ink"), ("Ink!", "Stains.")]
)
def test_other_content_is_another_paragraph(other: tuple[str, str]) -> None:
    assert content_key(*other) != content_key("Ink", "Stains.")


def test_paragraphs_in_other_scripts_are_told_apart() -> None:
    assert content_key("東京", "日本の首都 2014") != content_key("京都", "日本の都市 2014")
    assert content_key("東京", "日本の 首都") == content_key("東京", "日本の首都")


contents = st.tuples(st.text(max_size=4), st.text(max_size=4))


@given(collected=st.lists(contents), wanted=st.lists(contents, min_size=1))
def test_recall_is_between_0_and_1_and_full_with_all_gold(
    collected: list[tuple[str, str]], wanted: list[tuple[str, str]]
) -> None:
    paragraphs = [paragraph(*content) for content in collected]
    recall = paragraph_recall(paragraphs, gold(*wanted))
    assert recall is not None
    assert 0 <= recall <= 1
    assert paragraph_recall(paragraphs + [paragraph(*content) for content in wanted], gold(*wanted)) == 1


def test_precision_f1_and_em_are_those_of_sets_of_paragraphs() -> None:
    collected = [paragraph("Ink", "Stains."), paragraph("Pen", "Writes."), paragraph("INK", " stains.")]
    scores = support_scores(
        scoring_of("hotpotqa"), collected, gold(("Ink", "Stains."), ("Paper", "Pulp."), ("Pen", "Breaks."))
    )
    assert scores is not None
    assert (scores.em, scores.precision, scores.recall, scores.f1) == (0, 1 / 2, 1 / 3, 0.4)
    assert scores.title_recall == 2 / 3
    all_of_it = support_scores(scoring_of("hotpotqa"), collected[:2], gold(("Pen", "Writes."), ("Ink", "Stains.")))
    assert all_of_it is not None
    assert (all_of_it.em, all_of_it.f1) == (1, 1)


def test_nothing_collected_scores_nothing() -> None:
    scores = support_scores(scoring_of("hotpotqa"), [], gold(("Ink", "Stains.")))
    assert scores is not None
    assert (scores.em, scores.f1, scores.precision, scores.recall, scores.title_recall) == (0, 0, 0, 0, 0)


def test_the_pinned_passage_counts_neither_for_nor_against() -> None:
    [pinned] = gold(("Ink", "The passage."))
    collected = [paragraph("Ink", "The passage."), paragraph("Pen", "Writes.")]
    scores = support_scores(scoring_of("iirc"), collected, gold(("Pen", "Writes."), ("Ink", "Of its page.")), pinned)
    assert scores is not None
    assert (scores.em, scores.precision, scores.recall, scores.title_recall) == (1, 1, 1, 1)
    assert support_scores(scoring_of("iirc"), collected, gold(("Ink", "Of its page.")), pinned) is None


def test_only_in_ones_own_files_are_paragraphs_in_other_scripts_told_apart() -> None:
    collected, wanted = [paragraph("東京", "日本の首都")], gold(("京都", "日本の都市"))
    ours, theirs = (support_scores(scoring_of(dataset), collected, wanted) for dataset in ("jsonl", "musique"))
    assert ours is not None
    assert theirs is not None
    assert (ours.recall, theirs.recall) == (0, 1)


@each_case(
    ("answer", "recall"),
    [
        ("Ink", 1),
        ("INK  stains", 1),
        ("ink: the stains", 1),
        ("blood", 0),
        ("the", 1),
        ('["ink", "blood"]', 1 / 2),
        ('["ink", "ink", "blood"]', 2 / 3),
    ],
)
def test_answer_support_is_the_share_of_spans_that_stand_in_a_paragraph(answer: str, recall: float) -> None:
    collected = [paragraph("Pen", "It writes."), paragraph("Ink", "Stains.")]
    assert answer_support_recall(collected, [answer, "pen"]) == recall


def test_without_an_answer_or_a_paragraph_nothing_is_supported() -> None:
    assert answer_support_recall([paragraph("Ink", "Stains.")], ()) is None
    assert answer_support_recall([], ["the"]) == 0


# All of a question's scores.


def test_a_question_has_a_score_for_every_metric_under_the_names_that_other_programs_know() -> None:
    scores = question_scores("eli5", "5", ("5",), [paragraph("Ink", "5.")], gold(("Ink", "5.")))
    assert mean_scores([scores]).metrics == dict.fromkeys(
        (
            "answer_em",
            "answer_f1",
            "tuning_f1",
            "cover_em",
            "cover_em_words",
            "crag",
            "rouge_l",
            "paragraph_recall",
            "paragraph_precision",
            "paragraph_f1",
            "paragraph_em",
            "title_recall",
            "answer_support_recall",
            "paragraphs_collected",
            "ndcg_at_10",
            "recall_at_5",
            "recall_at_10",
            "recall_at_100",
            "mrr",
        ),
        1,
    )


def test_what_is_not_published_has_no_score_and_what_is_not_finished_scores_nothing_for_its_answer() -> None:
    nothing = question_scores("musique", None, (), [], ())
    assert {name for name, score in nothing.items() if score is not None} == {"paragraphs_collected"}
    open_ = question_scores("musique", None, ("the",), [paragraph("Ink", "Stains.")], gold(("Ink", "Stains.")))
    assert (open_["answer_em"], open_["answer_f1"], open_["tuning_f1"], open_["paragraph_recall"]) == (0, 0, 0, 1)
