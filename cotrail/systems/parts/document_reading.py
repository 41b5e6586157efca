"""Reading the answer to a query in one document, and how sure that is (Search-in-the-Chain, section 3.2)."""

import math
import re
import unicodedata
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.answer_normalization import normalized
from cotrail.common.humanize import Positive
from cotrail.core.actions.entail import Extract
from cotrail.core.actions.generate import Read
from cotrail.core.generation import Capability
from cotrail.core.ports.encoders import EXTRACTOR
from cotrail.core.ports.role import EngineRole
from cotrail.core.prompts import Asked, Prompt, Shown, user
from cotrail.core.questions import Paragraph
from cotrail.core.results import Extracted, Generated
from cotrail.core.system import Part, expect

# The settings of readers of single documents.

Reader = Literal["model", "extractor"]
Confidence = Literal["probability", "document"]
Readings = Literal["document", "any"]


class DocumentReaderSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reader of single documents."""

    reader: Reader = "model"
    """Who reads the answer to a query from its document: the run's language model by a short prompt, or the run's
    extractor."""

    confidence: Confidence = "probability"
    """How sure the language model is of what it read: by the `probability` of its words; or, for models that tell none
    or think, sure where its answer is in the `document`."""

    readings: Readings = "document"
    """What counts as read: what is in the `document`, or `any` text of the reader. What doesn't count is
    recorded, and the document has no answer then."""

    max_answer_tokens: Positive = 32
    """The most tokens of a reader's answer."""

    max_paragraph_words: Positive = 350
    """A document is cut to this many words where the model is shown it."""


UNANSWERABLE = "unanswerable"

INSTRUCTION = (
    "Answer the question by the paragraph alone. Reply with the fewest words of the paragraph that answer it, and with "
    f'nothing else. If the paragraph does not answer it, reply with the word "{UNANSWERABLE}".\n\n'
)

HIGHEST_LOGIT = 10.0
"""The largest logit of a model's answer: certainty has none."""


class Reading(Struct, frozen=True, kw_only=True):
    """What a reader read.

    text: empty where the document has no answer; confidence: on the scale of logits.
    discarded: what the reader wrote, where that doesn't stand in the document and so doesn't count.
    """

    text: str
    confidence: float
    discarded: str = ""


def read_document(query: str, document: Paragraph, settings: DocumentReaderSettings) -> Part[Reading]:
    """The answer to the query that the document holds, by the settings' reader."""
    reading = yield from _read(query, document, settings)
    if settings.readings == "any" or stands_in(reading.text, document):
        return reading
    return replace(reading, text="", discarded=reading.text)


def stands_in(answer: str, document: Paragraph) -> bool:
    """Return whether an answer is a piece of the document's title or text, in whatever case and punctuation.

    Whole words count: "no" doesn't stand in "know". Punctuation is dropped ("U.S." is "US") or parts words ("Arlo's"
    has "Arlo"), as the answer may have it. Scripts without spaces have no word boundaries to respect.
    """
    return any(_has(text, answer, form) for text in (document.title, document.text) for form in ("", " "))


def _has(text: str, answer: str, mark: str) -> bool:
    """Return whether the text has the answer, with that in the place of every punctuation mark of both."""
    words = _words(answer, mark)
    if not words:
        return answer in text
    before, behind = (" " if end < _UNSPACED else "" for end in (words[0], words[-1]))
    return f"{before}{words}{behind}" in f" {_words(text, mark)} "


def _words(text: str, mark: str) -> str:
    return normalized(_MARK.sub(mark, unicodedata.normalize("NFKC", text)))


_MARK = re.compile(r"[^\w\s]|_")
_UNSPACED = "\u0e00"
"""The first of the scripts that set no spaces between words, or few: Thai, and all behind it as far as Chinese."""


def _read(query: str, document: Paragraph, settings: DocumentReaderSettings) -> Part[Reading]:
    if settings.reader == "extractor":
        extracted = expect((yield Extract(question=query, paragraph=document)), Extracted)
        return Reading(text=extracted.text.strip(), confidence=extracted.confidence)
    read = Read(
        prompt=reader_prompt(query, document, settings.max_paragraph_words),
        max_tokens=settings.max_answer_tokens,
        until="line",
        temperature=0.0,
        scored=settings.confidence == "probability",
    )
    reading = _reading(expect((yield read), Generated))
    if settings.confidence == "probability":
        return reading
    return replace(reading, confidence=HIGHEST_LOGIT if stands_in(reading.text, document) else 0.0)


def reader_prompt(query: str, document: Paragraph, words: int) -> Prompt:
    """The question to the language model as a reader; the document is in it whatever its length."""
    shown = Shown(paragraph=document, form="Paragraph: {title}\n{text}\n\n", words=words, yields=0)
    return Prompt(turns=(user(INSTRUCTION, shown, Asked(query, "Question: {question}\nAnswer:")),))


def confidence(log_probabilities: tuple[float, ...]) -> float:
    """The logit of the tokens' geometric mean probability, within `HIGHEST_LOGIT`; 0, even odds, without tokens."""
    if not log_probabilities:
        return 0.0
    least = 1 / (1 + math.exp(HIGHEST_LOGIT))
    mean = math.exp(min(0.0, math.fsum(log_probabilities) / len(log_probabilities)))
    probability = min(max(mean, least), 1 - least)
    # Rounded, since mathematical libraries differ in the last digits.
    return round(math.log(probability / (1 - probability)), 6)


def _reading(reply: Generated) -> Reading:
    text = reply.text.strip().removesuffix(".").strip("\"'")
    # Thoughts that nothing marks as such for the model stay in its text.
    is_answer = not normalized(text).startswith(UNANSWERABLE) and not text.startswith("<think>")
    return Reading(text=text if is_answer else "", confidence=confidence(tuple(each for _, each in reply.kept_tokens)))


def reader_engines(settings: DocumentReaderSettings) -> tuple[EngineRole, ...]:
    """The engines that the reader asks in addition to the run's language model."""
    return (EXTRACTOR,) if settings.reader == "extractor" else ()


def reader_capabilities(settings: DocumentReaderSettings) -> frozenset[Capability]:
    """What the reader asks of the run's language model."""
    if settings.reader == "extractor":
        return frozenset()
    return frozenset({"turns", "scores"} if settings.confidence == "probability" else {"turns"})
