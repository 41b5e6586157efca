"""CRAG's three-valued score, as far as it needs no judge (facebookresearch/CRAG, `local_evaluation.py`).

CRAG rewards saying that one doesn't know over being wrong. Its script asks a language model whether an answer that
isn't equal to a published one agrees with it; without that judge such an answer counts as wrong, so this is the lowest
that the score can be. The paper's perfect and acceptable answers (1 and 0.5) are told apart by people, and not by the
script.
"""

from collections.abc import Sequence

_UNKNOWN = "i don't know"
"""What an answer that is missing says somewhere."""

_FALSE_PREMISE = "invalid"
"""What both answers say of a question whose premise is false, in whatever words."""


def crag_score(prediction: str, answers: Sequence[str]) -> float | None:
    """1 for a right answer, 0 for a missing one, -1 for any other; None where none is published.

    Missing is an empty answer, and one that says "I don't know", with a typographic apostrophe too. Right is what
    equals a published answer apart from case and outer white space, or what calls a question invalid whose answer does.
    """
    if not answers:
        return None
    said = _plain(prediction)
    if not said or _UNKNOWN in said:
        return 0.0
    return 1.0 if any(_agree(said, _plain(answer)) for answer in answers) else -1.0


def _agree(said: str, published: str) -> bool:
    return said == published or (_FALSE_PREMISE in said and _FALSE_PREMISE in published)


def _plain(text: str) -> str:
    return text.strip().lower().replace("\u2019", "'")
