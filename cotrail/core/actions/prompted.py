"""Actions that have a language model continue a prompt: their common fields, their record and how they are drawn."""

import hashlib

from msgspec import Struct

from cotrail.core.actions.kind import Action, EngineNames, Engines, Stored, unusual
from cotrail.core.binding import Binding
from cotrail.core.generation import Sampling, Until
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
