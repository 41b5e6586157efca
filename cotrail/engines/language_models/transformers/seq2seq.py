"""Model runner for encoder-decoder models: T5 and its relatives, such as Flan-T5.

Prompts of similar lengths are read together, and all texts are written together, whenever they began (`seq2seq_cache`
says why that gives the same results). A pass of the decoder costs nearly the same for one text as for many, so it
serves all of them.
"""

from collections.abc import Sequence
from typing import Any

import torch
from msgspec import Struct
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from cotrail.core.ports.language_model import Profile
from cotrail.engines.device_memory import halving, no_room
from cotrail.engines.language_models.transformers.kv_cache import cached
from cotrail.engines.language_models.transformers.request import Request
from cotrail.engines.language_models.transformers.sampling import next_tokens
from cotrail.engines.language_models.transformers.seq2seq_cache import Seq2SeqCache, bytes_a_row
from cotrail.errors import InputError

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
        """See `ModelRunner`."""
        return bool(self._unread or self._rows)

    def room(self) -> int:
        """See `ModelRunner`."""
        return self._most - len(self._unread) - len(self._rows)

    def admit(self, requests: list[Request]) -> None:
        """See `ModelRunner`."""
        self._unread += requests

    def drop(self, request: Request) -> None:
        """See `ModelRunner`."""
        self._unread = [each for each in self._unread if each is not request]
        for row in self._rows:
            row.done = row.request is request
        self._leave()

    def cancel(self) -> None:
        """See `ModelRunner`."""
        self._unread, self._rows = [], []
        self._decoded.used = 0

    def step(self) -> None:
        """See `ModelRunner`."""
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
        """Writes a further token of each text."""
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
    free, _ = torch.cuda.mem_get_info(model.device)
    rows = int(free * MEMORY_SHARE) // bytes_a_row(model, context)
    if rows < 1:
        raise InputError(f"the GPU has no room for {context} tokens beside the model: set a shorter context")
    return min(slots, rows)
