"""Reason, Read and Judge: a language model continues with a chain of thought, answers a question, or grades an answer.

The three kinds share a file, since they are recorded, fingerprinted and executed the same way.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import structs
from msgspec.structs import replace

from cotrail.common.humanize import count
from cotrail.common.structs import unusual
from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import MODEL, Binding
from cotrail.core.demonstrations import Stored
from cotrail.core.generation import RULES, Ended, Sampling, Until
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.prompt_records import PromptRecord, long_texts, record_prompt
from cotrail.core.prompts import Piece, Prompt, Shown, Text, Written, user
from cotrail.core.questions import Paragraph
from cotrail.core.results import Generated, Json
from cotrail.core.structured_output import Form
from cotrail.core.system import Action
from cotrail.core.views import Facts, TextRole, Thoughts, ToolCalls, View, WrittenText
from cotrail.errors import UnansweredError


class Prompted(Action, frozen=True, kw_only=True):
    """A generation; every action with a prompt derives from it.

    max_tokens: of the continuation; until: where it ends at the latest; stop: strings before one of which it ends.
    temperature: the run's where None; top_p, top_k, repetition_penalty: see `Sampling`.
    sample: which of several this is, from 0, drawn by a seed of its own; None where there is but one.
    scored: whether the log probability of each token is asked for.
    schema: the JSON Schema, as text, that the text follows; choices: the words of which it is one. Empty for any text.
    calls: whether it may call the prompt's tools, which its earlier turns need where they called some.
    model: the role of the language model that writes, which is the run's own unless the system's `Needs` have another.
    """

    prompt: Prompt
    max_tokens: int
    until: Until = "line"
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    sample: int | None = None
    scored: bool = False
    schema: str = ""
    choices: tuple[str, ...] = ()
    calls: bool = True
    model: str = MODEL

    def __post_init__(self) -> None:
        if self.schema or self.choices:
            self.form.check()

    @property
    def form(self) -> Form:
        """What the text is to be."""
        return Form(schema=self.schema, choices=self.choices)


MOST_ASKED = 3
"""How often a model is asked at most for a text in the form that is wanted."""

PromptedT = TypeVar("PromptedT", bound=Prompted)

SELDOM_SET = ("stop", "top_p", "top_k", "repetition_penalty", "scored", "schema", "choices", "calls")
"""Fields that requests and fingerprints hold only where they aren't at their defaults."""


def sampling(action: Prompted, binding: Binding) -> Sampling:
    """The sampling parameters of a generation; every sample has a seed of its own, made of the run's."""
    return Sampling(
        temperature=binding.temperature if action.temperature is None else action.temperature,
        seed=binding.seed if action.sample is None else _seed(binding.seed, action.sample),
        sample=action.sample,
        top_p=action.top_p,
        top_k=action.top_k,
        repetition_penalty=action.repetition_penalty,
    )


def _seed(seed: int, sample: int) -> int:
    digest = hashlib.sha256(f"{seed} {sample}".encode()).digest()
    # 31 bits, since some engines take the seed as a signed 32-bit number.
    return int.from_bytes(digest[:4]) >> 1


def generation_request(action: Prompted, binding: Binding, until: Until | None = None) -> GenerationRequest:
    """What the language model is asked for; until: in place of the action's own."""
    settings = sampling(action, binding)
    return GenerationRequest(
        action.prompt,
        until or action.until,
        action.max_tokens,
        settings,
        action.stop,
        action.scored,
        action.schema,
        action.choices,
        action.calls,
    )


def generate(action: Prompted, engines: Engines, until: Until | None = None) -> Generated:
    """Has the language model continue the prompt; until: in place of the action's own.

    Raises UnansweredError where it wrote nothing but thoughts, refused, or wrote in no form that was asked for.
    """
    request = generation_request(action, engines.binding, until)
    model: LanguageModel = engines.language_model(action.model)
    result = _fitting(action, request, partial(model.generate, cancellation=engines.cancellation))
    return result if action.sample is None else replace(result, seed=request.sampling.seed)


def _fitting(
    action: Prompted, request: GenerationRequest, write: Callable[[GenerationRequest], Generated]
) -> Generated:
    """A result in the form that was asked for; in a conversation the model is asked again where it wrote another."""
    prompt, before = request.prompt, None
    for asked in range(1, MOST_ASKED + 1):
        result = _with_tokens_of(before, write(replace(request, prompt=prompt)))
        check_answered(result)
        text, problem = action.form.fit(result.text)
        if not problem:
            return replace(result, text=text)
        if asked == MOST_ASKED or not prompt.has_roles or prompt.continues_last_turn:
            break
        before = result
        prompt = prompt.wrote(result.text).add(user(f"That doesn't fit: {problem}. Write it again, and nothing else."))
    raise UnansweredError(f"the model wrote in another form than it was asked for: {problem}", result)


def check_form(action: Prompted, result: Generated) -> Generated:
    """A result in the form that its action asks for; raises UnansweredError where it has another, or is no answer."""
    check_answered(result)
    text, problem = action.form.fit(result.text)
    if problem:
        raise UnansweredError(f"the model wrote in another form than it was asked for: {problem}", result)
    return replace(result, text=text)


def _with_tokens_of(before: Generated | None, result: Generated) -> Generated:
    """A result with the tokens of the tries before it, under the prompt of the first, which is the step's own."""
    if before is None:
        return result
    counts = ("prompt_tokens", "cached_prompt_tokens", "generated_tokens", "thought_tokens", "cache_written_tokens")
    sums = {name: getattr(result, name) + getattr(before, name) for name in counts}
    estimates = {name: getattr(result, name) or getattr(before, name) for name in ("estimated", "thought_estimated")}
    return replace(result, prompt_digest=before.prompt_digest, **sums, **estimates)


def check_answered(result: Generated) -> None:
    """Raises UnansweredError where the model wrote nothing but thoughts, or refused: an empty text would end chains."""
    if result.ended in _UNANSWERED:
        raise UnansweredError(_UNANSWERED[result.ended].format(tokens=result.generated_tokens), result)


_UNANSWERED: Mapping[Ended, str] = {
    "thoughts": (
        "the model ended while it was thinking, after {tokens} tokens: raise thought_tokens in its table of the list "
        "of models, or have it think less (effort, template), then `cotrail retry RUN`"
    ),
    "refused": "the model or its provider refused to answer; `cotrail trace` shows what it wrote instead",
}


def decides_generation(action: Prompted, binding: Binding) -> Json:
    """Everything that decides the text: the prompt as it is rendered, the model and the sampling parameters."""
    settings = sampling(action, binding)
    decides = {
        "prompt": action.prompt.digest,
        "until": action.until,
        "max_tokens": action.max_tokens,
        "model": binding.engine(action.model),
        "profile": binding.profile,
        "temperature": settings.temperature,
        "seed": settings.seed,
    }
    return decides | _packing(action.prompt) | unusual(action, *SELDOM_SET)


def _packing(prompt: Prompt) -> Json:
    """What decides which parts of a prompt go where not all fit, as far as it is unusual."""
    packing: Json = ({} if prompt.drop == "last" else {"drop": prompt.drop}) | _limits(prompt)
    if all(map(_yields_as_usual, prompt.pieces)):
        return packing
    return packing | {"yields": [piece.yields for piece in prompt.pieces if isinstance(piece, Text | Written | Shown)]}


def _limits(prompt: Prompt) -> Json:
    """The limits of its pieces in tokens, by which it is cut."""
    limits = {
        place: each.tokens
        for place, each in enumerate(prompt.pieces)
        if isinstance(each, Text | Shown) and each.tokens is not None
    }
    return ({"tokens": sorted(limits.items())} if limits else {}) | unusual(prompt, "window")


def _yields_as_usual(piece: Piece) -> bool:
    return piece.yields == 1 if type(piece) is Shown else not getattr(piece, "yields", 0)


def prompt_request(action: Prompted) -> Json:
    """A prompted action as JSON: the prompt as its parts, the long ones by digest."""
    return {
        **record_prompt(action.prompt),
        "max_tokens": action.max_tokens,
        "until": action.until,
        **unusual(action, "splitter", "sample", "temperature", "model", *SELDOM_SET),
    }


def _reading(action: type[PromptedT]) -> Callable[[Json, Stored], PromptedT]:
    """How actions of this class are read back from what `prompt_request` wrote down."""
    fields = [each for each in structs.fields(action) if each.name != "prompt"]
    # Requests always say where the text ends, whatever the class has as its default.
    written = [
        (each.name, each.type) if each.required or each.name == "until" else (each.name, each.type, each.default)
        for each in fields
    ]
    record = msgspec.defstruct(
        f"_Written{action.__name__}", written, bases=(PromptRecord,), kw_only=True, forbid_unknown_fields=True
    )

    def read_back(request: Json, stored: Stored) -> PromptedT:
        read: Any = msgspec.convert(request, record)
        return action(prompt=read.prompt(stored), **{each.name: getattr(read, each.name) for each in fields})

    return read_back


def prompt_paragraphs(action: Prompted) -> tuple[Paragraph, ...]:
    """The paragraphs in the prompt, and its long texts as paragraphs."""
    return action.prompt.paragraphs + long_texts(action.prompt)


def model_need(action: Prompted, names: EngineNames) -> str:
    """The language model that writes, in words."""
    return f"the model {names.engine_name(action.model)}"


def seen_prompt(action: Prompted, result: Generated) -> Prompt:
    """The prompt as the model saw it: cut to its limits, and with the parts that fitted its context."""
    cut = action.prompt.cut(result.cuts)
    return cut.keep(result.demonstrations, result.paragraphs, result.first_demonstration)


def seen_paragraphs(action: Prompted, result: Generated) -> Iterator[tuple[Paragraph, str]]:
    """Yield the paragraphs that the model saw anything of, each with the text that it saw, as the prompt shows it."""
    for piece, text in shown_paragraphs(action, result):
        if text:
            yield piece.paragraph, text


def shown_paragraphs(action: Prompted, result: Generated) -> Iterator[tuple[Shown, str]]:
    """Yield the paragraphs of a prompt, each with the text that the model saw of it; empty where it was left out."""
    cut = action.prompt.cut(result.cuts)
    # What is kept are the very pieces; only the demonstrations are made again.
    seen = cut.keep(result.demonstrations, result.paragraphs, result.first_demonstration)
    kept = set(map(id, seen.pieces))
    for asked, piece in zip(action.prompt.pieces, cut.pieces, strict=True):
        if isinstance(asked, Shown):
            yield asked, piece.text if id(piece) in kept else ""


def _model_role(request: Json) -> str:
    return str(request.get("model", MODEL))


def generation_view(role: TextRole, action: Prompted, result: Generated | None) -> View:
    """What there is to show of a generation; role: of its text."""
    labels = () if action.sample is None else (f"chain {action.sample + 1}",)
    if result is None:
        return View(labels=labels)
    thoughts = Thoughts(text=result.thoughts, kind=result.thoughts_are, tokens=result.thought_tokens)
    facts = Facts(facts=tuple(_facts(action, result)))
    text = WrittenText(text=result.text, role=role)
    calls = ToolCalls(calls=result.calls)
    shown = (thoughts if result.thoughts_are else None, text, calls if result.calls else None, facts)
    return View(labels=labels, parts=tuple(part for part in shown if part))


def _facts(action: Prompted, result: Generated) -> Iterator[str]:
    about = "about " if result.estimated else ""
    yield f"{about}{count(result.prompt_tokens, 'token')} read ({result.cached_prompt_tokens:,} from the cache)"
    yield f"{about}{result.generated_tokens:,} written"
    if result.drafted_tokens:
        yield f"{result.accepted_tokens} of {result.drafted_tokens} guessed"
    if left_out := len(action.prompt.yielding) - result.paragraphs:
        yield f"{count(left_out, 'paragraph')} didn't fit the context"
    if result.seed is not None:
        yield f"seed {result.seed}"


class Reason(Prompted, frozen=True, kw_only=True):
    """Write the next sentence of a chain of thought, or, with another `until`, all of the rest.

    splitter: what decides where a sentence ends: cotrail's own `RULES`, or a pipeline of spaCy, as `NAME@VERSION`.
    """

    until: Until = "sentence"
    splitter: str = RULES

    @property
    def continues_chain(self) -> bool:
        """Return whether its text is the next sentence of the question's chain; a line of titles, for one, isn't."""
        return self.until == "sentence"


def _decides_reason(action: Reason, binding: Binding) -> Json:
    return decides_generation(action, binding) | unusual(action, "splitter")


def _carry_out_reason(action: Reason, engines: Engines) -> Generated:
    if action.until != "sentence" or action.splitter == RULES:
        return generate(action, engines)
    # The splitter first: a worker that lacks it says so before the model has written anything.
    splitter = engines.splitter(action.splitter)
    # A pipeline's first sentence depends on what follows it, so the model writes its line to the end.
    generation = generate(action, engines, until="line")
    return replace(generation, text=splitter.first_sentence(generation.text))


REASON = ActionKind(
    name="reason",
    action=Reason,
    result=Generated,
    role="generation",
    carry_out=_carry_out_reason,
    decides=_decides_reason,
    request=prompt_request,
    read_back=_reading(Reason),
    paragraphs=prompt_paragraphs,
    pinned=_model_role,
    need="the model server",
    named_need=model_need,
)


class Read(Prompted, frozen=True, kw_only=True):
    """Write a question's answer from its paragraphs."""


READ: ActionKind[Any, Any] = replace(
    REASON,
    name="read",
    action=Read,
    carry_out=generate,
    decides=decides_generation,
    read_back=_reading(Read),
    view=partial(generation_view, "answer"),
)


class Judge(Prompted, frozen=True, kw_only=True):
    """Grade an answer by a rubric; the verdict follows the action's `schema`, or is one of its `choices`.

    A text that doesn't is asked for again, and then fails the step: it is never taken for a verdict. Of a schema with a
    `verdict` the others are side fields: where one can't be used, it alone is left out.
    """

    until: Until = "end"

    @property
    def form(self) -> Form:
        return Form(schema=self.schema, choices=self.choices, decides="verdict")


JUDGE = replace(READ, name="judge", action=Judge, read_back=_reading(Judge), view=partial(generation_view, "verdict"))
