"""cotrail's own format for custom questions: JSON Lines of `{"id", "question", "answers", "gold"}`.

`answers` (strings) and `gold` are optional. A gold paragraph is an id in the corpus or `{"title", "text"}`. Further
optional fields: `pinned`, the passage that the question is about; `kinds`, by name, the sorts that it is counted among,
or `kind`, a single one; `distractors`, paragraphs that a demonstration shows next to the gold ones; `hops`, their
number; `chain`, the sentences that lead to the answer; `metadata`, anything, which is read past. Other fields are
refused, since they are probably misspelt.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cotrail.common.json_files import beginning, decode, is_list, is_object, lines
from cotrail.common.refusals import shown
from cotrail.core.questions import UNNAMED, GoldParagraph, Question, named
from cotrail.data.datasets.spec import (
    AnnotatedQuestion,
    DatasetSpec,
    FileFormat,
    ParagraphLookup,
    QuestionForm,
    QuestionRecord,
    Scoring,
    check_text,
)
from cotrail.errors import DatasetError

MOST_LISTED = 5
"""Maximum missing ids that an error names."""

ParagraphReference = str | GoldParagraph
"""A paragraph, given by its id in the corpus or by its content."""


class JsonlQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """A question as written in the file."""

    id: str
    question: str
    answers: tuple[str, ...] = ()
    gold: tuple[ParagraphReference, ...] = ()
    pinned: ParagraphReference | None = None
    kind: str = ""
    kinds: Mapping[str, str] = {}
    distractors: tuple[ParagraphReference, ...] = ()
    hops: int | None = None
    chain: tuple[str, ...] = ()
    metadata: Any = None


def read(path: Path, lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    """Read the questions of a file."""
    if not is_object(path, DatasetError):
        is_one_list = is_list(path, DatasetError)
        raise DatasetError(
            f"{path} {'is one JSON list' if is_one_list else f'begins with {beginning(path, DatasetError)}'}; write a "
            'question a line, as {"id": "q1", "question": "..."}'
            f"{f' (`jq -c .[] {path} > questions.jsonl`)' if is_one_list else ''}"
        )
    for place, raw in lines(path, DatasetError):
        line = decode(raw, JsonlQuestion, place, DatasetError)
        _check(line, place)
        question = Question(
            id=line.id,
            text=line.question,
            answers=line.answers,
            gold=_resolved(line.gold, lookup, place),
            pinned=_resolved((line.pinned,), lookup, place)[0] if line.pinned else None,
            kinds=_kinds(line, place),
        )
        distractors = _resolved(line.distractors, lookup, place)
        annotated = AnnotatedQuestion(question=question, distractors=distractors, chain=line.chain)
        yield QuestionRecord(place=place, raw=raw, annotated=annotated)


def _check(line: JsonlQuestion, place: str) -> None:
    for what, texts in {"answer": line.answers, "sentence of the chain": line.chain}.items():
        for text in texts:
            check_text(text, what, place, DatasetError)
    for paragraph in (*line.gold, line.pinned, *line.distractors):
        if isinstance(paragraph, GoldParagraph):
            check_text(paragraph.text, "text of a paragraph", place, DatasetError)


def _kinds(line: JsonlQuestion, place: str) -> Mapping[str, str]:
    """The kinds of a question, of which a single one needs no name."""
    if line.kind and line.kinds:
        raise DatasetError(f"{place}: there are both kind and kinds; put all of them into kinds")
    if blank := [name for name, kind in line.kinds.items() if not name.strip() or not kind.strip()]:
        raise DatasetError(f"{place}: a name or a kind in kinds is empty ({blank[0]!r}); fill it in or take it out")
    return line.kinds or named(**{UNNAMED: line.kind})


def _resolved(
    references: Sequence[ParagraphReference], lookup: ParagraphLookup | None, place: str
) -> tuple[GoldParagraph, ...]:
    ids = [item for item in references if isinstance(item, str)]
    if ids and lookup is None:
        raise DatasetError(f"{place}: paragraphs are given by id, so name the corpus that they are in")
    paragraphs = lookup(ids) if ids and lookup else {}
    if missing := [id_ for id_ in ids if id_ not in paragraphs]:
        references = ", ".join(map(shown, missing[:MOST_LISTED])) + (", ..." if len(missing) > MOST_LISTED else "")
        raise DatasetError(
            f"{place}: the corpus has no paragraph {references}; give ids of this corpus, or title and text"
        )
    return tuple(
        GoldParagraph(title=paragraphs[item].title, text=paragraphs[item].text, id=item)
        if isinstance(item, str)
        else item
        for item in references
    )


SPEC = DatasetSpec(
    name="jsonl",
    title="questions of your own",
    files='lines of {"id", "question", "answers", "gold"}',
    source="you",
    asks="anything",
    metric="exact match and F1, as SQuAD's script",
    kinds="any, by the field `kinds`",
    forms=(
        QuestionForm(
            format=FileFormat(
                "questions in cotrail's own form", False, frozenset({"id", "question"}), frozenset({"paragraphs"})
            ),
            read=read,
        ),
    ),
    scoring=Scoring("squad", any_script=True),
)
