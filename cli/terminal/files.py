"""Files that commands write for people."""

from pathlib import Path

from cotrail.errors import InputError


def write_text(path: Path, text: str, advice: str) -> None:
    """Writes text in UTF-8; InputError, with the advice, where the file can't be written."""
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); {advice}") from error
