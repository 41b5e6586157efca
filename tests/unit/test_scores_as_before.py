"""The shortcuts of metrics against their definitions without any, on texts in which all of them matter."""

import re
import string
from collections.abc import Sequence
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from cotrail.common.answer_normalization import normalized
from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.registry import scoring_of
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.metrics.answer_scores import published_spans
from cotrail.evaluation.metrics.supporting_paragraphs import (
    Judged,
    SupportScores,
    answer_support_recall,
    counted,
    fold_of,
    gold_key,
    judged,
    paragraph_keys,
    support_scores,
)

SCORINGS = tuple(map(scoring_of, ("hotpotqa", "jsonl", "iirc")))
titles = st.sampled_from(("Ink", "ink", "I nk", "Ínk", "Pen", ""))
texts = st.sampled_from(
    ("It stains.", "Its tains.", "\u201cIt\u201d stains.", '"It" stains.', "&quot;It&quot; stains.", "日本")
)
paragraphs = st.lists(st.builds(Paragraph, id=st.sampled_from("abc"), title=titles, text=texts), max_size=6)
form = st.builds(
    GoldParagraph,
    id=st.sampled_from("abc"),
    title=titles,
    text=texts,
    by=st.sampled_from(("content", "id", "title")),
    grade=st.integers(1, 3),
)


def support_by_definition(
    scoring: Scoring, collected: Sequence[Paragraph], gold: Sequence[GoldParagraph], pinned: GoldParagraph | None
) -> SupportScores | None:
    fold = fold_of(scoring)
    wanted = {gold_key(each, fold) for each in counted(gold, pinned)}
    if not wanted:
        return None
    found = {(fold(each.title), fold(each.text)): paragraph_keys(each, fold) for each in collected}
    if pinned is not None:
        found.pop((fold(pinned.title), fold(pinned.text)), None)
    right = sum(not keys.isdisjoint(wanted) for keys in found.values())
    reached = wanted.intersection(chain.from_iterable(found.values()))
    precision, recall = right / len(found) if found else 0.0, len(reached) / len(wanted)
    named = {fold(each.title) for each in counted(gold, pinned) if each.title}
    return SupportScores(
        em=float(right == len(found) and reached == wanted),
        f1=2 * precision * recall / (precision + recall) if right else 0.0,
        precision=precision,
        recall=recall,
        title_recall=len(named & {title for title, _ in found}) / len(named) if named else None,
    )


def judged_by_definition(
    scoring: Scoring, found: Sequence[Paragraph], gold: Sequence[GoldParagraph], pinned: GoldParagraph | None
) -> tuple[Judged, ...]:
    fold = fold_of(scoring)
    content = [(fold(each.title), fold(each.text)) for each in found]
    own = pinned and (fold(pinned.title), fold(pinned.text))
    ranked = [paragraph_keys(each, fold) for each, its in zip(found, content, strict=True) if its != own]
    ranks = {key: rank for rank, keys in reversed(list(enumerate(ranked, start=1))) for key in keys}
    grades = {gold_key(each, fold): each.grade for each in counted(gold, pinned)}
    return tuple(Judged(grade, ranks.get(key)) for key, grade in grades.items())


@given(st.sampled_from(SCORINGS), paragraphs, st.lists(form, max_size=4), st.none() | form)
def test_paragraphs_are_compared_as_if_all_texts_were_folded(
    scoring: Scoring, collected: list[Paragraph], gold: list[GoldParagraph], pinned: GoldParagraph | None
) -> None:
    arguments = scoring, collected, gold, pinned
    assert support_scores(*arguments) == support_by_definition(*arguments)
    assert judged(*arguments) == judged_by_definition(*arguments)


words = st.lists(
    st.sampled_from(("a", "The", "an", "O'Brien", "obrien", "U.S.", "us", "-", "é", "\u2013", "x")), max_size=5
)
separated = st.tuples(words, st.sampled_from((" ", "  ", "\t", "-", "'"))).map(lambda pair: pair[1].join(pair[0]))


@given(st.lists(separated | st.text(max_size=12), max_size=3), separated | st.text(max_size=8))
def test_an_answer_stands_in_a_text_as_if_all_were_normalized(collected: list[str], answer: str) -> None:
    found = [Paragraph(id=str(number), title="T", text=text) for number, text in enumerate(collected)]
    whole = [f"T {text}" for text in collected]

    def plain(text: str) -> str:
        return re.sub(" +", " ", text.lower().strip())

    spans = published_spans(answer)
    stands = [
        any(plain(span) in plain(text) for text in whole) or any(normalized(span) in normalized(text) for text in whole)
        for span in spans
    ]
    assert answer_support_recall(found, [answer]) == sum(stands) / len(spans)


@given(st.text(alphabet=string.printable, max_size=20))
def test_normalizing_again_changes_nothing_that_is_remembered(text: str) -> None:
    assert normalized(text) == normalized.__wrapped__(text)
