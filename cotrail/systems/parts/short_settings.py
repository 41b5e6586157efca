"""Fields of a request that are short for settings of its system, and where systems have these."""

from collections.abc import Mapping
from typing import Any

SHORT: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "reader": (("reading", "reader"),),
    "retrieval_count": (("retrieval", "retrieval_count"), ("retrieval_count",), ("search", "count")),
    "max_sentences": (("max_sentences",),),
    "task": (("task",),),
    "chains": (("chains",),),
    "variant": (("variant",),),
}
"""The fields, each with the paths where systems have it; the first counts."""


def short_path(field: str, settings: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Where a system with these settings has what the field is short for; None where it has no such setting."""
    return next((path for path in SHORT[field] if _has(settings, path)), None)


def _has(tree: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    head, *rest = path
    return head in tree and (not rest or _has(tree[head], tuple(rest)))
