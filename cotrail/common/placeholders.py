"""Places in words, such as `{question}`, in which values are put."""

import re
from collections.abc import Iterator

_PLACE = re.compile(r"\{[a-z_]{1,40}\}")


def places(words: str) -> tuple[str, ...]:
    """The places in these words, each once, with their brackets."""
    return tuple(dict.fromkeys(_PLACE.findall(words)))


def split(words: str) -> Iterator[str]:
    """The words cut before and behind each place: pieces that are a place alone, and those that have none."""
    end = 0
    for match in _PLACE.finditer(words):
        yield words[end : match.start()]
        yield match[0]
        end = match.end()
    yield words[end:]
