"""Folders that settings name."""

import os
import unicodedata
from pathlib import Path


def on_one_line(text: str) -> str:
    """Raise ValueError where a text holds line breaks, other control characters, or bytes that aren't UTF-8."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise ValueError("it holds a line break, another control character, or bytes that aren't UTF-8")
    return text


def check_folder(path: Path) -> Path:
    """The absolute path of a folder, which needn't exist yet; ValueError where it can't be one or can't be read."""
    on_one_line(str(path))
    try:
        folder = path.expanduser().absolute()
        there = next(each for each in (folder, *folder.parents) if each.exists())
    except (OSError, RuntimeError) as error:
        raise ValueError(f"it can't be looked at ({getattr(error, 'strerror', None) or error})") from None
    if not there.is_dir():
        raise ValueError(f"{there} is a file; name a folder")
    if not os.access(there, os.R_OK | os.X_OK):
        raise ValueError(f"{there} can't be read by this user; change its permissions or name another folder")
    return folder
