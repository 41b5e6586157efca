"""What models on a device share: batches that fit its memory, or are split in halves, and how texts are read."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import torch
from transformers import AutoTokenizer
from transformers.utils import logging

from cotrail.core.ports.language_model import Profile
from cotrail.engines.model_folders import loading
from cotrail.errors import InputError, StepError, TransientStepError

Item = TypeVar("Item")
Out = TypeVar("Out")


def no_room() -> TransientStepError:
    """The error of a request that doesn't fit even alone."""
    return TransientStepError(
        "the device has too little memory for this prompt, even alone: take fewer slots or a shorter context, or leave "
        "the device to this process"
    )


def halving(work: Callable[[list[Item]], None], items: list[Item]) -> list[Item]:
    """Does the work on all items at once or, if memory runs out, on halves of them recursively.

    work: takes all its items or, where it raises torch.OutOfMemoryError, none.
    Returns the items that don't fit even alone.
    """
    if _fits(work, items):
        return []
    if torch.cuda.is_available():
        # Freed blocks of other sizes stay with PyTorch otherwise, and the halves might not fit into them.
        torch.cuda.empty_cache()
    if len(items) == 1:
        return items
    middle = len(items) // 2
    return [*halving(work, items[:middle]), *halving(work, items[middle:])]


def in_batches(
    work: Callable[[list[Item]], None], items: Sequence[Item], size: Callable[[Item], int], most: int
) -> None:
    """Does work in batches of similar length, and in halves of the batches that don't fit into a device's memory.

    work: does all of a batch or, where it raises torch.OutOfMemoryError, nothing; size, most: as in `batches`.
    Raises TransientStepError where an item doesn't fit even alone.
    """
    for batch in batches(items, size, most):
        if halving(work, batch):
            raise TransientStepError(
                "the device has too little memory for this text, even alone: leave the device to this process"
            )


class DeviceReader(Generic[Item, Out]):
    """What models have in common that read texts on a CUDA device or otherwise the CPU, in float32, a call at a time.

    identity: the model's.
    profile: `fast` reads inputs of similar lengths together, as much in one pass as `at_once` says; `deterministic`
        reads one at a time, so that what is read has the same bits whatever other inputs are read with it.
    """

    def __init__(self, identity: str, profile: Profile, at_once: int) -> None:
        self.identity = identity
        self._most = at_once if profile == "fast" else 0
        self._turn = Lock()

    def _read_all(
        self, items: Sequence[Item], size: Callable[[Item], int], read: Callable[[list[Item]], Iterable[Out]]
    ) -> dict[Item, Out]:
        """What is read of each item; size: as in `batches`; read: reads a batch."""
        found: dict[Item, Out] = {}
        in_batches(lambda batch: found.update(zip(batch, read(batch), strict=True)), items, size, self._most)
        return found

    def _check(self, *, finite: bool) -> None:
        if not finite:
            raise StepError(f"{self.identity} returns values that aren't numbers: its weights are broken")


# A function of its own: the error's traceback holds the tensors of the failed attempt, and only once this frame has
# returned can `halving` give their memory back to the device.
def _fits(work: Callable[[list[Item]], None], items: list[Item]) -> bool:
    """Return whether the work was done."""
    try:
        work(items)
    except torch.OutOfMemoryError:
        return False
    return True


# Models of transformers that read two texts at once: how they are loaded, and how much they read.

TOKENS_AT_ONCE = {"cuda": 32_768, "cpu": 2048}
"""Tokens that the profile `fast` reads in one pass, padding included."""

DEFAULT_MOST_TOKENS = 4096
"""The most tokens of a pair where neither model nor tokenizer gives a limit."""


def load(kind: Any, path: Path, what: str) -> tuple[Any, Any]:
    """The model in a folder and its tokenizer, on a CUDA device or otherwise the CPU, in float32.

    kind: the model's class, or one of transformers' that find it; what: the same in words, for messages.
    Raises InputError, NotInstalledError.
    """
    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    with loading("transformers", path):
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        model, info = kind.from_pretrained(path, local_files_only=True, dtype=torch.float32, output_loading_info=True)
    # transformers would initialize missing weights at random, with a mere warning.
    if missing := info["missing_keys"]:
        raise InputError(f"{path} holds no {what}: its weights lack {', '.join(sorted(missing)[:3])}")
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), tokenizer


def load_encoder(kind: Any, path: Path) -> Any:
    """The model of sentence-transformers in a folder, on a CUDA device or otherwise the CPU, in float32.

    kind: its class. Raises InputError, NotInstalledError.
    """
    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with loading("sentence-transformers", path):
        return kind(str(path), device=device, local_files_only=True, model_kwargs={"dtype": torch.float32}).eval()


def most_tokens(model: Any, tokenizer: Any) -> int:
    """The most tokens of a pair."""
    limits = [
        DEFAULT_MOST_TOKENS,
        tokenizer.model_max_length,
        getattr(model.config, "max_position_embeddings", DEFAULT_MOST_TOKENS),
    ]
    for name, layer in model.named_modules():
        if name.endswith("position_embeddings") and getattr(layer, "padding_idx", None) is not None:
            limits.append(layer.num_embeddings - layer.padding_idx - 1)  # RoBERTa's positions begin behind padding's
    return int(min(limits))


def batches(items: Sequence[Item], size: Callable[[Item], int], most: int) -> list[list[Item]]:
    """Splits items, the largest first, into batches of at most `most` once padded to their largest item.

    size: an item's length, in the unit of `most`. An item larger than `most` makes a batch of its own, as all do where
        `most` is 0.
    """
    batched: list[list[Item]] = []
    for item in sorted(items, key=size, reverse=True):
        if batched and (len(batched[-1]) + 1) * size(batched[-1][0]) <= most:
            batched[-1].append(item)
        else:
            batched.append([item])
    return batched
