"""What a system may ask for, what it gets back, and how both are written down.

A system is a generator that yields actions and is sent their results; see `cotrail.replay` for the driver.
"""

import hashlib
from collections.abc import Generator
from functools import cache
from typing import Literal

import msgspec
from msgspec import Struct

from cotrail.faithfulness.weighing import Weighing
from cotrail.paragraphs import Hit, Paragraph
from cotrail.prompting.prompt import Prompt

Until = Literal["sentence", "line", "chain", "end"]
"""Where a generation ends at the latest: behind the first whole sentence, at the line's end, before what begins a
further demonstration (`chain`), or where the model ends it."""

RULES = "rules"
"""The splitter that is cotrail's own, `cotrail.generation.sentences`."""

Field = Literal["all", "title"]
"""What a search looks at: title and text, or the title alone."""

Scope = Literal["only", "after"]
"""How titles narrow a search: `only` their paragraphs are looked for, or they are picked `after` the search, from its
best `count` (the released code of IRCoT)."""


class Retrieve(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Find the best `count` paragraphs for a query, of any page or only of the titles given.

    distinct: whether paragraphs of the same text count as one; see `cotrail.retrieval.retriever`.
    """

    query: str
    count: int
    titles: tuple[str, ...] = ()
    scope: Scope = "only"
    field: Field = "all"
    distinct: bool = False


class Reason(Struct, frozen=True, kw_only=True):
    """Write the next sentence of a chain of thought, or, with another `until`, all that is to come of it.

    splitter: what says where a sentence ends: cotrail's own `RULES`, or a pipeline of spaCy, as `NAME@VERSION`.
    sample: which of several chains this is, from 0, drawn by a seed of its own; None where there is but one.
    temperature: the run's where None.
    """

    prompt: Prompt
    max_tokens: int
    until: Until = "sentence"
    splitter: str = RULES
    sample: int | None = None
    temperature: float | None = None


class Read(Struct, frozen=True, kw_only=True):
    """Write a question's answer from its paragraphs; `temperature` is the run's where None."""

    prompt: Prompt
    max_tokens: int
    until: Until = "line"
    temperature: float | None = None


Source = Literal["wikidata", "wordnet", "conceptnet", "table"]
"""Where knowledge comes from that isn't a corpus of paragraphs; see `cotrail.knowledge`."""


class Lookup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask a knowledge source about a text, of which it returns sentences.

    other: a second text, for sources that connect the words of two.
    """

    source: Source
    text: str
    other: str = ""


class Embed(Struct, frozen=True, kw_only=True):
    """Tell how alike sentences are to paragraphs, or, without paragraphs, to one another."""

    sentences: tuple[str, ...]
    paragraphs: tuple[Paragraph, ...] = ()


class Entail(Struct, frozen=True, kw_only=True):
    """Tell whether a sentence follows from a paragraph, or contradicts it."""

    premise: Paragraph
    hypothesis: str


Action = Retrieve | Reason | Read | Lookup | Embed | Entail

ACTIONS: dict[str, type[Action]] = {
    "retrieve": Retrieve,
    "reason": Reason,
    "read": Read,
    "lookup": Lookup,
    "embed": Embed,
    "entail": Entail,
}
"""Every action by its name in queues, tasks and tables."""


class Together(Struct, frozen=True):
    """Actions that don't need each other; their results come back in this order, once all of them have ended.

    Where some fail, the first failure is thrown into the system, and `StepFailed.outcomes` has what became of each.
    """

    actions: tuple[Action, ...]


class Retrieved(Struct, frozen=True, kw_only=True):
    """What a `Retrieve` or a `Lookup` found, the best first; equal scores are ordered by paragraph id."""

    hits: tuple[Hit, ...]


class Generated(Struct, frozen=True, kw_only=True):
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


class Embedded(Struct, frozen=True, kw_only=True):
    """What an `Embed` found: a row for each sentence, of its cosine similarity to each paragraph (or sentence)."""

    similarities: tuple[tuple[float, ...], ...]


class Entailed(Struct, frozen=True, kw_only=True):
    """What an `Entail` found: three probabilities, which add up to 1."""

    entailment: float
    neutral: float
    contradiction: float


Result = Retrieved | Generated | Embedded | Entailed


class Failure(Struct, frozen=True, kw_only=True):
    """A failed step, as it is stored: the error's class name and its message."""

    type: str
    message: str


class StepFailed(Exception):  # noqa: N818 - named as systems read it: except StepFailed
    """Thrown into a system in place of a result, live and on replay alike; a system may catch it.

    outcomes: how each of the actions yielded together ended, in their order.
    """

    def __init__(self, failure: Failure, outcomes: tuple[Result | Failure, ...] = ()) -> None:
        super().__init__(f"{failure.type}: {failure.message}")
        self.failure = failure
        self.outcomes = outcomes or (failure,)


class Answer(Struct, frozen=True, kw_only=True):
    """What a system returns.

    text: the answer, empty where none was found.
    sentences: the chain of thought behind it; paragraphs: all that were collected, in that order.
    weighing: how it was chosen among the answers of several chains.
    """

    text: str
    sentences: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    weighing: Weighing | None = None


System = Generator[Action | Together, Result | tuple[Result, ...], Answer]


class Binding(Struct, frozen=True, kw_only=True):
    """What a run pins beside its system, and which therefore decides a step's result.

    model: the name and digest of the model; profile: the serving profile; corpus: the index's revision.
    embedder, entailer: name and digest of the models that compare sentences; knowledge: each source's revision.
    All of these are empty where the system needs none.
    """

    model: str
    profile: str
    temperature: float
    seed: int
    corpus: str
    embedder: str = ""
    entailer: str = ""
    knowledge: dict[str, str] = {}


class Sampling(Struct, frozen=True, kw_only=True):
    """How a continuation is drawn; at temperature 0 the likeliest token is taken and the seed plays no part.

    sample: which of several this is; it decides nothing that the seed doesn't.
    """

    temperature: float = 0.0
    seed: int = 0
    sample: int | None = None


def kind(action: Action) -> str:
    """The action's name, as in `ACTIONS`."""
    return type(action).__name__.lower()


def canonical(value: object) -> bytes:
    """One sequence of bytes for equal values: JSON with sorted keys, no spaces, UTF-8."""
    return msgspec.json.encode(value, order="sorted")


def sampling(action: Reason | Read, binding: Binding) -> Sampling:
    """How the action's text is drawn; every sample has a seed of its own, made of the run's."""
    temperature = binding.temperature if action.temperature is None else action.temperature
    sample = action.sample if isinstance(action, Reason) else None
    if sample is None:
        return Sampling(temperature=temperature, seed=binding.seed)
    digest = hashlib.sha256(f"{binding.seed} {sample}".encode()).digest()
    return Sampling(temperature=temperature, seed=int.from_bytes(digest[:4]) >> 1, sample=sample)


def fingerprint(action: Action, binding: Binding) -> str:
    """The SHA-256 over everything that decides the action's result.

    It covers the kind, the query or the rendered prompt, the models, the sampling and the revisions of what is
    searched; not timeouts, addresses, keys and retry counts, which may change under way.
    """
    return hashlib.sha256(canonical({"kind": kind(action), **_decides(action, binding)})).hexdigest()


def _decides(action: Action, binding: Binding) -> dict[str, object]:
    match action:
        case Retrieve():
            searched = {"query": action.query, "count": action.count, "titles": action.titles, "corpus": binding.corpus}
            return searched | _unusual(action, "scope", "field", "distinct")
        case Reason() | Read():
            return _decides_generation(action, binding)
        case Lookup():
            asked: dict[str, object] = {"source": action.source, "text": action.text, "other": action.other}
            return asked | {"knowledge": binding.knowledge.get(action.source, "")}
        case Embed():
            compared = [paragraph.digest for paragraph in action.paragraphs]
            model = {"embedder": binding.embedder, "profile": binding.profile}
            return {"sentences": action.sentences, "paragraphs": compared, **model}
        case Entail():
            model = {"entailer": binding.entailer, "profile": binding.profile}
            return {"premise": action.premise.digest, "hypothesis": action.hypothesis, **model}


def _decides_generation(action: Reason | Read, binding: Binding) -> dict[str, object]:
    drawn = sampling(action, binding)
    decides: dict[str, object] = {
        "prompt": action.prompt.digest,
        "until": action.until,
        "max_tokens": action.max_tokens,
        "model": binding.model,
        "profile": binding.profile,
        "temperature": drawn.temperature,
        "seed": drawn.seed,
    }
    split = _unusual(action, "splitter") if isinstance(action, Reason) else {}
    return decides | _unusual(action.prompt, "drop", "pinned_last") | split


def _unusual(value: Struct, *names: str) -> dict[str, object]:
    """Those of the fields that aren't at their defaults: what came later leaves older fingerprints as they are."""
    defaults = _defaults(type(value))
    return {name: getattr(value, name) for name in names if getattr(value, name) != defaults[name]}


@cache
def _defaults(of: type[Struct]) -> dict[str, object]:
    return {field.name: field.default for field in msgspec.structs.fields(of)}
