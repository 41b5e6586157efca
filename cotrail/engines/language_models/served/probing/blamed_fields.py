"""Which field of a request a refusal is about."""

import re
from collections.abc import Collection, Mapping
from typing import Literal

from msgspec import Struct

from cotrail.engines.language_models.endpoint import Omitted
from cotrail.engines.language_models.served.refusals import Reported

Field = Omitted | Literal["limit", "effort"]
"""A field that a request can do without, the one that bounds its text, or the one that says how much to think."""

_NAMES: Mapping[Field, tuple[str, ...]] = {
    "limit": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"),
    "effort": ("reasoning_effort", "effort", "thinking_level", "thinkingLevel"),
    "stream_options": ("stream_options", "include_usage"),
    "stream": ("stream", "streaming"),
    "logprobs": ("logprobs", "top_logprobs"),
    "seed": ("seed",),
    "stop": ("stop", "stop_sequences", "stopSequences"),
    "top_p": ("top_p", "topP"),
    "temperature": ("temperature",),
}
"""The names under which APIs have them; of several that a message names, the earlier ones are left out first."""


_WORD = re.compile(r"\w+")


class Blame(Struct, frozen=True, kw_only=True):
    """A field, and whether the refusal leaves no doubt that it is this one alone."""

    field: Field
    certain: bool


def blamed(reported: Reported, sent: Collection[Field]) -> Blame | None:
    """The field that a refusal is about, by its `param`, else by its message; None where neither names one.

    sent: the fields that the request had.
    """
    told = reported.param.rpartition(".")[2]
    for field in _NAMES:
        if field in sent and told in _NAMES[field]:
            return Blame(field=field, certain=True)
    words = set(_WORD.findall(reported.message))
    named = [field for field in _NAMES if field in sent and not words.isdisjoint(_NAMES[field])]
    return Blame(field=named[0], certain=len(named) == 1) if named else None
