"""Adapter of the port: packs prompts, and has llama.cpp continue them in one of two profiles.

Probabilities of tokens from llama.cpp, however unlikely they are.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from threading import Event
from typing import Any

from cotrail.core.generation import Sampling
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest, Profile
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated
from cotrail.engines.language_models.chat_template import ChatTemplate, divided, named_controls, template_lacks
from cotrail.engines.language_models.grammars import grammars
from cotrail.engines.language_models.llamacpp import deterministic
from cotrail.engines.language_models.llamacpp.server import LlamaCppStream, Server, TokenIds
from cotrail.engines.language_models.model_files import gguf_metadata, gguf_template
from cotrail.engines.language_models.packing import pack
from cotrail.engines.language_models.result import check_fits, first_tokens, generated, shares
from cotrail.engines.language_models.stop_conditions import kept_beside_calls
from cotrail.engines.language_models.thinking import NO_THINKING, Segment, Thinking, control_pattern
from cotrail.engines.language_models.token_counts import cached_count
from cotrail.engines.language_models.worker_thoughts import worker_thoughts
from cotrail.engines.model_folders import model_identity, weights_digest
from cotrail.errors import StepError

# Prompts as tokens; nothing that is only quoted in one is taken for a control token.

CACHED_PROMPTS = 32
"""The most prompts whose tokens are kept: packing asks for them once or twice before they are read."""


class LlamaCppTokenizer:
    """The tokenizer of a loaded model, and its chat template.

    path: the model's file; open_template: its template, None where it has none.
    encode: the tokens of a prompt. Raises StepError where the model takes no such prompt, TransientStepError.
    count: the number of tokens of a part of a prompt. Raises TransientStepError.
    """

    def __init__(self, server: Server, path: Path, open_template: Callable[[], ChatTemplate | None]) -> None:
        self._server = server
        self._path = path
        self._open_template = open_template
        self.encode = lru_cache(maxsize=CACHED_PROMPTS)(self._encode)
        self.count = cached_count(lambda text: len(server.tokens(text)))

    def _encode(self, prompt: Prompt) -> TokenIds:
        if not prompt.has_roles:
            return self._encode_plain(prompt)
        segments = self._laid_out(prompt)
        # The template itself decides what the text begins with.
        if any(segment.plain for segment in segments):
            return self._server.tokens(self._parts(segments), begins=False)
        return self._server.tokens("".join(segment.text for segment in segments), begins=False, has_controls=True)

    def _encode_plain(self, prompt: Prompt) -> TokenIds:
        segments = divided(prompt.turns[0], self._control)
        if not any(self._control.search(segment.text) for segment in segments if not segment.plain):
            return self._server.tokens(prompt.render())
        if len(segments) == 1:
            return self._server.tokens(prompt.render(), has_controls=True)
        # What is expected at the beginning stands before a text, be it an empty one.
        return self._server.tokens(["", *self._parts(segments)])

    def named_controls(self, prompt: Prompt, stop: Sequence[str]) -> set[str]:
        """The control tokens that the model is to write as text, see `segments`."""
        return named_controls(prompt.turns, stop, self._control)

    def end(self, prompt: Prompt) -> str:
        """The end of a conversation as the template lays it out, behind which the model writes; empty for plain text.

        Raises as `encode` does.
        """
        return self._laid_out(prompt)[-1].text if prompt.has_roles else ""

    def _laid_out(self, prompt: Prompt) -> list[Segment]:
        if refused := template_lacks(self._template, "tools" if prompt.tools else "turns"):
            raise StepError(f"the model {refused}")
        return self._template.lay_out(prompt) if self._template else []

    def _parts(self, segments: Sequence[Segment]) -> list[str | int]:
        """The conversation as its control tokens and the texts between them.

        llama.cpp tokenizes each text between two control tokens by itself too, so that all else stays as it is.
        """
        parts: list[str | int] = []
        text = ""
        for segment in segments:
            for piece in [segment.text] if segment.plain else self._between.split(segment.text):
                if segment.plain or piece not in self._ids:
                    text += piece
                else:
                    parts += [text, self._ids[piece]]
                    text = ""
        return [part for part in [*parts, text] if part != ""]

    @cached_property
    def _template(self) -> ChatTemplate | None:
        return self._open_template()

    @cached_property
    def _ids(self) -> dict[str, int]:
        return gguf_metadata(self._path).controls

    @cached_property
    def _control(self) -> re.Pattern[str]:
        return control_pattern(self._ids)

    @cached_property
    def _between(self) -> re.Pattern[str]:
        # In a group, so that `split` returns the control tokens too.
        return re.compile(f"({self._control.pattern})")


BIAS = 100.0
"""Bias in nats on the logits of the tokens in question. It is the same for each, so that their proportions stay, and so
large that they come before all other tokens: llama.cpp returns the likeliest tokens only, and returning all of them
takes far longer than reading a short prompt."""


class ChoiceStream(LlamaCppStream):
    """Takes the probabilities of these tokens, all different; the token that is written isn't used."""

    def __init__(self, tokens: Sequence[int], interrupted: Callable[[], bool]) -> None:
        super().__init__("line", interrupted)
        self._tokens = tokens
        self._found: dict[int, float] = {}

    @property
    def asks(self) -> dict[str, Any]:
        bias = [[token, BIAS] for token in self._tokens]
        return {"n_probs": len(self._tokens), "post_sampling_probs": True, "logit_bias": bias}

    def take(self, chunk: Mapping[str, Any]) -> bool:
        for choice in chunk.get("choices", ()):
            for position in (choice.get("logprobs") or {}).get("content", ()):
                self._found |= {each["id"]: each["prob"] for each in position["top_probs"]}
        return super().take(chunk)

    def shares(self) -> tuple[float, ...]:
        """The probabilities of the tokens among them alone."""
        if not self._found.keys() >= set(self._tokens):
            raise StepError(f"llama.cpp rates one of the choices as less likely than e^-{BIAS:.0f}")
        return shares([self._found[token] for token in self._tokens])


FAST: dict[str, Any] = {
    # Tokens of a prompt that are read between two chances to interrupt; larger batches are no faster on two cores.
    "n_batch": 512,
    # Room for prefixes that no slot holds at the moment, so that reason steps and readers, whose demonstrations differ,
    # can alternate without reading each other's demonstrations again.
    "cache_ram_mib": 2048,
    # A prompt takes over a slot if its text is at least this share of the prompt, otherwise the least recently used
    # slot. Questions of a run share less (their demonstrations), a question's next step shares more.
    "slot_prompt_similarity": 0.9,
}
"""Options of llama.cpp's server for the profile `fast`."""

SPARE_SLOTS = 2
"""Slots of `fast` beyond the active ones: they keep the prefixes of questions that wait for their paragraphs."""


def fast_server(path: Path, slots: int, context: int) -> Server:
    """A server of the profile `fast` for that many prompts at once."""
    return Server(path, slots + SPARE_SLOTS, context, FAST)


class LlamaCppModel:
    """A GGUF model; see `LanguageModel`.

    path, name: its file, and the identity's name.
    profile: `fast` works on `slots` prompts at once and reuses the longest prefix that a slot has read before;
        `deterministic` works on one prompt at a time, and reuses only what changes no bit of the result.
    context: tokens that a prompt and its continuation may take together.
    thinking: how the model thinks, as its table says.
    """

    def __init__(
        self, path: Path, name: str, profile: Profile, slots: int, context: int, thinking: Thinking = NO_THINKING
    ) -> None:
        self.identity = model_identity(name, thinking.added_to(weights_digest(path, context)))
        self._context = context
        metadata = gguf_metadata(path)
        self._thoughts = worker_thoughts(thinking, context, metadata.chat_template, metadata.own_tokens)
        self._shown = self._thoughts.shown_controls(metadata.controls)
        self._own_tokens, self._eos = metadata.own_tokens, metadata.eos
        self._interrupted = Event()
        if profile == "fast":
            self._server, self._deterministic = fast_server(path, slots, context), None
        else:
            self._server = Server(path, 1, context, deterministic.OPTIONS)
            self._deterministic = deterministic.DeterministicSlot(self._server)
        self._tokenizer = LlamaCppTokenizer(self._server, path, partial(gguf_template, path, thinking.template))
        self.count_tokens = self._tokenizer.count

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        packed = self._packed(request)
        tokens = self._tokenizer.encode(packed)
        room = self._context - len(tokens)
        most = min(request.max_tokens, room)
        wanted = cancellation or Cancellation()
        stream = LlamaCppStream(
            request.until,
            lambda: self._interrupted.is_set() or wanted.cancelled,
            request.stop,
            scored=request.scored,
            max_tokens=most if self._thoughts.marks else None,
            written=self._thoughts.text(self._tokenizer.end(packed), room - most),
            shown=self._shown_for(packed, request),
            grammars=grammars(request.form, self._thoughts.marks, self._own_tokens),
            listener=wanted.listener,
        )
        self._write(packed, tokens, stream, room if self._thoughts.marks else most, request.sampling)
        # Only where tools were offered: elsewhere what looks like a call is text.
        text, calls = kept_beside_calls(stream.text, stream.until, stream.stop) if packed.tools else (stream.kept(), ())
        thought = self._thoughts.thought(stream.written, has_calls=bool(calls))
        return generated(packed, text, stream.text, stream.counts, *stream.ending, calls, stream.scores, thought)

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        tokens = self._server.tokens(text)
        check_fits(len(tokens) + 1, self._context)
        # At temperature 1 the probabilities are the model's own; at 0 the likeliest token would have all.
        stream = ChoiceStream(first_tokens(self._server.tokens, text, choices), self._interrupted.is_set)
        self._complete(tokens, 0, stream, 1, Sampling(temperature=1.0))
        return stream.shares()

    def interrupt(self) -> None:
        self._interrupted.set()

    def _shown_for(self, packed: Prompt, request: GenerationRequest) -> list[str]:
        """The control tokens that are a part of the text; the one that ends it never is."""
        named = self._tokenizer.named_controls(packed, request.stop) - {self._eos}
        return sorted({*self._shown, *named})

    def _packed(self, request: GenerationRequest) -> Prompt:
        prompt = request.prompt.handing_back(self._thoughts.thinking.hands_back)
        reserved = request.max_tokens + self._thoughts.reserved(prompt)
        encode = self._tokenizer.encode
        return pack(prompt, self.count_tokens, self._context, reserved, lambda prompt: len(encode(prompt)))

    def _write(
        self, packed: Prompt, tokens: TokenIds, stream: LlamaCppStream, max_tokens: int, sampling: Sampling
    ) -> None:
        """Has the model write, in several requests where it thinks too long or is held to a form behind a thought."""
        # Only the deterministic slot saves prefixes by itself; slots of `fast` keep whatever they read.
        shared = self.count_tokens(packed.shared) if self._deterministic else 0
        self._complete(tokens, shared, stream, max_tokens, sampling)
        while stream.pauses:
            if stream.written.is_hopeless:
                stream.give_up()
                return
            stream.go_on()
            # What was written is part of the prompt now: with its control tokens, and without those that begin a text.
            begun = [*tokens, *self._server.tokens(stream.raw.text, begins=False, has_controls=True)]
            self._complete(begun, shared, stream, self._context - len(begun), sampling)

    def _complete(
        self, tokens: TokenIds, shared: int, stream: LlamaCppStream, max_tokens: int, sampling: Sampling
    ) -> None:
        if self._deterministic is None:
            self._server.complete(tokens, stream, max_tokens, sampling)
        else:
            self._deterministic.complete(tokens, shared, stream, max_tokens, sampling)
