"""Filters by metadata of paragraphs, in Lucene's syntax: `year:[2000 TO 2010] AND lang:(en OR de)`.

An index names its fields and their kinds as it is built. Dates are words in the form of ISO 8601, in whose order they
are: `date:<2012-01-01`. What a filter leaves out is left out before hits are ranked, and scores stay as they are.
"""

import re
from collections.abc import Mapping
from typing import Literal

from cotrail.errors import InputError, StepError

Kind = Literal["word", "number"]
"""A field's kind: words are compared as they are written, and ordered by their characters."""

Fields = dict[str, Kind]

LONGEST = 10_000
"""Characters of a filter at most."""

TAKEN = frozenset({"id", "title", "text", "whole_title", "paragraph", "embedding", "vector"})
"""Names of fields that indexes have already."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.){0,1000}+"')
_NAMED = re.compile(r"(?<![\w.])([A-Za-z_][\w.]{0,100}+):")
_NEGATION = re.compile(r"\bNOT\b|!")


def check_fields(fields: Mapping[str, Kind]) -> None:
    """Raises InputError for a name that no field can have."""
    for name in fields:
        if name in TAKEN or not _NAME.fullmatch(name):
            raise InputError(
                f"a field can't be named {name!r}: take small letters, digits and _, and no name that paragraphs have"
            )


def check_filter(filter_: str, fields: Mapping[str, Kind]) -> str:
    """The filter; raises StepError where it is too long, or names a field that the index lacks.

    A negation within AND or OR is written with `-`: engines disagree on NOT there.
    """
    if len(filter_) > LONGEST:
        raise StepError(f"a filter has {LONGEST:,} characters at most")
    outside, there = _QUOTED.sub("", filter_), ", ".join(fields) or "none"
    if _NEGATION.search(outside):
        raise StepError("a filter has no NOT; write `-field:value` behind what is wanted, or behind `*`")
    if unknown := [name for name in _NAMED.findall(outside) if name not in fields]:
        raise StepError(
            f"the corpus has no field {unknown[0]!r} to filter by; there are: {there} (`cotrail index --field`)"
        )
    if not fields:
        raise StepError("the corpus has no fields to filter by; index it with `--field NAME`")
    return filter_
