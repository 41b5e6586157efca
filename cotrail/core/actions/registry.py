"""Which kinds of actions there are."""

import hashlib
from functools import cache

import msgspec
from msgspec import Struct

from cotrail.common.canonical_json import canonical
from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.kind import Action
from cotrail.core.actions.lookup import Lookup
from cotrail.core.actions.prompted import sampling
from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.binding import Binding

ACTIONS: dict[str, type[Action]] = {
    "retrieve": Retrieve,
    "reason": Reason,
    "read": Read,
    "lookup": Lookup,
    "embed": Embed,
    "entail": Entail,
}
"""Every action by its name in queues, tasks and tables."""


def kind(action: Action) -> str:
    """The action's name, as in `ACTIONS`."""
    return type(action).__name__.lower()


def fingerprint(action: Action, binding: Binding) -> str:
    """The SHA-256 over everything that decides the action's result.

    It covers the kind, the query or the rendered prompt, the models, the sampling and the revisions of what is
    searched; not timeouts, addresses, keys and retry counts, which may change under way.
    """
    return hashlib.sha256(canonical({"kind": kind(action), **_decides(action, binding)})).hexdigest()


def _decides(action: Action, binding: Binding) -> dict[str, object]:
    match action:
        case Retrieve():
            searched = {"query": action.query, "count": action.count, "titles": action.titles, "corpus": binding.corpus}
            return searched | _unusual(action, "scope", "field", "distinct")
        case Reason() | Read():
            return _decides_generation(action, binding)
        case Lookup():
            asked: dict[str, object] = {"source": action.source, "text": action.text, "other": action.other}
            return asked | {"knowledge": binding.knowledge.get(action.source, "")}
        case Embed():
            compared = [paragraph.digest for paragraph in action.paragraphs]
            model = {"embedder": binding.embedder, "profile": binding.profile}
            return {"sentences": action.sentences, "paragraphs": compared, **model}
        case Entail():
            model = {"entailer": binding.entailer, "profile": binding.profile}
            return {"premise": action.premise.digest, "hypothesis": action.hypothesis, **model}
        case _:
            raise TypeError(f"{action!r} is of no known kind")


def _decides_generation(action: Reason | Read, binding: Binding) -> dict[str, object]:
    drawn = sampling(action, binding)
    decides: dict[str, object] = {
        "prompt": action.prompt.digest,
        "until": action.until,
        "max_tokens": action.max_tokens,
        "model": binding.model,
        "profile": binding.profile,
        "temperature": drawn.temperature,
        "seed": drawn.seed,
    }
    split = _unusual(action, "splitter") if isinstance(action, Reason) else {}
    return decides | _unusual(action.prompt, "drop", "pinned_last") | split


def _unusual(value: Struct, *names: str) -> dict[str, object]:
    """Those of the fields that aren't at their defaults: what came later leaves older fingerprints as they are."""
    defaults = _defaults(type(value))
    return {name: getattr(value, name) for name in names if getattr(value, name) != defaults[name]}


@cache
def _defaults(of: type[Struct]) -> dict[str, object]:
    return {field.name: field.default for field in msgspec.structs.fields(of)}
