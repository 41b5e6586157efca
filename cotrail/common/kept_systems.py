"""Where the texts of systems are kept that runs brought in files; who knows the home says so as it starts."""

from pathlib import Path

FOLDERS: list[Path] = []
"""The folders in which they are looked for by their digests."""
