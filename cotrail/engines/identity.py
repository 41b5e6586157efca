"""What a model is called in a run: its name and a digest of everything that decides its output."""

import hashlib
from functools import lru_cache
from pathlib import Path

from cotrail.common.short_digests import shortened
from cotrail.errors import InputError

ASIDE = ("README", "LICENSE", "USE_POLICY", ".")
"""How the names of files begin that lie beside a model and decide nothing of its output."""


def model_identity(name: str, digest: str) -> str:
    """A name that changes with what is behind it: `smollm2-135m@` and the SHA-256 of that."""
    return f"{name}@{digest}"


def is_pinned(found: str, pinned: str) -> bool:
    """Whether a model is the one whose identity was pinned.

    Former versions pinned twelve digits of each digest; their runs and experiments can't ask for more.
    """
    return pinned in (found, shortened(found))


def weights_digest(path: Path, context: int, engine: str = "") -> str:
    """The SHA-256 over a model file, its context, which decides what of a prompt the model sees, and its engine.

    Of a folder, all files in it count, under their names: weights, configuration and tokenizer.
    engine: empty for llama.cpp.
    """
    try:
        content = _folder_digest(path) if path.is_dir() else content_digest(path)
    except OSError as error:
        raise InputError(f"the model file {path} can't be read: {error.strerror}") from error
    return hashlib.sha256(f"{content} {context} {engine}".strip().encode()).hexdigest()


def _folder_digest(folder: Path) -> str:
    files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith(ASIDE))
    return hashlib.sha256("".join(f"{file.name} {content_digest(file)}\n" for file in files).encode()).hexdigest()


def content_digest(path: Path) -> str:
    """The SHA-256 of a file, which is read again only where it changed."""
    status = path.stat()
    return _file_digest(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=128)
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:  # noqa: ARG001 - a changed file is read again
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
