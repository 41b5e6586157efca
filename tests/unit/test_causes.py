"""Causes of wrong answers: hand-made records of each, and what holds for all."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.causes.answer_forms import same_but_for_form
from cotrail.evaluation.causes.cause import Cause, CauseLabel, Explanation, Sign, cause_counts, label_agreements
from cotrail.evaluation.causes.explaining import explain
from cotrail.evaluation.causes.gold_fates import FoundParagraph, QuestionRecord, SeenParagraph
from cotrail.evaluation.causes.names_in_texts import Scene
from cotrail.evaluation.causes.plain_words import plain
from cotrail.evaluation.metrics.answer_scores import answer_scores
from tests.cases import each_case
from tests.unit.made_causes import MadeRecord, made_records

RECORDS = tuple(made_records())
ORDER = list(Cause)


@each_case("made", RECORDS, ids=lambda made: made.name)
def test_a_record_made_for_a_cause_shows_it_and_the_others_that_apply(made: MadeRecord) -> None:
    explanation = explain(made.record)
    assert explanation is not None
    assert tuple(sign.cause for sign in explanation.signs) == made.signs
    assert explanation.cause == made.signs[0]
    assert made.says in explanation.facts


@each_case("made", RECORDS, ids=lambda made: made.name)
def test_no_record_is_right_by_its_metric_already(made: MadeRecord) -> None:
    scores = answer_scores(made.record.scoring, made.record.short, made.record.answers)
    assert scores is not None
    assert scores.em < 1


def test_every_cause_has_several_records_and_there_are_sixty_at_least() -> None:
    counts = Counter(made.signs[0] for made in RECORDS)
    assert set(counts) == set(Cause)
    assert min(counts.values()) >= 4
    assert len(RECORDS) >= 60
    assert sum(len(made.signs) > 1 for made in RECORDS) >= 15
    assert len({made.name for made in RECORDS}) == len(RECORDS)


def test_a_right_answer_has_no_cause() -> None:
    assert explain(replace(RECORDS[0].record, right=True)) is None


def cut_to(text: str, *facts: str) -> tuple[Cause, str]:
    """The cause where a bridge's paragraph was shown only so far; facts: its supporting sentences."""
    whole = "The Brenn Bridge crosses the Sill. It is of stone. Its engineer was born abroad."
    page = Paragraph(id="b", title="Brenn Bridge", text=whole)
    record = QuestionRecord(
        question="Was the engineer of the Brenn Bridge a foreigner?",
        scoring=Scoring("hotpotqa"),
        answers=("yes",),
        gold=(GoldParagraph(title="Brenn Bridge", text=whole, facts=facts),),
        answer="no",
        sentences=("So the answer is: no.",),
        found=(FoundParagraph(paragraph=page, step=0, rank=1),),
        seen=(SeenParagraph(paragraph=page, step=1, text=text),),
    )
    explanation = explain(record)
    assert explanation is not None
    return explanation.cause, explanation.facts


def test_a_paragraph_without_its_supporting_sentence_was_not_shown_whatever_else_of_it_was() -> None:
    fact, shown = "Its engineer was born abroad.", "Brenn Bridge\nThe Brenn Bridge crosses the Sill. It is of stone."
    cause, facts = cut_to(shown, fact)
    assert cause is Cause.NOT_SHOWN
    assert f"without its part with '{fact}'" in facts
    assert cut_to(f"{shown} {fact}", fact)[0] is Cause.NOT_USED
    assert cut_to(shown, "It is of stone.")[0] is Cause.NOT_USED, "what was cut off isn't needed"
    assert cut_to(shown, "It stands elsewhere.")[0] is Cause.NOT_USED, "another edition has another sentence"
    assert cut_to(shown)[0] is Cause.NOT_USED


# What holds for all records


WORDS = st.sampled_from("Ada Lund was born in Marl or not 1901 5 km So the answer is: yes no . The".split())  # noqa: SIM905
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
PARAGRAPHS = st.builds(Paragraph, id=TEXTS, title=TEXTS, text=TEXTS)
GOLD = st.builds(GoldParagraph, title=TEXTS, text=TEXTS, by=st.sampled_from(["content", "title"]))
ANY = st.builds(
    QuestionRecord,
    question=TEXTS,
    scoring=st.sampled_from(
        [Scoring("hotpotqa"), Scoring("label"), Scoring("drop"), Scoring("squad", any_script=True)]
    ),
    answers=st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
    gold=st.lists(GOLD, max_size=3).map(tuple),
    pinned=st.none() | GOLD,
    answer=TEXTS,
    sentences=st.lists(TEXTS, max_size=4).map(tuple),
    found=st.lists(st.builds(FoundParagraph, paragraph=PARAGRAPHS, step=st.just(0), rank=st.just(1))).map(tuple),
    seen=st.lists(st.builds(SeenParagraph, paragraph=PARAGRAPHS, step=st.just(1), text=TEXTS)).map(tuple),
    ended_by=st.sampled_from(["", "answer", "limit: sentences"]),
    trouble=st.sampled_from(["", "the question is failed"]),
)


@given(ANY)
def test_every_wrong_answer_has_a_cause_its_signs_in_order_each_once_and_with_facts(record: QuestionRecord) -> None:
    explanation = explain(record)
    assert explanation is not None
    causes = [sign.cause for sign in explanation.signs]
    assert causes == sorted(set(causes), key=ORDER.index)
    assert all(sign.facts for sign in explanation.signs)
    assert (Cause.UNEXPLAINED in causes) <= (len(causes) == 1)
    assert explain(record) == explanation


@given(ANY)
def test_causes_of_paragraphs_are_never_named_without_gold_paragraphs(record: QuestionRecord) -> None:
    explanation = explain(replace(record, gold=()))
    assert explanation is not None
    of_paragraphs = {Cause.NEVER_FOUND, Cause.NOT_SHOWN, Cause.CONTRADICTED, Cause.NOT_USED}
    assert of_paragraphs.isdisjoint(sign.cause for sign in explanation.signs)


@given(ANY)
def test_what_is_found_and_shown_besides_makes_nothing_missing(record: QuestionRecord) -> None:
    record = replace(record, gold=tuple(replace(each, by="content") for each in record.gold))
    paragraphs = [Paragraph(id="g", title=each.title, text=each.text) for each in record.gold]
    seen = tuple(SeenParagraph(paragraph=each, step=1, text=each.statement) for each in paragraphs)
    explanation = explain(replace(record, seen=(*record.seen, *seen)))
    assert explanation is not None
    assert {Cause.NEVER_FOUND, Cause.NOT_SHOWN}.isdisjoint(sign.cause for sign in explanation.signs)


# Forms of answers


@each_case(
    ("text", "words"),
    [
        ("21 km", "21 kilometre"),
        ("twenty-one kilometers", "21 kilometre"),
        ("The 4th of March, 1901.", "4 of march 1901"),
        ("1901-03-04", "4 march 1901"),
        ("2024-13-40", "2024 13 40"),
        ("3.50 million", "3500000"),
        ("two hundred", "200"),
        ("a hundred", "hundred"),
        ("U.S.", "us"),
        ("Zoë's", "zoes"),
        ("007", "7"),
        ("0.0", "0"),
        ("5%", "5 percent"),
        ("塔", "塔"),
        ("...", ""),
        ("", ""),
    ],
)
def test_words_have_one_plain_form(text: str, words: str) -> None:
    assert plain(text) == words


@given(st.text())
def test_the_plain_form_is_made_of_any_text(text: str) -> None:
    assert plain(text) == " ".join(plain(text).split())


@each_case(
    ("answer", "published", "is_form"),
    [
        ("not Marl", "Marl", False),
        ("Grett or Marl", "Marl", False),
        ("Marl or Grett", "Marl", False),
        ("Marl. Not Grett", "Marl", True),
        ("between 5 and 7", "5", False),
        ("5 people", "5", True),
        ("Marlene", "Marl", False),
        ("", "Marl", False),
        ("Marl", "", False),
        ("no, yes", "no", False),
        ("No.", "no", True),
        ("I know", "no", False),
        ("false", "no", True),
        ("New York City", "York", False),
        ("York", "New York", False),
    ],
)
def test_an_answer_is_a_published_one_in_another_form_or_not(answer: str, published: str, *, is_form: bool) -> None:
    assert bool(same_but_for_form(Scoring("hotpotqa"), Scene("Where?"), answer, [published])) == is_form


# Counts and labels


def explanations(*causes: Cause) -> list[Explanation]:
    return [Explanation(signs=(Sign(cause=cause, facts="f"),)) for cause in causes]


def test_counts_add_up_to_the_wrong_answers_and_shares_to_one() -> None:
    both = Explanation(signs=(Sign(cause=Cause.LIMIT, facts="f"), Sign(cause=Cause.NEVER_FOUND, facts="f")))
    counts = cause_counts([both, *explanations(Cause.NEVER_FOUND, Cause.LIMIT, Cause.FORM)])
    assert [each.cause for each in counts] == ORDER
    assert {each.cause: (each.questions, each.share, each.signs) for each in counts if each.signs} == {
        Cause.FORM: (1, 0.25, 1),
        Cause.LIMIT: (2, 0.5, 2),
        Cause.NEVER_FOUND: (1, 0.25, 2),
    }
    half = next(each.interval for each in counts if each.cause == Cause.LIMIT)
    assert half is not None
    # Clopper and Pearson's interval of 2 of 4: from where 6 p² - 8 p³ + 3 p⁴, the chance of 2 or more, is 0.025.
    assert (round(half.low, 3), round(half.high, 3)) == (0.068, 0.932)
    assert cause_counts([]) == ()


def label(question: str, cause: Cause, annotator: str = "ann") -> CauseLabel:
    return CauseLabel(question_id=question, annotator=annotator, cause=cause)


def test_agreement_is_that_of_a_computation_by_hand() -> None:
    """Of 8 answers 7 alike; by chance 0.5 x 3/8 + 0.5 x 5/8 = 0.5, so that kappa is (7/8 - 0.5) / 0.5 = 0.75."""
    rules = {f"q{n}": Cause.FORM if n < 4 else Cause.LIMIT for n in range(8)}
    labels = [label(key, Cause.LIMIT if key == "q0" else cause) for key, cause in rules.items()]
    [agreement] = label_agreements(rules, [*labels, label("gone", Cause.FORM)])
    assert (agreement.labels, agreement.agreed, agreement.share) == (8, 7, 7 / 8)
    assert agreement.kappa == pytest.approx(0.75)
    assert agreement.confusion == {Cause.FORM: {Cause.FORM: 3, Cause.LIMIT: 1}, Cause.LIMIT: {Cause.LIMIT: 4}}


def test_each_annotator_has_an_agreement_of_their_own_and_one_cause_alone_has_no_kappa() -> None:
    rules = {"q0": Cause.FORM, "q1": Cause.FORM}
    labels = [label("q0", Cause.FORM, "bob"), label("q1", Cause.FORM, "bob"), label("q0", Cause.LIMIT)]
    ann, bob = label_agreements(rules, labels)
    assert (ann.annotator, ann.labels, ann.share, ann.kappa) == ("ann", 1, 0.0, 0.0)
    assert (bob.annotator, bob.labels, bob.share, bob.kappa) == ("bob", 2, 1.0, None)
