"""What a model is called in a run: its name and a digest of everything that decides its output."""

import hashlib
from functools import lru_cache
from pathlib import Path

from cotrail.errors import InputError


def model_identity(name: str, digest: str) -> str:
    """A name that changes with what is behind it, e.g. `smollm2-135m@1f0c22d3e4a5`."""
    return f"{name}@{digest[:12]}"


def weights_digest(path: Path, context: int) -> str:
    """The SHA-256 over a model file and its context, which decides what of a prompt the model sees."""
    try:
        status = path.stat()
        content = _file_digest(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise InputError(f"the model file {path} can't be read: {error.strerror}") from error
    return hashlib.sha256(f"{content} {context}".encode()).hexdigest()


@lru_cache(maxsize=32)
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:  # noqa: ARG001 - a changed file is read again
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
