"""The systems that can be asked a single question without anything else, and the corpora that they may search."""

import msgspec

from cotrail.services.access.corpora import seen_corpora
from cotrail.systems.registry import SYSTEMS, find_system


def askable_systems() -> list[tuple[str, bool]]:
    """Their names, and whether each searches a corpus; with default settings they need no further engine or source."""
    found = []
    for name in dict.fromkeys(spec.name for spec in SYSTEMS):
        spec = find_system(name)
        needs = spec.needs(msgspec.convert(msgspec.to_builtins(spec.settings()), spec.settings))
        is_whole = not (needs.evidence or needs.knowledge) and all(role.has_default for role in needs.engines)
        if is_whole and not spec.judges:
            found.append((name, needs.corpus))
    return found


def corpus_names() -> list[str]:
    """The names of the corpora."""
    return sorted(seen_corpora().manifests())
