"""Words of prompts that a run brings in place of its system's own.

A text file has one prompt; in a folder each file `NAME.txt` has the prompt of that name; a JSON file has an object of
texts by name, as ReAct's authors have theirs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from cotrail.common.placeholders import places
from cotrail.common.printable_text import storable
from cotrail.common.text_files import MAX_SMALL_FILE_BYTES, read_text
from cotrail.core.demonstrations import Demonstrations, whole_prompts
from cotrail.errors import DemonstrationError


def read_prompts(path: Path, own: Mapping[str, str], authors: Mapping[str, str]) -> Demonstrations:
    """Read the prompts of a file or a folder; DemonstrationError says what is wrong with one of them.

    own: the system's own words by name, of which a text file replaces the first that asks the question; each place in
    these, such as `{question}`, stands once in what replaces them.
    authors: the names of prompts by their keys in the authors' file.
    """
    texts = {name: text.strip("\n") for name, text in _texts(path, _main(own), authors).items() if name in own}
    if not texts:
        raise DemonstrationError(f"{path} has no prompt of the system; it has {', '.join(own)}")
    for name, text in texts.items():
        _check(f"{path}: the prompt {name}" if len(own) > 1 else str(path), text, places(own[name]))
    return whole_prompts(texts)


def _main(own: Mapping[str, str]) -> str:
    return next((name for name, words in own.items() if "{question}" in words), next(iter(own)))


def _texts(path: Path, main: str, authors: Mapping[str, str]) -> dict[str, str]:
    if path.is_dir():
        return {file.stem: _text(file) for file in sorted(path.glob("*.txt"))}
    if path.suffix != ".json":
        return {main: _text(path)}
    keyed = {key: text for key, text in _object(path).items() if isinstance(text, str)}
    return {authors.get(key, key): text for key, text in keyed.items()}


def _object(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(_text(path), type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DemonstrationError(f"{path} isn't a JSON object of prompts by name: {error}") from error


def _text(path: Path) -> str:
    return read_text(path, DemonstrationError, MAX_SMALL_FILE_BYTES)


def _check(name: str, text: str, wanted: tuple[str, ...]) -> None:
    if not text.strip():
        raise DemonstrationError(f"{name} is empty; write the words of the prompt")
    if storable(text) != text:
        raise DemonstrationError(f"{name} holds characters that can't be stored")
    for place in wanted:
        if (times := text.count(place)) != 1:
            raise DemonstrationError(f"{name} has {times} times {place}; write it once, where that stands")
