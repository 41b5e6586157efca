"""Files of weights: whether they are whole, without the library that reads them."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.errors import InputError

_LENGTH_BYTES = 8
"""Of the number that a safetensors file begins with: the length of its header."""

MOST_HEADER_BYTES = 100_000_000
"""The longest header that the library takes."""


class _Tensor(Struct, frozen=True):
    data_offsets: tuple[int, int]


def check_safetensors(path: Path) -> None:
    """Raises InputError where a file is no safetensors file, or ends before its tensors do."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            header = file.read(length) if 0 < length <= MOST_HEADER_BYTES else b""
        described = msgspec.json.decode(header, type=dict[str, Any])
        described.pop("__metadata__", None)
        tensors = msgspec.convert(described, dict[str, _Tensor])
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"the weights {path} can't be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is no safetensors file, or damaged: get the model's files again") from error
    whole = _LENGTH_BYTES + length + max((each.data_offsets[1] for each in tensors.values()), default=0)
    if size < whole:
        raise InputError(
            f"{path} is cut off, as by a download that broke off: it has {size:,} of {whole:,} bytes; get it again"
        )
