"""Adapter of the port: packs prompts, and has a model runner continue them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from cotrail.core.calls import Call
from cotrail.core.generation import Sampling, before_stop
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest, Profile
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated
from cotrail.core.written_calls import split_calls
from cotrail.engines.language_models.grammars import grammars
from cotrail.engines.language_models.packing import output_tokens, pack
from cotrail.engines.language_models.probabilities import check_fits, first_tokens
from cotrail.engines.language_models.quoted_controls import divided, named_controls
from cotrail.engines.language_models.result import generated
from cotrail.engines.language_models.segments import Segment
from cotrail.engines.language_models.stop_conditions import kept
from cotrail.engines.language_models.thinking import NO_THINKING, Thinking
from cotrail.engines.language_models.token_counts import TokenCounts, cached_count
from cotrail.engines.language_models.transformers.constraint import Constraints
from cotrail.engines.language_models.transformers.loading import Loaded, load
from cotrail.engines.language_models.transformers.request import Request
from cotrail.engines.language_models.transformers.sampling import ChoiceScorer
from cotrail.engines.language_models.transformers.scheduler import ModelRunner, Scheduler
from cotrail.engines.language_models.worker_thoughts import WorkerThoughts, worker_thoughts
from cotrail.engines.model_identity import model_identity, weights_digest
from cotrail.errors import StepError


class TransformersModel:
    """A model that transformers loads.

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
        self._identity = model_identity(name, thinking.added_to(weights_digest(path, context, "transformers")))
        loaded = load(path, thinking.template)
        self._vocabulary = loaded.vocabulary
        self._constraints = Constraints(loaded.vocabulary)
        self._thoughts = _thoughts(loaded, thinking, context)
        self._shown = self._thoughts.shown_controls(self._vocabulary.controls)
        self._template = None if loaded.encoder_decoder else loaded.template
        self._encoder_decoder = loaded.encoder_decoder
        self._context = context
        self._scheduler = Scheduler(_runner(loaded, profile, slots, context))
        self.count_tokens = cached_count(self._count)

    @property
    def identity(self) -> str:
        """See `LanguageModel`."""
        return self._identity

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        """See `LanguageModel`."""
        packed = self._packed(request)
        scheduled = self._scheduled(packed, request)
        scheduled.cancellation = cancellation
        self._scheduler.submit(scheduled)
        scheduled.future.result()
        tokens = TokenCounts(
            prompt=len(scheduled.tokens),
            cached=scheduled.cached,
            generated=len(scheduled.written) - scheduled.forced,
            thought=scheduled.thinking.thought_tokens,
            drafted=scheduled.drafted,
            accepted=scheduled.accepted,
        )
        text, calls = _with_calls(scheduled) if packed.tools else (scheduled.kept, ())
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
        """See `LanguageModel`."""
        self._scheduler.interrupt()

    def _packed(self, request: GenerationRequest) -> Prompt:
        prompt = request.prompt.handing_back(self._thoughts.thinking.hands_back)
        # An encoder-decoder model's output takes nothing of its context, but IRCoT's released code reserves room for
        # it.
        reserved = 0 if self._encoder_decoder and prompt.drop == "last" else request.max_tokens
        counted = self._count_conversation if prompt.has_roles else None
        return pack(prompt, self.count_tokens, self._context, reserved + self._thoughts.reserved(prompt), counted)

    def _count(self, text: str) -> int:
        return len(self._vocabulary.encode(text))

    def _count_conversation(self, prompt: Prompt) -> int:
        return len(self._encode(prompt))

    def _encode(self, prompt: Prompt) -> list[int]:
        if not prompt.has_roles:
            return self._vocabulary.encode_plain(divided(prompt.turns[0], self._vocabulary.control))
        return self._vocabulary.encode_conversation(self._laid_out(prompt))

    def _shown_for(self, packed: Prompt, stop: Iterable[str]) -> list[str]:
        """The control tokens that are a part of the text; one that ends it never is."""
        named = named_controls(packed.turns, stop, self._vocabulary.control)
        return sorted({*self._shown, *(each for each in named if not self._vocabulary.ends_text(each))})

    def _laid_out(self, prompt: Prompt) -> list[Segment]:
        if self._template is None:
            raise StepError(f"{self._identity} takes no conversations; take a model that was tuned for chats")
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


def _with_calls(request: Request) -> tuple[str, tuple[Call, ...]]:
    """What the step asked for outside of calls of tools, and the calls."""
    outside, calls = split_calls(before_stop(request.text, request.stop)[0])
    return kept(outside, request.until), calls


def _runner(loaded: Loaded, profile: Profile, slots: int, context: int) -> ModelRunner:
    if loaded.encoder_decoder:
        from cotrail.engines.language_models.transformers.seq2seq import Seq2SeqRunner

        return Seq2SeqRunner(loaded.model, profile, slots, context)
    from cotrail.engines.language_models.transformers.causal import CausalRunner

    return CausalRunner(loaded.model, profile, slots, context)
