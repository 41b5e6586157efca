"""Writing an answer."""

import msgspec

from cotrail.core.actions.kind import ActionKind, Stored
from cotrail.core.actions.prompted import (
    Prompted,
    WrittenPrompt,
    decides_generation,
    generate,
    model_need,
    prompt_paragraphs,
    prompt_request,
)
from cotrail.core.results import Generated, Json


class Read(Prompted, frozen=True, kw_only=True):
    """Write a question's answer from its paragraphs."""


def _read_back(request: Json, stored: Stored) -> Read:
    written = msgspec.convert(request, WrittenPrompt)
    return Read(
        prompt=written.prompt(stored),
        max_tokens=written.max_tokens,
        until=written.until,
        temperature=written.temperature,
    )


READ = ActionKind(
    name="read",
    action=Read,
    result=Generated,
    role="generation",
    carry_out=generate,
    decides=decides_generation,
    request=prompt_request,
    read_back=_read_back,
    paragraphs=prompt_paragraphs,
    pinned="model",
    need="the model server",
    named_need=model_need,
)
