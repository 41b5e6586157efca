"""Checks of what people write: the same for questions and for paragraphs."""

import re

from cotrail.common.refusals import shown
from cotrail.common.text_files import MAX_ID_BYTES, MAX_PARAGRAPH_CHARACTERS
from cotrail.errors import InputError

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def check_id(id_: str, place: str, error: type[InputError]) -> None:
    """Raise the error where an id is empty, too long for an index of the database, or not on one line."""
    if not id_.strip():
        raise error(f"{place}: the id is empty; give each record its own")
    if (size := len(id_.encode())) > MAX_ID_BYTES:
        raise error(f"{place}: the id has {size:,} bytes, and at most {MAX_ID_BYTES:,} are taken; shorten it")
    if _CONTROL.search(id_):
        raise error(f"{place}: the id {shown(id_)} holds a line break or another control character; take it out")


def check_text(text: str, what: str, place: str, error: type[InputError]) -> None:
    """Raise the error where a text is empty or too long; what: its name in the error, e.g. `question`."""
    if not text.strip():
        raise error(f"{place}: the {what} is empty; fill it in or take the record out")
    check_length(len(text), what, place, error)


def check_length(characters: int, what: str, place: str, error: type[InputError]) -> None:
    """Raise the error where a text of so many characters is too long."""
    if characters > MAX_PARAGRAPH_CHARACTERS:
        most = f"{MAX_PARAGRAPH_CHARACTERS:,}"
        raise error(f"{place}: the {what} has {characters:,} characters, and {most} is the most; divide it")
