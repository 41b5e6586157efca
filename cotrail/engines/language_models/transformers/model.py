"""Adapter of the port: packs prompts, and has a model runner continue them.

Loads models from files: a folder saved by transformers, or a GGUF file.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from msgspec import Struct
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.utils import logging

from cotrail.core.generation import Sampling
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest, Profile
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated
from cotrail.engines.language_models.chat_template import ChatTemplate, divided, named_controls
from cotrail.engines.language_models.grammars import Grammars, Guide, grammars
from cotrail.engines.language_models.model_files import template_source
from cotrail.engines.language_models.packing import output_tokens, pack
from cotrail.engines.language_models.result import check_fits, first_tokens, generated
from cotrail.engines.language_models.stop_conditions import kept_beside_calls
from cotrail.engines.language_models.thinking import NO_THINKING, Segment, Thinking
from cotrail.engines.language_models.token_counts import TokenCounts, cached_count
from cotrail.engines.language_models.transformers.request import ChoiceScorer, Request
from cotrail.engines.language_models.transformers.scheduler import ModelRunner, Scheduler
from cotrail.engines.language_models.transformers.vocabulary import Vocabulary
from cotrail.engines.language_models.worker_thoughts import ThinkingText, WorkerThoughts, worker_thoughts
from cotrail.engines.model_folders import loading, model_identity, weights_digest
from cotrail.errors import InputError, StepError


class Loaded(Struct, frozen=True):
    """A loaded model, its vocabulary, and its chat template if it has one."""

    model: Any
    vocabulary: Vocabulary
    template: ChatTemplate | None = None
    template_source: str | None = None

    @property
    def encoder_decoder(self) -> bool:
        """Return whether an encoder reads the prompt, as in T5; the context then counts the prompt alone."""
        return bool(self.model.config.is_encoder_decoder)


def load(path: Path, variables: Mapping[str, Any] = MappingProxyType({})) -> Loaded:
    """Loads a model onto a CUDA device in bfloat16, or onto the CPU in float32 where there is none.

    variables: of its template, see `ChatTemplate`. Raises InputError, NotInstalledError.
    """
    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    where: dict[str, Any] = {"pretrained_model_name_or_path": path, "local_files_only": True}
    if path.is_file():
        where |= {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    with loading("transformers", path):
        tokenizer = AutoTokenizer.from_pretrained(**where)
        model = _model(where)
    # `Vocabulary` uses the tokenizer of tokenizers' Rust library, which a slow one doesn't have.
    if not tokenizer.is_fast:
        raise InputError(f"{path} has no tokenizer.json: load and save its tokenizer once with transformers 5")
    vocabulary = Vocabulary(tokenizer, _ends(model, tokenizer))
    # From the files, as the submitting process reads it: transformers makes another choice of several templates.
    source = template_source(path)
    if source is None:
        return Loaded(model, vocabulary, None)
    template = ChatTemplate(source, vocabulary.bos, vocabulary.eos, vocabulary.controls, variables)
    return Loaded(model, vocabulary, template, source)


def _model(where: dict[str, Any]) -> Any:
    # bfloat16 halves the memory that each token reads; many CPUs have no fast kernels for it.
    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    config = AutoConfig.from_pretrained(**where)
    kind: Any = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    return kind.from_pretrained(**where, config=config, dtype=dtype).to(device).eval()


# Chat models often name an end of text of their own in either of the two places.
def _ends(model: Any, tokenizer: Any) -> set[int]:
    named = model.generation_config.eos_token_id
    ids = named if isinstance(named, list) else [named]
    return {token for token in [*ids, tokenizer.eos_token_id] if token is not None}


class TransformersModel:
    """A model that transformers loads; see `LanguageModel`.

    path, name: a folder saved by transformers or a GGUF file, and the identity's name.
    profile: `fast` works on up to `slots` prompts at once and reuses prefixes that it read before; `deterministic`
        works on one prompt at a time, and reuses only what changes no bit of the result (see the module
        `deterministic`).
    context: tokens that a prompt and its continuation may take together, or the prompt alone where the model has an
        encoder.
    thinking: how the model thinks, as its table says.
    """

    def __init__(
        self, path: Path, name: str, profile: Profile, slots: int, context: int, thinking: Thinking = NO_THINKING
    ) -> None:
        self.identity = model_identity(name, thinking.added_to(weights_digest(path, context, "transformers")))
        loaded = load(path, thinking.template)
        self._vocabulary = loaded.vocabulary
        self._constraints = Constraints(loaded.vocabulary)
        self._thoughts = _thoughts(loaded, thinking, context)
        self._shown = self._thoughts.shown_controls(self._vocabulary.controls)
        self._template = None if loaded.encoder_decoder else loaded.template
        self._encoder_decoder = loaded.encoder_decoder
        self._context = context
        self._scheduler = Scheduler(_runner(loaded, profile, slots, context))
        self.count_tokens = cached_count(lambda text: len(self._vocabulary.encode(text)))

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        packed = self._packed(request)
        scheduled = self._scheduled(packed, request)
        scheduled.cancellation = cancellation
        self._scheduler.submit(scheduled)
        scheduled.future.result()
        tokens = TokenCounts(
            prompt_tokens=len(scheduled.tokens),
            cached_prompt_tokens=scheduled.cached,
            generated_tokens=len(scheduled.written) - scheduled.forced,
            thought_tokens=scheduled.thinking.thought_tokens,
            drafted_tokens=scheduled.drafted,
            accepted_tokens=scheduled.accepted,
        )
        text, calls = (
            kept_beside_calls(scheduled.text, scheduled.until, scheduled.stop) if packed.tools else (scheduled.kept, ())
        )
        thought = self._thoughts.thought(scheduled.thinking, has_calls=bool(calls))
        return generated(packed, text, scheduled.text, tokens, *scheduled.ending, calls, scheduled.scores, thought)

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """See `LanguageModel`; they come from the pass that reads the text."""
        tokens = self._vocabulary.encode(text)
        check_fits(len(tokens) + (not self._encoder_decoder), self._context)
        scheduled = Request(tokens, self._vocabulary, "line", 1, Sampling())
        scheduled.sampler = choice = ChoiceScorer(self._first_tokens(text, choices))
        self._scheduler.submit(scheduled)
        scheduled.future.result()
        return choice.shares

    def interrupt(self) -> None:
        self._scheduler.interrupt()

    def _packed(self, request: GenerationRequest) -> Prompt:
        prompt = request.prompt.handing_back(self._thoughts.thinking.hands_back)
        # An encoder-decoder model's output takes nothing of its context, but IRCoT's released code reserves room for
        # it.
        reserved = 0 if self._encoder_decoder and prompt.drop == "last" else request.max_tokens
        counted = (lambda packed: len(self._encode(packed))) if prompt.has_roles else None
        return pack(prompt, self.count_tokens, self._context, reserved + self._thoughts.reserved(prompt), counted)

    def _encode(self, prompt: Prompt) -> list[int]:
        if not prompt.has_roles:
            return self._vocabulary.encode_segments(divided(prompt.turns[0], self._vocabulary.control), special=True)
        return self._vocabulary.encode_segments(self._laid_out(prompt), special=False)

    def _shown_for(self, packed: Prompt, stop: Iterable[str]) -> list[str]:
        """The control tokens that are a part of the text; one that ends it never is."""
        named = named_controls(packed.turns, stop, self._vocabulary.control)
        return sorted({*self._shown, *(each for each in named if not self._vocabulary.ends_text(each))})

    def _laid_out(self, prompt: Prompt) -> list[Segment]:
        if self._template is None:
            raise StepError(f"{self.identity} takes no conversations; take a model that was tuned for chats")
        return self._template.lay_out(prompt)

    def _end(self, packed: Prompt) -> str:
        """The end of a conversation as the template lays it out, behind which the model writes."""
        return self._laid_out(packed)[-1].text if self._thoughts.marks and packed.has_roles else ""

    def _first_tokens(self, text: str, choices: Sequence[str]) -> list[int]:
        if self._encoder_decoder:  # the continuation is a text of its own
            return first_tokens(lambda choice: self._vocabulary.encode(choice, special=False), "", choices)
        return first_tokens(self._vocabulary.encode, text, choices)

    def _scheduled(self, packed: Prompt, request: GenerationRequest) -> Request:
        few_shot = not packed.has_roles
        tokens = self._encode(packed)
        # An encoder-decoder model's output takes nothing of its context.
        most = request.max_tokens
        if not self._encoder_decoder:
            most = output_tokens(len(tokens), self._context, most)
        thinking = self._thoughts.text(self._end(packed), self._context - len(tokens) - most)
        held_to = grammars(request.form, self._thoughts.marks, self._vocabulary.own_tokens)
        return Request(
            tokens,
            self._vocabulary,
            request.until,
            most,
            request.sampling,
            self.count_tokens(packed.shared) if packed.shared else 0,
            "\n".join([packed.question, *packed.written]) if few_shot and request.until == "sentence" else "",
            stop=request.stop,
            scored=request.scored,
            joined=request.until == "stop" and not self._encoder_decoder,
            thinking=thinking,
            shown=self._shown_for(packed, request.stop),
            constraint=self._constraints.of(held_to, thinking),
        )


def _thoughts(loaded: Loaded, thinking: Thinking, context: int) -> WorkerThoughts:
    if loaded.encoder_decoder:
        return WorkerThoughts()
    return worker_thoughts(thinking, context, loaded.template_source, loaded.vocabulary.own_tokens)


def _runner(loaded: Loaded, profile: Profile, slots: int, context: int) -> ModelRunner:
    if loaded.encoder_decoder:
        from cotrail.engines.language_models.transformers.seq2seq import Seq2SeqRunner

        return Seq2SeqRunner(loaded.model, profile, slots, context)
    from cotrail.engines.language_models.transformers.causal import CausalRunner

    return CausalRunner(loaded.model, profile, slots, context)


# Constrained decoding: which tokens may come next, by llguidance (Microsoft's, in Rust).

MOST_STATES = 25_000
"""The most states of a grammar's lexer, 1 to 2 kB each: a tenth of the library's own bound, since each text has its
own. Schemas as they are used take hundreds."""

_METASPACE = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}
"""The decoder of SentencePiece's vocabularies in the form that llguidance reads, which knows no `Metaspace`."""


class GrammarConstraint:
    """Holds a generation to its grammars, token by token; see `Constraint`.

    matchers: of each grammar that could be compiled.
    """

    def __init__(self, guide: Guide, matchers: Mapping[str, LLMatcher]) -> None:
        self._guide = guide
        self._matchers = matchers
        self._matcher = matchers.get(guide.grammar)

    def masked(self, logits: torch.Tensor) -> torch.Tensor:
        if self._matcher is None:
            return logits
        allowed = torch.frombuffer(bytearray(self._matcher.compute_logit_bias()), dtype=torch.uint8)[
            : len(logits)
        ].bool()
        # Beyond the library's bounds, or beyond the vocabulary: the rest is written freely.
        if self._matcher.is_error() or not allowed.any():
            self._matcher = None
            return logits
        # A model may have more logits than its vocabulary has tokens.
        refused = torch.ones(len(logits), dtype=torch.bool)
        refused[: len(allowed)] = ~allowed
        return logits.masked_fill(refused, -torch.inf)

    def take(self, token: int) -> None:
        # Where another grammar begins, this token has ended the former one's part and belongs to neither matcher.
        if self._guide.follow():
            self._matcher = self._matchers.get(self._guide.grammar)
        elif self._matcher is not None:
            self._matcher.consume_token(token)


class Constraints:
    """Makes the constraints of a vocabulary's texts; safe to use from many threads."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def of(self, grammars: Grammars, written: ThinkingText) -> GrammarConstraint | None:
        """Holds a text to its grammars; None where it is held to nothing."""
        tokenizer = self._tokenizer if grammars.start else None
        if tokenizer is None:
            return None
        limits = LLParserLimits(max_lexer_states=MOST_STATES, verbose_errors=False)
        compiled = {
            grammar: LLMatcher(tokenizer, grammar, log_level=0, limits=limits)
            for grammar in (grammars.start, grammars.behind_thought)
            if grammar
        }
        matchers = {grammar: matcher for grammar, matcher in compiled.items() if not matcher.is_error()}
        return GrammarConstraint(Guide(grammars, written), matchers)

    # It takes a second, which only models that are asked for a form should.
    @cached_property
    def _tokenizer(self) -> LLTokenizer | None:
        """The vocabulary for llguidance; None where it can't be read, or no token ends a text."""
        described = self._vocabulary.described
        if (described["decoder"] or {}).get("type") == "Metaspace":
            described["decoder"] = _METASPACE
        try:
            return LLTokenizer(json.dumps(described), eos_token=sorted(self._vocabulary.ends))
        except ValueError:
            return None
