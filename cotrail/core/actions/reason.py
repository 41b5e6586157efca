"""Writing a sentence of a chain of thought."""

import msgspec
from msgspec.structs import replace

from cotrail.core.actions.kind import ActionKind, Engines, Stored, unusual
from cotrail.core.actions.prompted import (
    Prompted,
    WrittenPrompt,
    decides_generation,
    generate,
    model_need,
    prompt_paragraphs,
    prompt_request,
    sampling,
)
from cotrail.core.binding import Binding
from cotrail.core.generation import RULES, Until
from cotrail.core.results import Generated, Json


class Reason(Prompted, frozen=True, kw_only=True):
    """Write the next sentence of a chain of thought, or, with another `until`, all of the rest.

    splitter: what decides where a sentence ends: cotrail's own `RULES`, or a pipeline of spaCy, as `NAME@VERSION`.
    sample: which of several chains this is, from 0, drawn by a seed of its own; None where there is but one.
    """

    until: Until = "sentence"
    splitter: str = RULES
    sample: int | None = None

    @property
    def sample_number(self) -> int | None:
        """See `Prompted`."""
        return self.sample

    @property
    def continues_chain(self) -> bool:
        """Return whether its text is the next sentence of the question's chain; a line of titles, for one, isn't."""
        return self.until == "sentence"


class _WrittenReason(WrittenPrompt, kw_only=True):
    splitter: str = RULES
    sample: int | None = None


def _read_back(request: Json, stored: Stored) -> Reason:
    written = msgspec.convert(request, _WrittenReason)
    return Reason(
        prompt=written.prompt(stored),
        max_tokens=written.max_tokens,
        until=written.until,
        splitter=written.splitter,
        sample=written.sample,
        temperature=written.temperature,
    )


def _decides(action: Reason, binding: Binding) -> Json:
    return decides_generation(action, binding) | unusual(action, "splitter")


def _carry_out(action: Reason, engines: Engines) -> Generated:
    written = _first_sentence(action, engines) if _is_split(action) else generate(action, engines)
    return written if action.sample is None else replace(written, seed=sampling(action, engines.binding).seed)


def _is_split(action: Reason) -> bool:
    """Return whether a pipeline, and not `RULES`, decides where the sentence ends."""
    return action.until == "sentence" and action.splitter != RULES


def _first_sentence(action: Reason, engines: Engines) -> Generated:
    # The splitter first: a worker that lacks it says so before the model has written anything.
    splitter = engines.splitter(action.splitter)
    # A pipeline's first sentence depends on what follows it, so the model writes its line to the end.
    written = generate(action, engines, until="line")
    return replace(written, text=splitter.first_sentence(written.text))


REASON = ActionKind(
    name="reason",
    action=Reason,
    result=Generated,
    role="generation",
    carry_out=_carry_out,
    decides=_decides,
    request=prompt_request,
    read_back=_read_back,
    paragraphs=prompt_paragraphs,
    pinned="model",
    need="the model server",
    named_need=model_need,
)
