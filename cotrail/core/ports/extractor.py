"""Port of extractors: the interface of every model that reads an answer out of a paragraph."""

from collections.abc import Sequence
from typing import Protocol

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.role import BatchedRole
from cotrail.core.results import Extracted

DECIMALS = 6
"""Decimals of a confidence; further ones depend on the machine that computed it."""

MOST_TOKENS = 10
"""The most tokens of an answer, as with DPR's reader (Karpukhin et al. 2020, `max_answer_length` of its code)."""


class Extraction(Protocol):
    """A question and the paragraph that may answer it; structural, as `cotrail.core.ports.embedder.Comparison` is."""

    @property
    def question(self) -> str:
        """The question."""

    @property
    def paragraph(self) -> Paragraph:
        """The paragraph whose text the answer is a piece of."""


class Extractor(Protocol):
    """Reads answers out of paragraphs; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `dpr-reader@1f0c...`."""

    def extract(self, extractions: Sequence[Extraction]) -> list[Extracted]:
        """The best answer to each question in its paragraph's text, in their order, rounded to 6 decimals.

        Raises StepError, TransientStepError, and PromptTooLongError where a question leaves no room for its paragraph.
        """


EXTRACTOR: BatchedRole[Extractor, Extraction, Extracted] = BatchedRole(
    name="extractor",
    kind="extractor",
    work="reads answers out of paragraphs",
    carry_out=lambda extractor, extractions: extractor.extract(extractions),
)
