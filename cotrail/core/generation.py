"""How a language model is asked to continue a prompt."""

from typing import Literal

from msgspec import Struct

Until = Literal["sentence", "line", "chain", "end"]
"""Where a generation ends at the latest: behind the first whole sentence, at the line's end, before what begins a
further demonstration (`chain`), or where the model ends it."""

RULES = "rules"
"""The splitter that is cotrail's own, `cotrail.common.sentence_boundaries`."""


class Sampling(Struct, frozen=True, kw_only=True):
    """How a continuation is drawn; at temperature 0 the likeliest token is taken and the seed plays no part.

    sample: which of several this is; it decides nothing that the seed doesn't.
    """

    temperature: float = 0.0
    seed: int = 0
    sample: int | None = None
