"""The settings of readers of single documents."""

from typing import Literal

from msgspec import Struct

from cotrail.common.numbers import Positive

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
    or think, sure where its answer stands in the `document`."""

    readings: Readings = "document"
    """What counts as read: what stands in the `document`, or `any` text of the reader. What doesn't count is
    recorded, and the document has no answer then."""

    max_answer_tokens: Positive = 32
    """The most tokens of a reader's answer."""

    max_paragraph_words: Positive = 350
    """A document is cut to this many words where the model is shown it."""
