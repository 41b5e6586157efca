"""Identity of a model in a run: its name and a digest of everything that decides its output."""

import hashlib
from functools import lru_cache
from pathlib import Path

from cotrail.errors import InputError

IGNORED_PREFIXES = ("README", "LICENSE", "USE_POLICY", ".")
"""Prefixes of files beside a model that don't affect its output."""


def model_identity(name: str, digest: str) -> str:
    """The identity, e.g. `smollm2-135m@` and a SHA-256, which changes with the files behind the name."""
    return f"{name}@{digest}"


def weights_digest(path: Path, context: int, engine: str = "") -> str:
    """The SHA-256 over a model file, its context and its engine.

    The context counts because it decides how much of a prompt the model sees. Of a folder, all files in it count, under
    their names: weights, configuration and tokenizer.
    engine: empty for llama.cpp, whose digests are older than the other engines.
    """
    try:
        content = _folder_digest(path) if path.is_dir() else content_digest(path)
    except OSError as error:
        raise InputError(f"the model file {path} can't be read: {error.strerror}") from error
    # Stripped, so that digests of llama.cpp's models are those from before there were other engines.
    return hashlib.sha256(f"{content} {context} {engine}".strip().encode()).hexdigest()


def _folder_digest(folder: Path) -> str:
    files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith(IGNORED_PREFIXES))
    return hashlib.sha256("".join(f"{file.name} {content_digest(file)}\n" for file in files).encode()).hexdigest()


def content_digest(path: Path) -> str:
    """The SHA-256 of a file; an unchanged file is read only once."""
    status = path.stat()
    return _file_digest(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=128)
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:  # noqa: ARG001 - a changed file is read again
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
