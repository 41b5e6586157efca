"""What steps result in."""

from msgspec import Struct

from cotrail.core.paragraphs import Hit


class Result(Struct, frozen=True, kw_only=True):
    """What a step results in; each kind of action names the class of its results."""


class Retrieved(Result, frozen=True, kw_only=True):
    """What a `Retrieve` or a `Lookup` found, the best first; equal scores are ordered by paragraph id."""

    hits: tuple[Hit, ...]


class Generated(Result, frozen=True, kw_only=True):
    """What a `Reason` or a `Read` wrote.

    text: what was kept, which may be nothing; raw: all that the model wrote.
    demonstrations, paragraphs: how many of the prompt's parts fitted the context; paragraphs from the front.
    first_demonstration: which of the prompt's demonstrations is the first that was kept, from 0.
    prompt_digest: the SHA-256 of the prompt as the model saw it.
    drafted_tokens, accepted_tokens: how many tokens were guessed before the model was asked, and how many of these it
        wrote too (speculative decoding); neither changes what is written.
    seed: what a sampled chain was drawn with; None for what isn't one of several samples.
    """

    text: str
    raw: str
    demonstrations: int
    paragraphs: int
    prompt_digest: str
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    first_demonstration: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    seed: int | None = None


class Embedded(Result, frozen=True, kw_only=True):
    """What an `Embed` found: a row for each sentence, of its cosine similarity to each paragraph (or sentence)."""

    similarities: tuple[tuple[float, ...], ...]


class Entailed(Result, frozen=True, kw_only=True):
    """What an `Entail` found: three probabilities, which add up to 1."""

    entailment: float
    neutral: float
    contradiction: float


class Failure(Struct, frozen=True, kw_only=True):
    """A failed step, as it is stored: the error's class name and its message."""

    type: str
    message: str
