"""How many tokens a text takes: by the server's own tokenizer where it offers one, else estimated."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from cotrail.engines.language_models.token_counts import cached_count

Dialect = Literal["openai", "llama.cpp", "vllm"]
"""What a server understands beyond OpenAI's protocol, as its tokenizer's answer shows; SGLang answers like vLLM."""

CHARACTERS_A_TOKEN = 3
"""ASCII characters that are taken for a token; English has more than four, so a fourth of a context stays empty."""


class Tokenized(Struct, frozen=True):
    """What a tokenizer answers: vLLM the number as well, llama.cpp the tokens alone."""

    tokens: list[int]
    count: int | None = None


class Counter:
    """Counts tokens, and learns by that which dialect the server speaks.

    ask: sends a text to the server's tokenizer; None means that it has none.
    """

    def __init__(self, ask: Callable[[str], Tokenized | None]) -> None:
        self._ask = ask
        self._dialect: Dialect | None = None
        self.count = cached_count(self._count)

    @property
    def dialect(self) -> Dialect:
        """Known from the first count on."""
        return self._dialect or "openai"

    def _count(self, text: str) -> int:
        if self._dialect == "openai":
            return estimated_tokens(text)
        answer = self._ask(text)
        if answer is None:
            self._dialect = "openai"
            return estimated_tokens(text)
        self._dialect = "llama.cpp" if answer.count is None else "vllm"
        return len(answer.tokens)


def estimated_tokens(text: str) -> int:
    """A token for every three ASCII characters, and one for each other character."""
    others = sum(not character.isascii() for character in text)
    return -(-(len(text) - others) // CHARACTERS_A_TOKEN) + others
