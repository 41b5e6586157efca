"""What a step's result must be so that it can be recorded and read again."""

import math
from collections.abc import Iterable

from cotrail.core.results import Embedded, Entailed, Failure, Generated, Result, Retrieved
from cotrail.errors import UnrecordableError

MOST_CHARACTERS = 4_000_000
"""How much text a result may hold: many times what a long generation or a search of long pages has, and little enough
for a system to compare paragraphs with each other, and for many results to be written at once."""

MOST_TOKENS = 2**63 - 1
"""What the columns of token counts hold at most."""


def check_recordable(result: Result) -> None:
    """Raises UnrecordableError where a result is too large, or holds numbers that can't be read again."""
    if (held := characters(result)) > MOST_CHARACTERS:
        raise UnrecordableError(
            f"the result holds {held:,} characters, and at most {MOST_CHARACTERS:,} are recorded; "
            "look at what the model or the search server answered"
        )
    if not all(map(math.isfinite, _numbers(result))):
        raise UnrecordableError("the result holds a number that isn't finite; look at what computed it")
    if isinstance(result, Generated) and not all(0 <= count <= MOST_TOKENS for count in _tokens(result)):
        raise UnrecordableError(
            f"the result counts its tokens as {', '.join(map(str, _tokens(result)))}; look at the server that did"
        )


def characters(outcome: Result | Failure) -> int:
    """How much text it holds, about."""
    match outcome:
        case Retrieved(hits=hits):
            return sum(len(hit.paragraph.id) + len(hit.paragraph.title) + len(hit.paragraph.text) for hit in hits)
        case Generated(text=text, raw=raw):
            return len(text) + len(raw)
        case Embedded(similarities=rows):
            return sum(map(len, rows)) * DIGITS
        case Entailed():
            return 3 * DIGITS
        case Failure(message=message):
            return len(message)
        case _:
            raise TypeError(f"{outcome!r} is of no known kind")


DIGITS = 20
"""How long a number is, written down."""


def _numbers(result: Result) -> Iterable[float]:
    match result:
        case Retrieved(hits=hits):
            return (hit.score for hit in hits)
        case Embedded(similarities=rows):
            return (number for row in rows for number in row)
        case Entailed():
            return (result.entailment, result.neutral, result.contradiction)
        case Generated():
            return ()
        case _:
            raise TypeError(f"{result!r} is of no known kind")


def _tokens(result: Generated) -> tuple[int, ...]:
    return (result.prompt_tokens, result.cached_prompt_tokens, result.generated_tokens)
