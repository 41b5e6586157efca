"""Causes of wrong answers whose texts are as long as corpora and models make them."""

import pytest

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.causes.cause import Cause
from cotrail.evaluation.causes.explaining import explain
from cotrail.evaluation.causes.gold_fates import (
    LONGEST_CHAIN,
    MOST_CHARACTERS,
    FoundParagraph,
    QuestionRecord,
    SeenParagraph,
    bounded,
)

LINES = tuple(f"Vell was founded {number} times in {1900 + number % 90} near Town{number}." for number in range(10_000))


def asked(text: str, sentences: tuple[str, ...]) -> QuestionRecord:
    page = Paragraph(id="vell", title="Vell", text=text)
    return QuestionRecord(
        question=f"When? {text}",
        scoring=scoring_of("hotpotqa"),
        answers=("1850",),
        gold=(GoldParagraph(title="Vell", text=text),),
        answer=sentences[-1],
        sentences=sentences,
        searches=1,
        found=(FoundParagraph(paragraph=page, step=0, rank=1),),
        seen=(SeenParagraph(paragraph=page, step=1, text=text),),
    )


@pytest.mark.timeout(60)
def test_ten_thousand_lines_are_explained_by_their_beginning() -> None:
    text = "\n".join(LINES)
    found = explain(asked(text, LINES))
    assert found is not None
    assert found.cause is not Cause.NEVER_FOUND, "cut alike, a paragraph is still the gold one"
    short = bounded(asked(text, LINES))
    assert len(short.gold[0].text) == len(short.seen[0].text) == MOST_CHARACTERS
    assert len(short.sentences) == LONGEST_CHAIN


def test_what_is_short_is_read_whole() -> None:
    record = asked("Vell was founded in 1850 near Marlow.", ("Vell was founded in 1901 near Marlow.",))
    assert bounded(record) == record
    explained = explain(record)
    assert explained is not None
    assert explained.cause is Cause.CONTRADICTED
    assert "'1850'" in explained.facts
