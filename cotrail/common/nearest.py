"""Names that nobody knows: the known name that was probably meant, and the sentence that says so."""

import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from cotrail.common.printable_text import cut


def slug(name: str) -> str:
    """The words of an error's name, e.g. `unknown-name` of `UnknownNameError`."""
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name.removesuffix("Error"))
    return words.removeprefix("-")


USUAL: dict[str, str] = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
"""What others call it, and its name here: looked at where nothing has a name that is alike."""

LISTS = {"system": "systems", "dataset": "datasets", "model": "models", "corpus": "corpora"}
"""The commands that list what there is."""

LONGEST_NAME = 200
"""Characters of a name that are compared: comparing takes time quadratic in them."""

MOST_LISTED = 16
"""This many names are all listed; more are too long to read."""

EXAMPLE_COUNT = 6
"""Names that are listed of many."""

LEAST_PART = 3
"""A part of this many characters or more stands for the only name that has it."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name that is most like this one, whatever its case; None where none is like it."""
    by_lower_case = {each.lower(): each for each in names}
    given = name[:LONGEST_NAME].lower()
    having = [each for each in by_lower_case if len(given) >= LEAST_PART and given in each]
    usual = USUAL.get(given.replace("_", "-").replace(" ", "-"))
    if usual in by_lower_case:
        return by_lower_case[usual]
    alike = having if len(having) == 1 else get_close_matches(given, by_lower_case, n=1)
    return by_lower_case[alike[0]] if alike else None


def guess(name: str, names: Iterable[str]) -> str:
    """The known name that was probably meant as a remark in brackets; empty where none is like it."""
    meant = nearest(name, names)
    return "" if meant is None else f" (did you mean {meant}?)"


def unknown(what: str, name: str, names: Iterable[str]) -> str:
    """e.g. `there is no dataset 'hotpot' (did you mean hotpotqa?); there are: hotpotqa, musique`."""
    names = tuple(names)
    listed = f"; `cotrail {LISTS[what]}` lists them" if what in LISTS and len(names) > MOST_LISTED else ""
    return f"there is no {what} {cut(name, LONGEST_NAME)!r}{guess(name, names)}{_others(name, names)}{listed}"


def unknown_key(key: str, keys: Iterable[str], where: str = "") -> str:
    """e.g. ``there is no key `limt` in `grid` (did you mean limit?); there are: limit, model``.

    where: what stands behind the key, e.g. `` in `grid` ``.
    """
    names = tuple(keys)
    return f"there is no key `{cut(key, LONGEST_NAME)}`{where}{guess(key, names)}{_others(key, names)}"


def refused_choice(what: str, given: str, choices: Iterable[str]) -> str:
    """e.g. `reader can't be 'coot' (did you mean cot?); there are: cot, direct, none`."""
    names = tuple(choices)
    return f"{what} can't be {cut(given, LONGEST_NAME)!r}{guess(given, names)}{_others(given, names)}"


def _others(name: str, names: tuple[str, ...]) -> str:
    """All names, as far as that helps: of many, some where none is like the given one."""
    if len(names) <= MOST_LISTED:
        return f"; there are: {', '.join(names) or 'none yet'}"
    return "" if nearest(name, names) else f"; there are {len(names)}, such as {', '.join(names[:EXAMPLE_COUNT])}"
