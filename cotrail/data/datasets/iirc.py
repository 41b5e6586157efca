"""IIRC's files (`train.json`, `dev.json`, `iirc_test.json`): a list of passages, each with its questions.

A question's context is snippets of the passage itself ("main") and of pages that it links to. The passage is pinned.
The other snippets are gold, since the file has no paragraphs: `located` in `cotrail.evaluation.metrics.corpus_coverage`
finds the paragraphs of a corpus that contain them.
"""

from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, entries
from cotrail.core.questions import GoldParagraph, Question, named
from cotrail.data.corpora import hotpotqa_abstracts
from cotrail.data.datasets import ircot_processed, spec
from cotrail.data.datasets.sampling import shuffled
from cotrail.errors import CorpusError, DatasetError

# IIRC's corpus: the pages of `context_articles.json`, with the paragraphs of each page shuffled.
#
# Most gold paragraphs come first on their pages, so the order would leak them (IRCoT, footnote 19).

MOST_HEADING_WORDS = 10
"""Words; shorter lines are headings and the like."""


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)


def paragraphs(place: str, raw: bytes, seed: int) -> Iterator[tuple[str, str]]:
    """The paragraphs of a page, given as its title and its HTML: the lines of more than ten words, shuffled."""
    title, html = decode(raw, tuple[str, str], place, CorpusError)
    lines = [line.strip() for line in text_of(html).split("\n")]
    numbered = [(number, line) for number, line in enumerate(lines) if len(line.split()) > MOST_HEADING_WORDS]
    return ((title, line) for _, line in shuffled(numbered, lambda item: f"{title}\0{item[0]}", seed))


def text_of(html: str) -> str:
    """The text of HTML: without tags, entities resolved."""
    parser = _Text()
    # Behind the last tag there is text alone, in which the parser would look for the end of a tag again and again.
    end = html.rfind(">") + 1
    parser.feed(html[:end])
    parser.close()
    return "".join(parser.pieces) + unescape(html[end:])


MAIN_TITLE = "main"
"""The title of snippets of the passage itself."""


class _Snippet(Struct, frozen=True):
    text: str
    passage: str = MAIN_TITLE


class _AnnotatedAnswer(Struct, frozen=True):
    """An annotated answer; type `none`: unanswerable, `bad`: marked unusable by annotators. Units are ignored."""

    type: Literal["span", "value", "binary", "none", "bad"]
    answer_spans: tuple[_Snippet, ...] = ()
    answer_value: str = ""

    def spans(self) -> tuple[str, ...]:
        """The spans of the answer, as in the released code of IRCoT (`processing_scripts/process_iirc.py`)."""
        match self.type:
            case "span":
                texts = [span.text.strip() for span in self.answer_spans]
            case "value" | "binary":
                texts = [self.answer_value.strip()]
            case _:
                texts = []
        return tuple(filter(None, texts))


class _PassageQuestion(Struct, frozen=True):
    question: str
    answer: _AnnotatedAnswer
    context: tuple[_Snippet, ...] = ()
    qid: str | None = None


class _Passage(Struct, frozen=True):
    title: str
    text: str
    questions: tuple[_PassageQuestion, ...]


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the answerable questions of a file; the raw record of each is its passage with this question alone."""
    for place, raw in entries(path, DatasetError):
        passage = decode(raw, _Passage, place, DatasetError)
        for number, question in enumerate(passage.questions):
            if spans := question.answer.spans():
                yield spec.QuestionRecord(
                    place=f"{place}, question {number + 1}",
                    raw=_alone(raw, number),
                    annotated=spec.AnnotatedQuestion(question=_question(passage, question, spans)),
                )


def _alone(raw: msgspec.Raw, number: int) -> bytes:
    """The passage with one of its questions; the parts that remain are byte for byte as published."""
    fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    questions = msgspec.json.decode(fields["questions"], type=list[msgspec.Raw])
    return msgspec.json.encode(fields | {"questions": [questions[number]]})


def _question(passage: _Passage, question: _PassageQuestion, spans: tuple[str, ...]) -> Question:
    pinned = GoldParagraph(title=passage.title.strip(), text=passage.text.strip())
    linked = (snippet for snippet in question.context if snippet.passage.strip() not in (MAIN_TITLE, pinned.title))
    gold = (GoldParagraph(title=snippet.passage.strip(), text=snippet.text.strip()) for snippet in linked)
    return Question(
        id=spec.id_of(passage.title, passage.text, question.question) if question.qid is None else question.qid,
        text=question.question,
        answers=(spec.spans_as_answer(spans),),
        gold=tuple(dict.fromkeys(gold)),
        pinned=pinned,
        kinds=named(answer_type=question.answer.type),
    )


SPEC = spec.dataset(
    "iirc",
    spec.QuestionForm(format=spec.FORMATS["iirc"], read=read, snippets=True),
    ircot_processed.form("iirc", pins=True),
    recipe=spec.Recipe(
        needs="IIRC's context_articles.json",
        seems="to hold IIRC's articles",
        records=hotpotqa_abstracts.members,
        paragraphs=paragraphs,
        shuffles=True,
        paper_paragraphs=1_882_415,
    ),
)
