"""Ports of encoders: the models that compare embeddings, score pairs, judge entailment and extract answers."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from cotrail.core.ports.role import INFERRER, BatchedRole, EngineRole
from cotrail.core.questions import Paragraph
from cotrail.core.results import Embedded, Entailed, Extracted, Rated

DECIMALS = 6
"""Decimals of a score, a probability or a confidence; further ones depend on the machine that computed it."""


class Comparison(Protocol):
    """Sentences that are compared with paragraphs or, where there are none, with one another.

    It is structural so that actions, which are of this shape, may build on the ports and not the other way round.
    """

    @property
    def sentences(self) -> tuple[str, ...]:
        """The rows."""

    @property
    def paragraphs(self) -> tuple[Paragraph, ...]:
        """The columns."""


Side = Literal["query", "text"]
"""What a text is to others: the one that they are compared with, or one of them; models may want either marked."""


class Embeds(Protocol):
    """Embeds texts, or each of their tokens; safe to call from many threads at once."""

    def embed(self, texts: Sequence[str], side: Side) -> Sequence[Any]:
        """The embeddings of texts that are searched with or searched for, in their order: arrays of length 1, of late
        interaction one a row for each token.

        Raises StepError, TransientStepError, and InputError for an embedder that has similarities alone.
        """


class Embedder(Embeds, Protocol):
    """Compares sentences with paragraphs; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `all-mpnet-base-v2@1f0c...`."""

    def compare(self, comparisons: Sequence[Comparison]) -> list[Embedded]:
        """The cosine similarities of each comparison, in their order, rounded to 6 decimals.

        Paragraphs count as their `statement`. Raises StepError, TransientStepError.
        """


@runtime_checkable
class KnowsLength(Protocol):
    """An embedder that knows which texts it reads only the beginnings of; those behind servers don't say."""

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text, which is searched for, is longer than the model reads."""


def _compared(embedder: Embedder, comparisons: Sequence[Comparison]) -> list[Embedded]:
    """The results of all: similarities, and embeddings of the paragraphs of those without sentences."""
    compared = iter(embedder.compare([each for each in comparisons if each.sentences]))
    return [next(compared) if each.sentences else _vectors(embedder, each.paragraphs) for each in comparisons]


def _vectors(embedder: Embedder, paragraphs: Sequence[Paragraph]) -> Embedded:
    texts = [each.statement for each in paragraphs]
    vectors = (b64encode(each.astype("<f4").tobytes()).decode() for each in embedder.embed(texts, "text"))
    cut = embedder.are_cut(texts) if isinstance(embedder, KnowsLength) else ()
    return Embedded(similarities=(), vectors=tuple(vectors), cut=tuple(place for place, each in enumerate(cut) if each))


EMBEDDER: BatchedRole[Embedder, Comparison, Embedded] = BatchedRole(
    name="embedder", kind="embedder", work="compares sentences", has_default=True, carry_out=_compared
)

By = Literal["duplicate", "relevance"]
"""What is scored: whether two questions ask the same, or how far a text answers a query."""


class Rating(Protocol):
    """A text and what it is scored against; structural, as `cotrail.core.ports.encoders.Comparison` is."""

    @property
    def text(self) -> str:
        """The first of each pair."""

    @property
    def others(self) -> tuple[str, ...]:
        """Texts that are the second of a pair."""

    @property
    def paragraphs(self) -> tuple[Paragraph, ...]:
        """Paragraphs that are the second of a pair, behind the texts."""


class Rater(Protocol):
    """Scores pairs of texts; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `quora-roberta-base@1f0c...`."""

    def rate(self, ratings: Sequence[Rating]) -> list[Rated]:
        """The scores of each rating, in their order, rounded to 6 decimals.

        Paragraphs count as their `statement`. Raises StepError, TransientStepError.
        """


RaterRole = BatchedRole[Rater, Rating, Rated]


def _rate(rater: Rater, ratings: Sequence[Rating]) -> Sequence[Rated]:
    return rater.rate(ratings)


DUPLICATE_RATER: RaterRole = BatchedRole(
    name="duplicate_rater", kind="rater", work="finds questions that ask the same", carry_out=_rate
)
RELEVANCE_RATER: RaterRole = BatchedRole(
    name="relevance_rater", kind="rater", work="scores how far texts answer", carry_out=_rate
)

RATERS: dict[By, RaterRole] = {"duplicate": DUPLICATE_RATER, "relevance": RELEVANCE_RATER}
"""Which rater scores what."""


def second_texts(rating: Rating) -> list[str]:
    """The second texts of a rating's pairs, in the order of its scores."""
    return [*rating.others, *(each.statement for each in rating.paragraphs)]


class EntailmentPair(Protocol):
    """A premise and a hypothesis; structural, as `cotrail.core.ports.encoders.Comparison` is."""

    @property
    def premise(self) -> Paragraph:
        """The paragraph that counts as true."""

    @property
    def hypothesis(self) -> str:
        """The sentence that may follow from it."""


class Entailer(Protocol):
    """Judges hypotheses by premises; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `albert-xxlarge-anli@1f0c...`."""

    def judge(self, pairs: Sequence[EntailmentPair]) -> list[Entailed]:
        """How likely each hypothesis follows from its premise's `statement`, contradicts it, or does neither.

        In the order of the pairs, as `entailed` rounds them. Raises StepError, TransientStepError, and
        UnavailableError where it asks a server that is away.
        """


ENTAILER: BatchedRole[Entailer, EntailmentPair, Entailed] = BatchedRole(
    name="entailer",
    kind="entailer",
    work="judges whether evidence entails a sentence",
    has_default=True,
    carry_out=lambda entailer, pairs: entailer.judge(pairs),
)


def entailed(entailment: float, neutral: float, contradiction: float) -> Entailed:
    """Probabilities with 6 decimals that add up to 1: the greatest is the remainder of the others."""
    exact = {"entailment": entailment, "neutral": neutral, "contradiction": contradiction}
    # Rounding each alone could leave a sum of 0.999999. The difference matters least to the greatest.
    greatest = max(exact, key=lambda label: exact[label])
    others = {label: round(each, DECIMALS) for label, each in exact.items() if label != greatest}
    return Entailed(**others, **{greatest: round(1 - sum(others.values()), DECIMALS)})


MOST_TOKENS = 10
"""The most tokens of an answer, as with DPR's reader (Karpukhin et al. 2020, `max_answer_length` of its code)."""


class Extraction(Protocol):
    """A question and the paragraph that may answer it; structural, as `cotrail.core.ports.encoders.Comparison` is."""

    @property
    def question(self) -> str:
        """The question."""

    @property
    def paragraph(self) -> Paragraph:
        """The paragraph whose text the answer is a piece of."""


class Extractor(Protocol):
    """Reads answers out of paragraphs; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `dpr-reader@1f0c...`."""

    def extract(self, extractions: Sequence[Extraction]) -> list[Extracted]:
        """The best answer to each question in its paragraph's text, in their order, rounded to 6 decimals.

        Raises StepError, TransientStepError, and PromptTooLongError where a question leaves no room for its paragraph.
        """


EXTRACTOR: BatchedRole[Extractor, Extraction, Extracted] = BatchedRole(
    name="extractor",
    kind="extractor",
    work="reads answers out of paragraphs",
    carry_out=lambda extractor, extractions: extractor.extract(extractions),
)


_RECORDS: tuple[EngineRole, ...] = (EMBEDDER, ENTAILER, EXTRACTOR, DUPLICATE_RATER, RELEVANCE_RATER, INFERRER)

ROLES: dict[str, EngineRole] = {role.name: role for role in _RECORDS}
"""Every role by its name, under which run files and options name its engine, next to the run's language model."""
