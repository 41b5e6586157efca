"""The hand-made records of `made_causes.toml`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.causes.cause import Cause
from cotrail.evaluation.causes.gold_fates import FoundParagraph, Judgement, QuestionRecord, SeenParagraph

FOUND, SHOWN, JUDGED = 0, 3, 5
"""The steps at which paragraphs are found, shown and compared."""


class Made(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record as the file has it."""

    name: str
    signs: tuple[Cause, ...]
    says: str
    question: str
    answers: tuple[str, ...]
    gold: tuple[str, ...]
    shown: tuple[str, ...]
    about: str = "birthplace"
    found: tuple[str, ...] | None = None
    cut: dict[str, str] = {}
    judged: tuple[tuple[str, str, float, float], ...] = ()
    gold_by: str = "content"
    pinned: str = ""
    rule: str = "hotpotqa"
    answer: str = ""
    stated: str = ""
    sentences: tuple[str, ...] = ()
    searches: int = 2
    ended_by: str = "answer"
    trouble: str = ""
    unread: int = 0


class MadeRecord(Struct, frozen=True):
    """A record with the causes that it was made to show, and what the facts behind the first of them have."""

    name: str
    signs: tuple[Cause, ...]
    says: str
    record: QuestionRecord


def made_records() -> Iterator[MadeRecord]:
    """All records of the file."""
    file = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes())
    paragraphs = {key: Paragraph(id=key, **fields) for key, fields in file["paragraphs"].items()}
    for told in file["record"]:
        made = msgspec.convert(file["about"][told.get("about", "birthplace")] | told, Made)
        yield MadeRecord(made.name, made.signs, made.says, _record(made, paragraphs))


def _record(made: Made, paragraphs: Mapping[str, Paragraph]) -> QuestionRecord:
    found = made.shown if made.found is None else made.found

    def gold(key: str) -> GoldParagraph:
        fields: dict[str, Any] = {"title": paragraphs[key].title, "text": paragraphs[key].text, "by": made.gold_by}
        return msgspec.convert(fields, GoldParagraph)

    return QuestionRecord(
        question=made.question,
        scoring=msgspec.convert({"rule": made.rule}, Scoring),
        answers=made.answers,
        gold=tuple(map(gold, made.gold)),
        pinned=gold(made.pinned) if made.pinned else None,
        answer=made.answer,
        stated=made.stated,
        sentences=made.sentences,
        searches=made.searches,
        found=tuple(
            FoundParagraph(paragraph=paragraphs[key], step=FOUND, rank=rank) for rank, key in enumerate(found, start=1)
        ),
        seen=tuple(
            SeenParagraph(paragraph=paragraphs[key], step=SHOWN, text=made.cut.get(key, paragraphs[key].statement))
            for key in made.shown
        ),
        judgements=tuple(
            Judgement(
                sentence=sentence,
                paragraph=paragraphs[key],
                step=JUDGED,
                entailment=entailment,
                contradiction=contradiction,
            )
            for sentence, key, entailment, contradiction in made.judged
        ),
        ended_by=made.ended_by,
        trouble=made.trouble,
        unread=made.unread,
    )
