"""Whether an answer is consistent with what was read from its document (Search-in-the-Chain, section 3.2)."""

from cotrail.common.answer_normalization import normalized
from cotrail.common.text_overlap import contained, rouge_l
from cotrail.core.paragraphs import Paragraph
from cotrail.systems.searchain.settings import SearChainSettings

MOST_COMPARED_WORDS = 1000
"""How many words of either text ROUGE-L compares: its time grows with the product of the lengths."""


def differs(extracted: str, answer: str, document: Paragraph, settings: SearChainSettings) -> bool:
    """Return whether the model's answer to a query isn't consistent with the document retrieved for it.

    extracted: what the reader read from the document; where that is nothing, nothing contradicts the answer.
    """
    if not normalized(extracted):
        return False
    if settings.has_long_answers:
        return rouge_l(_cut(answer), _cut(document.text)) <= settings.alpha
    return not contained(extracted, answer)


def _cut(text: str) -> str:
    return " ".join(text.split()[:MOST_COMPARED_WORDS])
