"""Reason and Read: a language model continues a prompt, which is a chain of thought or a question to answer.

Both kinds stand in one file, since they are written down, fingerprinted and carried out alike.
"""

import hashlib

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.actions.kind import Action, ActionKind, EngineNames, Engines, Stored, unusual
from cotrail.core.binding import Binding
from cotrail.core.generation import RULES, Sampling, Until
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Drop, Layout, Prompt
from cotrail.core.results import Generated, Json


class Prompted(Action, frozen=True, kw_only=True):
    """A generation; every action with a prompt derives from it.

    max_tokens: of the continuation; until: where it ends at the latest; temperature: the run's where None.
    """

    prompt: Prompt
    max_tokens: int
    until: Until = "line"
    temperature: float | None = None

    @property
    def sample_number(self) -> int | None:
        """Which of several samples this is, from 0; None where there is but one."""
        return None


def sampling(action: Prompted, binding: Binding) -> Sampling:
    """The sampling parameters of a generation; every sample has a seed of its own, made of the run's."""
    temperature = binding.temperature if action.temperature is None else action.temperature
    sample = action.sample_number
    if sample is None:
        return Sampling(temperature=temperature, seed=binding.seed)
    digest = hashlib.sha256(f"{binding.seed} {sample}".encode()).digest()
    # 31 bits, since some engines take the seed as a signed 32-bit number.
    return Sampling(temperature=temperature, seed=int.from_bytes(digest[:4]) >> 1, sample=sample)


def generate(action: Prompted, engines: Engines, until: Until | None = None) -> Generated:
    """Has the run's language model continue the prompt; until: in place of the action's own."""
    drawn = sampling(action, engines.binding)
    request = GenerationRequest(action.prompt, until or action.until, action.max_tokens, drawn)
    return engines.language_model().generate(request, engines.cancellation)


def decides_generation(action: Prompted, binding: Binding) -> Json:
    """Everything that decides the text: the prompt as it is rendered, the model and the sampling parameters."""
    drawn = sampling(action, binding)
    decides = {
        "prompt": action.prompt.digest,
        "until": action.until,
        "max_tokens": action.max_tokens,
        "model": binding.model,
        "profile": binding.profile,
        "temperature": drawn.temperature,
        "seed": drawn.seed,
    }
    return decides | unusual(action.prompt, "drop", "pinned_last")


def prompt_request(action: Prompted) -> Json:
    """A prompted action as JSON: the prompt as its parts, the long ones by digest."""
    prompt = action.prompt
    return {
        "demonstrations": prompt.demonstrations.digest,
        "paragraphs": [paragraph.digest for paragraph in prompt.paragraphs],
        "question": prompt.question,
        "sentences": prompt.sentences,
        "max_paragraph_words": prompt.max_paragraph_words,
        "drop": prompt.drop,
        "max_tokens": action.max_tokens,
        "until": action.until,
        **unusual(prompt, "pinned_last", "layout"),
        **unusual(action, "splitter", "sample", "temperature"),
    }


class WrittenPrompt(Struct, kw_only=True, forbid_unknown_fields=True):
    """A prompted action as `prompt_request` wrote it down; a kind with further fields derives its own from it."""

    demonstrations: str
    paragraphs: tuple[str, ...]
    question: str
    sentences: tuple[str, ...]
    max_paragraph_words: int
    drop: Drop
    pinned_last: bool = False
    max_tokens: int
    until: Until
    layout: Layout = "ircot"
    temperature: float | None = None

    def prompt(self, stored: Stored) -> Prompt:
        """The prompt of these parts; raises what `Stored` does."""
        return Prompt(
            demonstrations=stored.demonstrations(self.demonstrations),
            paragraphs=stored.referred(self.paragraphs),
            question=self.question,
            sentences=self.sentences,
            max_paragraph_words=self.max_paragraph_words,
            drop=self.drop,
            pinned_last=self.pinned_last,
            layout=self.layout,
        )


def prompt_paragraphs(action: Prompted) -> tuple[Paragraph, ...]:
    """The paragraphs in the prompt."""
    return action.prompt.paragraphs


def model_need(_: Prompted, names: EngineNames) -> str:
    """The run's language model, in words."""
    return f"the model {names.model_name}"


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


def _read_reason(request: Json, stored: Stored) -> Reason:
    written = msgspec.convert(request, _WrittenReason)
    return Reason(
        prompt=written.prompt(stored),
        max_tokens=written.max_tokens,
        until=written.until,
        splitter=written.splitter,
        sample=written.sample,
        temperature=written.temperature,
    )


def _decides_reason(action: Reason, binding: Binding) -> Json:
    return decides_generation(action, binding) | unusual(action, "splitter")


def _carry_out_reason(action: Reason, engines: Engines) -> Generated:
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
    carry_out=_carry_out_reason,
    decides=_decides_reason,
    request=prompt_request,
    read_back=_read_reason,
    paragraphs=prompt_paragraphs,
    pinned="model",
    need="the model server",
    named_need=model_need,
)


class Read(Prompted, frozen=True, kw_only=True):
    """Write a question's answer from its paragraphs."""


def _read_read(request: Json, stored: Stored) -> Read:
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
    read_back=_read_read,
    paragraphs=prompt_paragraphs,
    pinned="model",
    need="the model server",
    named_need=model_need,
)
