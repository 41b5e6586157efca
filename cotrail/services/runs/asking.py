"""A question that is asked alone: of what it may be asked, and what it needs in addition to its words."""

import msgspec
from msgspec.structs import replace

from cotrail.errors import InputError
from cotrail.services.access.grants import seen_corpora
from cotrail.services.runs.configuring import configure
from cotrail.services.runs.requests import AskRequest
from cotrail.systems.registry import SYSTEMS, find_system


def with_corpus(request: AskRequest) -> AskRequest:
    """The request with a corpus where its system searches one and none is named: the only one that there is."""
    if request.all_corpora or not configure(find_system(request.system), request).needs.corpus:
        return request
    return replace(request, corpus=_only_corpus())


def converses(request: AskRequest) -> bool:
    """Whether the system's prompts are conversations, to which a question may bring what was said before it."""
    return "turns" in configure(find_system(request.system), request).needs.capabilities


def _only_corpus() -> str:
    names = sorted(seen_corpora().manifests())
    if not names:
        raise InputError("there is no corpus to search; `cotrail index` makes one, and the system `direct` needs none")
    if len(names) > 1:
        raise InputError(f"there are several corpora; name one as `corpus`: {', '.join(names)}")
    return names[0]


# The systems that can be asked a single question without anything else, and the corpora that they may search.


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
