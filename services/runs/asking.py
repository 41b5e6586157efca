"""What a question that is asked alone needs beside its words."""

from msgspec.structs import replace

from cotrail.errors import InputError
from cotrail.services.access.corpora import seen_corpora
from cotrail.services.runs.requests import AskRequest
from cotrail.services.runs.system_settings import configure
from cotrail.systems.registry import find_system


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
