"""Results of steps: a class for each shape, which says how the record holds it."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.printable_text import storable
from cotrail.core.calls import Call
from cotrail.core.generation import Cut, Ended, ThoughtsKind
from cotrail.core.questions import Hit, ListPlace, Paragraph
from cotrail.errors import BlockedError, UnansweredError, UnrecordableError

# Digests of lists, as the record has them: results of searches, and sets of rows.


def digest_of(texts: Sequence[object]) -> str:
    """The digest of an array: the SHA-256 of its JSON."""
    return sha256(json.dumps(texts, ensure_ascii=False).encode()).hexdigest()


def digest_of_found(hits: Iterable[tuple[int, str, str, float]]) -> str:
    """The digest of a search's result, of which each hit's rank, digest, id in the corpus and score are given."""
    return digest_of([list(each) for each in hits])


Json = dict[str, Any]

MOST_CHARACTERS = 4_000_000
"""How much text a result may hold: many times what a long generation or a search of long pages has, and little enough
for a system to compare paragraphs with each other, and for many results to be written at once."""

MOST_TOKENS = 2**40
"""The largest count of tokens: more than any model takes, and so little that those of millions of steps can be added
up in the database, whose columns hold 2^63."""

DIGITS = 20
"""Length of a number, written down."""

MOST_SAID = 10_000
"""How many characters of an error's message are kept: servers answer with whole pages."""


class Result(Struct, frozen=True, kw_only=True):
    """Result of a step; each kind of action names the class of its results.

    The methods here suit every class whose fields can be written as JSON. A class overrides them where its record
    has another form, or where there is a faster way.
    """

    @property
    def characters(self) -> int:
        """How much text it holds, about."""
        leaves = _leaves(msgspec.to_builtins(self))
        return sum(len(leaf) if isinstance(leaf, str) else DIGITS for leaf in leaves)

    @property
    def _counted(self) -> str:
        return f", {DIGITS} for each of its numbers," if any(True for _ in self.numbers) else ""

    @property
    def numbers(self) -> Iterable[float]:
        """Its numbers that may not be finite."""
        return (leaf for leaf in _leaves(msgspec.to_builtins(self)) if isinstance(leaf, float))

    @property
    def token_counts(self) -> dict[str, int]:
        """Counts of tokens that the record has in columns of their own, by column."""
        return {}

    @property
    def all_token_counts(self) -> Iterable[int]:
        """Those, and the ones that the record has in its JSON."""
        return self.token_counts.values()

    def recorded(self) -> Json:
        """The JSON that the record holds of it."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]

    def check_recordable(self) -> None:
        """Raises UnrecordableError where it is too large, or holds numbers that can't be read again."""
        if (held := self.characters) > MOST_CHARACTERS:
            raise UnrecordableError(
                f"the result holds {held:,} characters{self._counted}, and at most {MOST_CHARACTERS:,} are recorded; "
                "look at what the model or the search server answered"
            )
        # JSON has no NaN and no infinity: such a number would come back as null, and its replay would differ.
        if not all(map(math.isfinite, self.numbers)):
            raise UnrecordableError("the result holds a number that isn't finite; look at what computed it")
        counts = tuple(self.all_token_counts)
        if not all(0 <= count <= MOST_TOKENS for count in counts):
            raise UnrecordableError(
                f"the result counts its tokens as {', '.join(map(str, counts))}; look at the server that did"
            )


class Retrieved(Result, frozen=True, kw_only=True):
    """Paragraphs that a search or a look-up found, the best first; equal scores are ordered by paragraph id.

    The record holds the hits as rows of their own, and in the result their number and digest, and the places of each
    in the lists of a search that has several.
    """

    hits: tuple[Hit, ...]

    @property
    def paragraphs(self) -> tuple[Paragraph, ...]:
        """The paragraphs alone."""
        return tuple(hit.paragraph for hit in self.hits)

    @property
    def characters(self) -> int:
        return sum(len(hit.paragraph.id) + len(hit.paragraph.title) + len(hit.paragraph.text) for hit in self.hits)

    @property
    def numbers(self) -> Iterable[float]:
        return (score for hit in self.hits for score in (hit.score, *(each.score for each in hit.lists)))

    @property
    def digest(self) -> str:
        """Digest of the hits: of the rank, paragraph, id in the corpus and score of each."""
        return digest_of_found(
            (hit.rank, hit.paragraph.digest, hit.paragraph.id, float(hit.score)) for hit in self.hits
        )

    def recorded(self) -> Json:
        counted: Json = {"hits": len(self.hits), "digest": self.digest}
        if not any(hit.lists for hit in self.hits):
            return counted
        return counted | {"lists": [[[each.list, each.rank, each.score] for each in hit.lists] for hit in self.hits]}

    @staticmethod
    def read_lists(recorded: Any) -> tuple[tuple[ListPlace, ...], ...]:
        """The places of each hit in the lists of a search, as `recorded` wrote them; nothing where there were none."""
        written = recorded.get("lists", ()) if isinstance(recorded, dict) else ()
        read = msgspec.convert(written, tuple[tuple[tuple[str, int, float], ...], ...])
        return tuple(tuple(ListPlace(list=name, rank=rank, score=score) for name, rank, score in hit) for hit in read)


class Generated(Result, frozen=True, kw_only=True):
    """Text that a language model wrote.

    text: what was kept, which may be nothing; raw: all that the model wrote outside of its thoughts.
    ended: why the text ended; stop: before which stop string, if it was one.
    calls: the tools that the model called, in their order; their ids are the server's, for which systems put their own.
    tokens: the text and the log probability of each token of `raw`, where the action asked for them.
    demonstrations, paragraphs: how many of the prompt's demonstrations fitted the context, and how many of the pieces
        that may be left out, which are its paragraphs in most prompts: those that stay longest.
    first_demonstration: which of the prompt's demonstrations is the first that was kept, from 0.
    prompt_digest: the SHA-256 of the prompt as the model saw it.
    drafted_tokens, accepted_tokens: how many tokens were guessed before the model was asked, and how many of these it
        wrote too (speculative decoding); neither changes what is written.
    seed: what a sampled chain was drawn with; None for what isn't one of several samples.
    thoughts: what the model thought before or between, which is no part of `text` or `raw`; thoughts_are: see
        `ThoughtsKind`; thought_tokens: their number, 0 if unknown. `generated_tokens` includes them.
    thought_estimated: whether their number is an estimate, by their share of the characters, since the server reported
        only that of all tokens.
    carried: fields of the model's own message, as a JSON object in its provider's form, that later prompts hand back
        exactly: thoughts, signed or encrypted ones too. Empty where the provider takes none back.
    cache_written_tokens: tokens of the prompt that the provider put into its cache, where it charges for that.
    cuts: what was cut of the prompt's pieces to their limits in tokens, see `Prompt`.
    estimated: whether the token counts are an estimate, since the provider didn't report them.
    served_by: the model that the provider says it took, and the fingerprint of its system.
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
    ended: Ended = ""
    stop: str = ""
    calls: tuple[Call, ...] = ()
    tokens: tuple[tuple[str, float], ...] = ()
    thoughts: str = ""
    thoughts_are: ThoughtsKind = ""
    thought_tokens: int = 0
    carried: str = ""
    cache_written_tokens: int = 0
    estimated: bool = False
    served_by: str = ""
    cuts: tuple[Cut, ...] = ()
    thought_estimated: bool = False

    @property
    def kept_tokens(self) -> tuple[tuple[str, float], ...]:
        """Those of `tokens` that `text` has a part of; all of them where `text` isn't a piece of `raw`."""
        start = self.raw.find(self.text)
        if start < 0:
            return self.tokens
        ends = accumulate(len(text) for text, _ in self.tokens)
        stop = start + len(self.text)
        return tuple(
            token for token, end in zip(self.tokens, ends, strict=True) if end > start and end - len(token[0]) < stop
        )

    @property
    def characters(self) -> int:
        """What the model wrote, counted once: the text is a part of it, and tokens divide it; each has a number."""
        called = sum(len(call.name) + len(call.arguments) for call in self.calls)
        thought = len(self.thoughts) + len(self.carried)
        return max(len(self.text), len(self.raw)) + thought + called + DIGITS * len(self.tokens)

    @property
    def numbers(self) -> Iterable[float]:
        return (probability for _, probability in self.tokens)

    def recorded(self) -> Json:
        """See `Result`; of what few steps have, only what this one has."""
        record: Json = msgspec.to_builtins(self)
        return {name: value for name, value in record.items() if value or name not in _SELDOM}

    @property
    def token_counts(self) -> dict[str, int]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "cached_prompt_tokens": self.cached_prompt_tokens,
            "generated_tokens": self.generated_tokens,
        }

    @property
    def all_token_counts(self) -> Iterable[int]:
        further = (self.cache_written_tokens, self.thought_tokens, self.drafted_tokens, self.accepted_tokens)
        return (*self.token_counts.values(), *further)


_SELDOM = frozenset(
    {
        *("stop", "calls", "tokens", "thoughts", "thoughts_are", "thought_tokens", "carried"),
        *("cache_written_tokens", "estimated", "served_by", "cuts", "thought_estimated"),
    }
)


class Embedded(Result, frozen=True, kw_only=True, omit_defaults=True):
    """Cosine similarities: a row for each sentence, with its similarity to each paragraph (or sentence).

    vectors: where there were no sentences, the embedding of each paragraph: 32-bit numbers in base64, the lowest byte
    first. cut: the places, from 0, of those paragraphs that are longer than the model reads.
    """

    similarities: tuple[tuple[float, ...], ...]
    vectors: tuple[str, ...] = ()
    cut: tuple[int, ...] = ()


class Entailed(Result, frozen=True, kw_only=True):
    """Probabilities of entailment, which add up to 1."""

    entailment: float
    neutral: float
    contradiction: float


class Extracted(Result, frozen=True, kw_only=True):
    """An answer that was read out of a paragraph.

    text: a piece of the paragraph's text, from the character `start` to before `end`; empty where it has none.
    confidence: on the scale of the reader's logits. A DPR reader's relevance of the paragraph; with a model trained on
        SQuAD 2.0 the score of the piece minus that of no answer, and 0 where the paragraph has no text.
    """

    text: str
    confidence: float
    start: int
    end: int


class Rated(Result, frozen=True, kw_only=True):
    """Scores of a text: one for each other text, then one for each paragraph; higher is better."""

    scores: tuple[float, ...]


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failed step, as it is stored: the error's class name and its message.

    written: what a language model wrote that is no answer: its thoughts alone, a refusal, or what blocks its question.
    """

    type: str
    message: str
    written: Generated | None = None

    @property
    def characters(self) -> int:
        return len(self.message) + (self.written.characters if self.written else 0)


def failure_of(error: BaseException) -> Failure:
    """An error as it is stored."""
    said = str(error)
    shown = said if len(said) <= MOST_SAID else f"{said[:MOST_SAID]}... ({len(said):,} characters)"
    written = error.written if isinstance(error, UnansweredError | BlockedError) else None
    return Failure(
        type=type(error).__name__,
        message=storable(shown),
        written=written if isinstance(written, Generated) and _can_be_recorded(written) else None,
    )


def _can_be_recorded(result: Result) -> bool:
    try:
        result.check_recordable()
    except UnrecordableError:
        return False
    return True


def _leaves(value: object) -> Iterator[object]:
    """Texts, numbers and the like in JSON, however deep."""
    match value:
        case dict():
            for each in value.values():
                yield from _leaves(each)
        case list() | tuple():
            for each in value:
                yield from _leaves(each)
        case _:
            yield value
