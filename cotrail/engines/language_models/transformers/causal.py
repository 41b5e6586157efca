"""Model runner for decoder-only models: continuous batching over the rows of one KV cache.

transformers' own continuous batching takes neither a stop condition nor a seed with a request: each generation would
run to its last token, and a row's text would depend on its neighbours' samples.

Drafts for speculative decoding from chains of thought that the model continued ahead of time.

A reason step keeps the first sentence, and the next step asks for the second one with more paragraphs. While a row of
the batch would be idle, the model continues the chain anyway; often the next sentence turns out the same.
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import torch
from msgspec import Struct

from cotrail.core.ports.language_model import Profile
from cotrail.engines.device_memory import halving, no_room
from cotrail.engines.language_models.transformers import kv_cache
from cotrail.engines.language_models.transformers.kv_cache import (
    ALIGNED,
    RowCache,
    View,
    cached,
    fitting_rows,
    layer_shapes,
)
from cotrail.engines.language_models.transformers.request import Request
from cotrail.engines.language_models.transformers.scheduler import (
    DETERMINISTIC_CHUNK_TOKENS,
    DETERMINISTIC_SPARE_ROWS,
    Slot,
    Slots,
)
from cotrail.errors import InputError

MOST_WASTE = 1.25
"""The most rows a pass may have, as a multiple of those needed, so that they are adjacent and needn't be copied."""


class Feed(Struct, frozen=True):
    """A prompt's part of a pass: tokens to be read, and a draft of what follows them (speculative decoding).

    whole: True if the next token follows from them; otherwise more of the prompt has to be read.
    """

    slot: Slot
    tokens: list[int]
    draft: list[int]
    whole: bool

    @property
    def shown(self) -> list[int]:
        """All tokens of the pass."""
        return [*self.tokens, *self.draft]


class Batch:
    """The feeds of a pass, one row each, aligned at their last tokens.

    Between them may be idle rows, which store nothing in the cache.
    """

    def __init__(self, feeds: Sequence[Feed], device: torch.device) -> None:
        self._feeds = feeds
        self._device = device
        self._width = max(len(feed.shown) for feed in feeds)
        rows = [feed.slot.row for feed in feeds]
        first, count = min(rows), max(rows) - min(rows) + 1
        self._rows: slice | torch.Tensor
        # Adjacent rows are a view of the cache; scattered ones are gathered, which copies all that they hold.
        if count <= len(rows) * MOST_WASTE:
            self._rows, self._lines = slice(first, first + count), [row - first for row in rows]
        else:
            self._rows, self._lines = self._tensor(rows), list(range(len(rows)))

    def inputs(self) -> dict[str, torch.Tensor]:
        """Token ids and positions (rows x width), and the causal attention mask over the cache."""
        lines = max(self._lines) + 1
        tokens, positions = ([[0] * self._width for _ in range(lines)] for _ in range(2))
        for line, feed in zip(self._lines, self._feeds, strict=True):
            # Left padding: the logits behind the last tokens of all rows are then in the same columns.
            tokens[line][self._width - len(feed.shown) :] = feed.shown
            positions[line][self._width - len(feed.shown) :] = _positions(feed)
        ids, places = self._tensor([tokens, positions])
        sees = torch.arange(self._length, device=self._device) <= places[:, None, :, None]
        return {"input_ids": ids, "position_ids": places, "attention_mask": sees}

    def view(self) -> View:
        """The places in the cache where the pass stores its tokens."""
        kept = [
            (line, self._width - len(feed.shown) + n, feed.slot.row, position)
            for line, feed in zip(self._lines, self._feeds, strict=True)
            for n, position in enumerate(_positions(feed))
        ]
        batch, query, row, position = self._tensor(kept).T
        return View(self._rows, self._length, batch, query, row, position)

    def of_feeds(self, results: torch.Tensor) -> torch.Tensor:
        """The results for the feeds alone, in their order."""
        return results[self._tensor(self._lines)]

    @property
    def _length(self) -> int:
        # Kernels need masks of even lengths, and fewer distinct lengths mean fewer distinct blocks in the GPU's
        # allocator.
        return -(-max(_positions(feed).stop for feed in self._feeds) // ALIGNED) * ALIGNED

    def _tensor(self, numbers: Sequence[object]) -> torch.Tensor:
        return torch.tensor(numbers, device=self._device)


def _positions(feed: Feed) -> range:
    return range(len(feed.slot.held), len(feed.slot.held) + len(feed.shown))


EXTRA_TOKENS = 64
"""Tokens written beyond what was asked for."""

MOST_CONTINUATIONS = 1024
"""The most continuations kept, for questions that may not come back."""


class Continuations:
    """Texts that the model wrote beyond a request, by the chain that the next step's prompt will have."""

    def __init__(self) -> None:
        self._rests: OrderedDict[str, list[int]] = OrderedDict()

    def remember(self, rest: Request) -> None:
        """Keeps what a continuation has come to."""
        begun = rest.rest_of
        if begun is None:
            return
        text = begun.vocabulary.decode([*begun.written, *rest.written]).lstrip()
        # Encoded again: the next prompt joins the kept sentence and its continuation with a space of its own, so that
        # the tokens at the seam differ from those written.
        tokens = begun.vocabulary.encode(text[len(begun.kept) :], special=False)
        self._rests[begun.next_chain] = tokens
        if len(self._rests) > MOST_CONTINUATIONS:
            self._rests.popitem(last=False)

    def recall(self, request: Request) -> list[int]:
        """The expected tokens of a request, as far as they are known. They are returned once and then forgotten."""
        return self._rests.pop(request.chain, [])


def rest_of(request: Request, context: int) -> Request | None:
    """The request that continues a finished one; None where its line ended there or the context is full."""
    # What is sampled can't be expected to come again, nor what is thought before it.
    if not (request.chain and request.kept and request.sampler.greedy) or request.thinking.thought_tokens:
        return None
    tokens = [*request.tokens, *request.written]
    behind = request.text.lstrip()[len(request.kept) :]
    room = min(EXTRA_TOKENS, context - len(tokens))
    if not behind.strip() or "\n" in behind or room < 1:
        return None
    rest = Request(tokens, request.vocabulary, "line", room, request.sampling, request.shared)
    rest.rest_of = request
    return rest


SPARE_ROWS = 2
"""Rows of `fast` beyond the active ones: they keep the prefixes of questions that wait for their paragraphs."""

PREFILL_TOKENS = 512
"""The most tokens of a prompt that are read between two tokens of the texts being written (chunked prefill)."""

READ_AT_ONCE = {"cuda": 8, "cpu": 1}
"""The most prompts read in one pass; on a CPU, a single one fills it."""

WRITES_AHEAD = {"cuda": True, "cpu": False}
"""Continue chains beyond what was asked for? A GPU has idle rows; on a CPU it costs what it saves."""

MEMORY_SHARE = 0.8
"""The share of a GPU's free memory that the cache may take; passes need the rest."""


class CausalRunner:
    """See `ModelRunner`.

    slots: the most prompts at once, fewer where a GPU's memory doesn't hold them; context: tokens of a prompt and its
        continuation.
    """

    batching_delay = 0.0

    def __init__(self, model: Any, profile: Profile, slots: int, context: int) -> None:
        if not model._supports_sdpa:
            raise InputError("PyTorch's attention doesn't suit this model: use a GGUF of it with llama.cpp")
        model.set_attn_implementation(kv_cache.ATTENTION_NAME)
        fast = profile == "fast"
        self._model = model
        self._context = context
        self._drafts = fast
        self._writes_ahead = fast and WRITES_AHEAD[model.device.type]
        self._continuations = Continuations()
        self._chunk = PREFILL_TOKENS if fast else DETERMINISTIC_CHUNK_TOKENS
        self._reads = READ_AT_ONCE[model.device.type]
        self._cache, rows = _cache(model, slots + SPARE_ROWS if fast else 1 + DETERMINISTIC_SPARE_ROWS, context)
        self._slots = Slots(self._cache, rows, 1 if fast else DETERMINISTIC_CHUNK_TOKENS)
        self._most = max(1, min(slots, rows - SPARE_ROWS)) if fast else 1

    @property
    def busy(self) -> bool:
        return bool(self._slots.busy)

    def room(self) -> int:
        return self._most - sum(slot.taken.rest_of is None for slot in self._slots.busy)

    def admit(self, requests: list[Request]) -> None:
        with torch.inference_mode():
            for request in requests:
                self._free_a_slot(request)
                self._slots.take(request)

    def _free_a_slot(self, request: Request) -> None:
        """Ends the continuation of the request's own chain, and another one if no slot is free."""
        continuations = [(slot, slot.taken.rest_of) for slot in self._slots.busy if slot.taken.rest_of]
        for slot, begun in continuations:
            if begun.next_chain == request.chain:
                self._end(slot)
        if self._slots.full:
            # The one begun first: it has most likely come furthest, and what it came to is kept.
            self._end(continuations[0][0])
        request.predicted = self._continuations.recall(request)

    def drop(self, request: Request) -> None:
        for slot in self._slots.busy:
            if slot.request is request:
                self._slots.free(slot)

    def cancel(self) -> None:
        for slot in self._slots.busy:
            self._slots.free(slot)

    def step(self) -> None:
        with torch.inference_mode():
            feeds = [self._feed(slot) for slot in self._slots.busy if self._slots.follow(slot)]
            # Texts that are being written go first and together; long feeds would pad all of them to their width.
            self._advance([feed for feed in feeds if len(feed.tokens) == 1])
            # The others come with later steps, as what is being written mustn't wait for all of them.
            self._advance([feed for feed in feeds if len(feed.tokens) > 1][: self._reads])

    def _feed(self, slot: Slot) -> Feed:
        pending = slot.pending
        tokens = pending[: self._chunk]
        whole = len(tokens) == len(pending)
        return Feed(slot, tokens, slot.taken.draft() if whole and self._drafts else [], whole)

    def _advance(self, feeds: list[Feed]) -> None:
        if feeds:
            for feed in halving(self._pass, feeds):
                self._end(feed.slot, no_room())

    def _pass(self, feeds: list[Feed]) -> None:
        for feed, tokens, logits in zip(feeds, *self._next_tokens(feeds), strict=True):
            feed.slot.held += feed.tokens
            if feed.whole:
                self._take(feed, tokens, logits[-len(tokens) :])

    def _next_tokens(self, feeds: list[Feed]) -> tuple[list[list[int]], torch.Tensor]:
        """The tokens that follow each whole feed, and the logits of all feeds (feeds x positions x vocabulary).

        One token follows a feed's own tokens, and one each token of its draft.
        """
        # transformers takes one number for the whole batch.
        kept = 1 + max(len(feed.draft) for feed in feeds)
        logits = self._forward(feeds, kept)
        if not any(feed.whole for feed in feeds):
            return [[] for _ in feeds], logits
        likeliest = logits.argmax(dim=-1).tolist()
        chosen = (_chosen(*each) if each[0].whole else [] for each in zip(feeds, likeliest, logits, strict=True))
        return list(chosen), logits

    def _forward(self, feeds: list[Feed], kept: int) -> torch.Tensor:
        """The logits behind the last `kept` tokens of each feed."""
        batch = Batch(feeds, self._model.device)
        self._cache.show(batch.view())
        shown = self._model(**batch.inputs(), **cached(self._model, self._cache), use_cache=True, logits_to_keep=kept)
        return batch.of_feeds(shown.logits)

    def _take(self, feed: Feed, tokens: list[int], logits: torch.Tensor) -> None:
        """Takes what the model wrote: one token, and more as far as the draft was right.

        logits: a row for each token.
        """
        slot, request = feed.slot, feed.slot.taken
        request.drafted += len(feed.draft)
        # One token more than the draft: the pass that verifies a draft also yields the token behind it.
        for token, row, guess in zip_longest(tokens, logits, feed.draft):
            request.accepted += token == guess
            count = len(request.written) + 1
            if request.take(token, row):
                self._end(slot)
                return
            # What the engine wrote behind the token isn't what the draft has there.
            if token != guess or len(request.written) > count:
                return
            # The pass has computed the keys and values of this token as a part of the draft.
            slot.held.append(token)

    def _end(self, slot: Slot, error: Exception | None = None) -> None:
        request = slot.taken
        rest = rest_of(request, self._context) if self._writes_ahead and error is None else None
        if rest:
            # In the same slot, which holds the prompt and the text already.
            slot.request = rest
        else:
            self._slots.free(slot)
            self._continuations.remember(request)
        if error is None:
            request.finish()
        else:
            request.fail(error)


def _chosen(feed: Feed, likeliest: list[int], logits: torch.Tensor) -> list[int]:
    draw = feed.slot.taken.sampler
    # Only greedy requests have drafts, so that a sampled one always has exactly one token.
    return likeliest[-1 - len(feed.draft) :] if draw.greedy else [draw(logits[-1])]


def _cache(model: Any, rows: int, context: int) -> tuple[RowCache, int]:
    """A cache of that many rows, or of as many as fit a GPU's memory; and their number."""
    shapes = layer_shapes(model, context)
    like: torch.Tensor = next(model.parameters())
    if like.is_cuda:
        # Once the weights are loaded, what is left is for the cache and for the activations of a pass.
        row = sum(shape.numbers for shape in shapes) * context * like.element_size()
        rows = min(rows, fitting_rows(like.device, row, MEMORY_SHARE, context))
    return RowCache(shapes, rows, context, like), rows
