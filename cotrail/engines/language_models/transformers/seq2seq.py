"""Model runner for encoder-decoder models: T5 and its relatives, such as Flan-T5.

Prompts of similar lengths are read together, and all texts are written together, whenever they began (the cache says
why that gives the same results). A pass of the decoder costs nearly the same for one text as for many, so it
serves all of them.

The KV cache holds keys and values of prompts (cross-attention) and of texts (self-attention).

Texts that began at different times end in the same column, the one written last, so that one pass continues them all.
T5 allows that because its positions are relative: only distances between tokens count. Columns before a text's first
one are masked.
"""

from collections.abc import Sequence
from typing import Any

import torch
from msgspec import Struct
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import Cache
from transformers.modeling_outputs import BaseModelOutput

from cotrail.core.ports.language_model import Profile
from cotrail.engines.device_memory import halving, no_room
from cotrail.engines.language_models.transformers.kv_cache import AllocatedLayer, cached, fitting_rows
from cotrail.engines.language_models.transformers.request import Request, next_tokens
from cotrail.errors import InputError

COLUMNS = 256
"""Columns that are allocated at a time."""


class WindowLayer(AllocatedLayer):
    """A layer of which a pass sees a window."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        super().__init__(keys, values)
        self.kept = [keys, values]

    def show(self, rows: slice, tokens: slice) -> None:
        """Sets the window that the next pass sees."""
        self.keys, self.values = (states[rows, :, tokens] for states in self.kept)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Stores a new token of each row in the window's last column, and returns what the pass sees."""
        self.keys[:, :, -1:] = key_states
        self.values[:, :, -1:] = value_states
        return self.keys, self.values

    def get_seq_length(self) -> int:
        """The number of tokens that the window held before the pass."""
        return int(self.keys.shape[2]) - 1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:  # noqa: ARG002
        return int(self.keys.shape[2]), 0

    def get_max_length(self) -> int:
        """The most tokens of a row."""
        return int(self.kept[0].shape[2])


class Seq2SeqCache:
    """Cache of `rows` texts for prompts of up to `context` tokens; used: the columns that texts take so far."""

    def __init__(self, model: Any, rows: int, context: int) -> None:
        like = next(model.parameters())
        self._read = _layers(model, rows, context, like)
        self._written = _layers(model, rows, COLUMNS, like)
        self.used = 0

    def put(self, row: int, fresh: Any, line: int) -> int:
        """Takes over a row of a pass that read prompts and wrote a token each; returns the text's first column.

        fresh: the pass's EncoderDecoderCache; line: the row in it.
        """
        # A first text begins in the first column; one that joins others begins in the one they wrote last.
        self.used = max(1, self.used)
        for kept, new in zip(self._read, fresh.cross_attention_cache.layers, strict=True):
            for states, added in zip(kept.kept, (new.keys, new.values), strict=True):
                states[row, :, : added.shape[2]] = added[line]
        for kept, new in zip(self._written, fresh.self_attention_cache.layers, strict=True):
            for states, added in zip(kept.kept, (new.keys, new.values), strict=True):
                states[row, :, self.used - 1] = added[line, :, 0]
        return self.used - 1

    def move(self, source: int, target: int) -> None:
        """Copies a row."""
        for layer in [*self._read, *self._written]:
            for states in layer.kept:
                states[target] = states[source]

    def show(self, rows: slice, prompt: int, first: int) -> EncoderDecoderCache:
        """The cache for a pass that writes the column `used`: `prompt` tokens of prompts, columns from `first` on."""
        for layer in self._read:
            layer.show(rows, slice(prompt))
        for layer in self._written:
            layer.show(rows, slice(first, self.used + 1))
        shown = EncoderDecoderCache(Cache(layers=[*self._written]), Cache(layers=[*self._read]))
        # Tells transformers that the cross-attention keys are there, so that it doesn't compute them from the encoder's
        # output, which is a placeholder.
        shown.is_updated = dict.fromkeys(range(len(self._read)), True)
        return shown

    @property
    def full(self) -> bool:
        """Return whether `begin_at` must make room for a further column."""
        return self.used == self._written[0].get_max_length()

    def begin_at(self, first: int) -> None:
        """Drops the columns before `first`, and makes room for more behind the others."""
        kept = self.used - first
        for layer in self._written:
            layer.kept = [_moved(states, first, self.used) for states in layer.kept]
        self.used = kept


def bytes_a_row(model: Any, context: int) -> int:
    """The memory of a row in bytes, without what is written."""
    config, like = model.config, next(model.parameters())
    return int(2 * config.num_decoder_layers * config.num_heads * config.d_kv * context * like.element_size())


def _layers(model: Any, rows: int, tokens: int, like: torch.Tensor) -> list[WindowLayer]:
    shape = (rows, model.config.num_heads, tokens, model.config.d_kv)
    # Zeros, because masked values are still multiplied, and uninitialized memory may hold NaN.
    return [WindowLayer(like.new_zeros(shape), like.new_zeros(shape)) for _ in range(model.config.num_decoder_layers)]


def _moved(states: torch.Tensor, first: int, last: int) -> torch.Tensor:
    """The columns from `first` to `last` at the front of a new tensor, with room for at least `COLUMNS` more."""
    rows, heads, _, size = states.shape
    tokens = ((last - first) // COLUMNS + 2) * COLUMNS
    moved = states.new_zeros(rows, heads, tokens, size)
    moved[:, :, : last - first] = states[:, :, first:last]
    return moved


KINDS = ("t5", "mt5")
"""Models known to have relative positions only."""

BATCHING_DELAY = 0.005
"""Seconds that a first prompt waits for others: a small part of the time to read it."""

TOKENS_AT_ONCE = {"cuda": 16_384, "cpu": 2048}
"""Tokens of the prompts read in one pass, padding included; a single one may be longer."""

MOST_PADDING = 0.15
"""The share of a pass that may be padding."""

MEMORY_SHARE = 0.6
"""The share of a GPU's free memory for prompts already read; reading one takes memory by its length squared."""


class CacheRow(Struct, eq=False):
    """A text being written. first: the column in which it begins; done: True once its last token is written."""

    request: Request
    first: int
    done: bool = False


class Seq2SeqRunner:
    """See `ModelRunner`.

    slots: the most texts at once, fewer where a GPU's memory doesn't hold them, and one where the profile is
        `deterministic`; context: tokens of a prompt.
    """

    def __init__(self, model: Any, profile: Profile, slots: int, context: int) -> None:
        if model.config.model_type not in KINDS:
            kinds = " or ".join(KINDS)
            raise InputError(f"{model.config.model_type} isn't supported: an encoder-decoder model has to be {kinds}")
        self.batching_delay = BATCHING_DELAY if profile == "fast" else 0.0
        self._model = model
        self._budget = TOKENS_AT_ONCE[model.device.type]
        self._most = _rows(model, slots, context) if profile == "fast" else 1
        self._decoded = Seq2SeqCache(model, self._most, context)
        self._unread: list[Request] = []
        self._rows: list[CacheRow] = []

    @property
    def busy(self) -> bool:
        return bool(self._unread or self._rows)

    def room(self) -> int:
        return self._most - len(self._unread) - len(self._rows)

    def admit(self, requests: list[Request]) -> None:
        self._unread += requests

    def drop(self, request: Request) -> None:
        self._unread = [each for each in self._unread if each is not request]
        for row in self._rows:
            # Of the others none is done here: those that were have left within their step.
            row.done = row.request is request
        self._leave()

    def cancel(self) -> None:
        self._unread, self._rows = [], []
        self._decoded.used = 0

    def step(self) -> None:
        with torch.inference_mode():
            if self._unread:
                self._begin()
            if self._rows:
                self._write()

    def _begin(self) -> None:
        """Reads the prompt that has waited longest, together with others of similar length."""
        group = length_group(self._unread, self._budget)
        for request in halving(self._read, group):
            request.fail(no_room())
        self._unread = [request for request in self._unread if request not in group]
        self._leave()

    def _read(self, group: list[Request]) -> None:
        """Reads prompts, and writes the first token behind each."""
        # A cache of its own, padded to these prompts; `put` copies each row to where the decoder reads it.
        fresh = EncoderDecoderCache(DynamicCache(), DynamicCache())
        start = self._model.generation_config.decoder_start_token_id
        logits = self._model(
            **self._padded([request.tokens for request in group]),
            decoder_input_ids=self._tensor([[start]] * len(group)),
            use_cache=True,
            **cached(self._model, fresh),
        ).logits[:, -1]
        tokens = next_tokens(logits, [request.sampler for request in group])
        for line, (request, token, scores) in enumerate(zip(group, tokens, logits, strict=True)):
            first = self._decoded.put(len(self._rows), fresh, line)
            self._rows.append(CacheRow(request, first, done=request.take(token, scores)))

    def _write(self) -> None:
        if self._decoded.full:
            # Columns before the first one of any text are seen by none; dropping them keeps the cache from growing.
            self._decoded.begin_at(shift := min(row.first for row in self._rows))
            for row in self._rows:
                row.first -= shift
        # Halves of adjacent rows are adjacent, as `_pass` needs.
        for row in halving(self._pass, self._rows):
            row.request.fail(no_room())
            row.done = True
        self._decoded.used += 1
        self._leave()

    def _pass(self, rows: list[CacheRow]) -> None:
        """Writes the next column of rows that are adjacent in the cache."""
        top = self._rows.index(rows[0])
        first = min(row.first for row in rows)
        seen = self._sees([len(row.request.tokens) for row in rows])
        columns = torch.arange(first, self._decoded.used + 1, device=self._model.device)
        logits = self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=self._unneeded(seen)),
            attention_mask=seen,
            decoder_input_ids=self._tensor([row.request.written[-1:] for row in rows]),
            decoder_attention_mask=columns >= self._tensor([[row.first] for row in rows]),
            use_cache=True,
            **cached(self._model, self._decoded.show(slice(top, top + len(rows)), seen.shape[1], first)),
        ).logits[:, -1]
        tokens = next_tokens(logits, [row.request.sampler for row in rows])
        for row, token, scores in zip(rows, tokens, logits, strict=True):
            row.done = row.request.take(token, scores)

    def _leave(self) -> None:
        """Frees the rows that are done; the last rows take their places, so that the rows in use stay adjacent."""
        # From the end, so that a row which takes another one's place has been looked at before.
        for place in reversed(range(len(self._rows))):
            row = self._rows[place]
            if row.done:
                last = self._rows.pop()
                # The last row itself may be done; it is then simply removed.
                if row is not last:
                    self._decoded.move(len(self._rows), place)
                    self._rows[place] = last
                if not row.request.future.done():
                    row.request.finish()
        if not self._rows:
            self._decoded.used = 0

    def _padded(self, prompts: Sequence[list[int]]) -> dict[str, torch.Tensor]:
        width = max(len(tokens) for tokens in prompts)
        tokens = self._tensor([[*tokens, *[0] * (width - len(tokens))] for tokens in prompts])
        return {"input_ids": tokens, "attention_mask": self._sees([len(tokens) for tokens in prompts])}

    def _sees(self, lengths: Sequence[int]) -> torch.Tensor:
        """Mask of the positions of padded prompts that hold tokens (prompts x longest length)."""
        return torch.arange(max(lengths), device=self._model.device) < self._tensor(lengths)[:, None]

    def _unneeded(self, seen: torch.Tensor) -> torch.Tensor:
        """A placeholder for the encoder's output, which the model requires though it is cached; it takes no memory."""
        nothing = torch.zeros(1, dtype=self._model.dtype, device=self._model.device)
        return nothing.expand(*seen.shape, 1)

    def _tensor(self, numbers: Sequence[object]) -> torch.Tensor:
        return torch.tensor(numbers, device=self._model.device)


def length_group(requests: Sequence[Request], budget: int) -> list[Request]:
    """The first request, and those whose prompts are most similar to it in length, as far as `budget` tokens allow."""
    first = len(requests[0].tokens)
    group = requests[:0]
    for request in sorted(requests, key=lambda request: abs(len(request.tokens) - first)):
        larger = [*group, request]
        if group and not _suit([len(member.tokens) for member in larger], budget):
            break
        group = larger
    return list(group)


def _suit(lengths: list[int], budget: int) -> bool:
    padded = max(lengths) * len(lengths)
    return padded <= budget and sum(lengths) >= (1 - MOST_PADDING) * padded


def _rows(model: Any, slots: int, context: int) -> int:
    """The number of rows: `slots`, or as many as fit a GPU's memory."""
    if model.device.type != "cuda":
        return slots
    return min(slots, fitting_rows(model.device, bytes_a_row(model, context), MEMORY_SHARE, context))
