"""Port of language models."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from cotrail.core.generation import Capability, Sampling, Until
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated
from cotrail.core.structured_output import Form

Profile = Literal["fast", "deterministic"]
"""Serving profile. `fast`: prefix cache and parallel slots. `deterministic`: the same prompt always gives the same
bytes."""

Serving = Literal["live", "batch"]
"""How a run's language model is asked: at once, or in batches of its provider's."""


class GenerationRequest(Struct, frozen=True):
    """A prompt, and when and how a language model continues it; greedy decoding unless a sampling is given.

    max_tokens: the most tokens to write.
    stop: the strings before one of which the text ends, regardless of `until`; scored: whether the log probability of
        each token is asked for.
    schema: the JSON Schema, as text, that the text is to follow; choices: the words of which it is to be one. Engines
        that can hold the model to these do so, behind its thoughts; `cotrail.core.actions.generate` checks the text.
    calls: whether the model may call the prompt's tools; where it may not, servers get that.
    """

    prompt: Prompt
    until: Until
    max_tokens: int
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    scored: bool = False
    schema: str = ""
    choices: tuple[str, ...] = ()
    calls: bool = True

    @property
    def form(self) -> Form:
        return Form(schema=self.schema, choices=self.choices)

    @property
    def needed_capabilities(self) -> frozenset[Capability]:
        """The capabilities that a model needs for it."""
        prompt, sampling = self.prompt, self.sampling
        needed: dict[Capability, bool] = {
            "turns": prompt.has_roles,
            "continue": prompt.has_roles and prompt.continues_last_turn,
            "scores": self.scored,
            "tools": bool(prompt.tools),
            "sampling": sampling.top_k != 0 or sampling.repetition_penalty != 1.0,
            "structure": bool(self.schema or self.choices),
        }
        return frozenset(capability for capability, is_needed in needed.items() if is_needed)


class LanguageModel(Protocol):
    """Continues prompts; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `smollm2-135m@1f0c...`."""

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        """Fits the prompt into the context and continues it; the result's text may be empty.

        cancellation: cancels this generation alone, which then raises `Interrupted` soon; its listener receives what
            was written so far, where the engine writes piece by piece.
        Raises PromptTooLongError, TransientStepError, and UnavailableError where the model is behind a server that is
        away or refuses requests.
        """

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """The probabilities that each choice continues the text, among the choices alone: they add up to 1.

        choices: they must differ in their first tokens, which are all that is compared.
        Raises PromptTooLongError, TransientStepError, UnavailableError, and StepError where the first tokens don't
        differ.
        """

    def interrupt(self) -> None:
        """Makes every `generate` under way raise `Interrupted` soon: the process is shutting down."""
