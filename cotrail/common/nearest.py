"""Names that nobody knows: the known name that was probably meant, and the sentence that says so."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_NAME = 200
"""Characters of a name that are compared: comparing takes time quadratic in them."""

PART = 3
"""A part of this many characters or more stands for the only name that has it."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, whatever its case; None where none is like it."""
    names = {each.lower(): each for each in known}
    given = name[:LONGEST_NAME].lower()
    having = [each for each in names if len(given) >= PART and given in each]
    alike = having if len(having) == 1 else get_close_matches(given, names, n=1)
    return names[alike[0]] if alike else None


def guess(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant as a remark in brackets; empty where none is like it."""
    meant = nearest(name, known)
    return "" if meant is None else f" (did you mean {meant}?)"


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """e.g. `there is no dataset 'hotpot' (did you mean hotpotqa?); there are: hotpotqa, musique`."""
    names = tuple(known)
    return f"there is no {what} {name!r}{guess(name, names)}; there are: {', '.join(names) or 'none yet'}"


def refused_choice(what: str, given: str, choices: Iterable[str]) -> str:
    """e.g. `reader can't be 'coot' (did you mean cot?); there are: cot, direct, none`."""
    known = tuple(choices)
    return f"{what} can't be {given!r}{guess(given, known)}; there are: {', '.join(known)}"
