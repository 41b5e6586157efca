"""Engines that are the run's own language model, asked by a prompt for the probabilities of a few answers."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, TypeVar

from msgspec import Struct

from cotrail.common.optional_packages import Library
from cotrail.common.structs import canonical
from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.engines.model_folders import model_identity
from cotrail.errors import PromptTooLongError

Item = TypeVar("Item")
Value = TypeVar("Value")

AT_ONCE = 8
"""What is asked concurrently; models with fewer slots queue the others."""


class Prompted(Struct, frozen=True):
    """The run's own language model, asked by a prompt.

    prompt: the whole of what decides the answers, for the identity; opens: makes the engine of the model and of its own
    identity.
    """

    prompt: Sequence[Any]
    opens: Callable[[LanguageModel, str], Any]

    library: ClassVar[Library] = None

    @property
    def engine_name(self) -> str:
        """The name of the engine, as `models.toml` has it."""
        return "prompted"

    @property
    def location(self) -> str:
        """What stands where others have a file."""
        return "the run's language model"

    def check(self) -> None:
        """See `Installable`: every run has a language model."""

    def identity(self, name: str, model: str) -> str:
        """See `OpensEngine`: that of the prompt, and that of the language model."""
        return f"{model_identity(name, hashlib.sha256(canonical(self.prompt)).hexdigest())}+{model}"

    def open(self, name: str, profile: Profile, open_model: Callable[[], LanguageModel]) -> Any:  # noqa: ARG002 - the model's own
        model = open_model()
        return self.opens(model, self.identity(name, model.identity))


def probabilities(
    model: LanguageModel, prompt: Callable[[str], str], text: str, choices: Sequence[str]
) -> tuple[float, ...]:
    """The probabilities of these answers to a prompt about a text, which is cut at its end where it is too long."""
    try:
        return model.probabilities(prompt(text), choices)
    except PromptTooLongError:
        if not text:
            raise
        # Halved until it fits: the port doesn't count tokens.
        return probabilities(model, prompt, text[: len(text) // 2], choices)


def each_once(judge: Callable[[Item], Value], items: Iterable[Item]) -> dict[Item, Value]:
    """What is judged of each of these, several at once, and equal ones once."""
    distinct = list(dict.fromkeys(items))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(distinct, pool.map(judge, distinct), strict=True))
