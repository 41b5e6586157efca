"""The port that every language model is reached through."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from cotrail.core.generation import Sampling, Until
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated

Profile = Literal["fast", "deterministic"]
"""`fast`: prefix cache and parallel slots. `deterministic`: the same prompt gives the same bytes, whatever happens."""


class GenerationRequest(Struct, frozen=True):
    """A prompt, and when and how a language model continues it: greedily unless a sampling is given.

    max_tokens: the most tokens to write.
    """

    prompt: Prompt
    until: Until
    max_tokens: int
    sampling: Sampling = Sampling()


class LanguageModel(Protocol):
    """Continues prompts; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `smollm2-135m@1f0c...`."""

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        """Packs the prompt into the context and continues it.

        cancellation: what cuts this generation off alone, which then raises `Interrupted` soon.
        A model that writes nothing has written the empty text.
        Raises PromptTooLongError, TransientStepError, and UnavailableError where the model is behind a server that
        can't be reached or takes no requests.
        """

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """How likely each of these is to go on from the text, among them alone: they add up to 1.

        choices: which differ in their first tokens; these are what is compared.
        Raises PromptTooLongError, TransientStepError, UnavailableError, and StepError where it can't tell them apart.
        """

    def interrupt(self) -> None:
        """Makes every `generate` under way raise `Interrupted` soon; the process is shutting down."""


class Interrupted(Exception):  # noqa: N818 - control flow, not a failure
    """A generation was cut off, which is no failure: its process is shutting down, or its result isn't wanted."""
