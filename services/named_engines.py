"""Engines of further roles, which a run has to name: what each is for, and the identity that the run pins."""

from pathlib import Path
from typing import Any

from cotrail.core.binding import PINNED_ROLES, PinnedRole
from cotrail.engines.evidence_models import EvidenceSpec
from cotrail.engines.extraction.catalogue import find_extractor
from cotrail.engines.rating.catalogue import find_rater
from cotrail.errors import InputError
from cotrail.services.requests import RunRequest
from cotrail.services.runnable import check_here
from cotrail.systems.spec import Needs

_WORK: dict[PinnedRole, str] = {
    "extractor": "reads answers out of paragraphs",
    "duplicate_rater": "looks for questions that ask the same",
    "relevance_rater": "scores how far texts answer",
}


def named_in(request: RunRequest) -> dict[PinnedRole, str]:
    """The names that a request gives, by role."""
    named = {role: getattr(request, role) for role in PINNED_ROLES}
    return {role: name for role, name in named.items() if name is not None}


def pin_named(needs: Needs, request: RunRequest, path: Path) -> dict[str, str]:
    """The identities of the engines that a request names, by role; path: the catalogue's.

    Raises InputError where it lacks one or names one too many, UnknownNameError, NotInstalledError.
    """
    named = named_in(request)
    for role in PINNED_ROLES:
        if role in needs.roles and role not in named:
            raise InputError(
                f"with these settings the system {request.system} {_WORK[role]}: name its `{role}`, a built-in one or "
                f"one of the tables `[{_table(role)}.NAME]` of models.toml"
            )
        if role in named and role not in needs.roles:
            raise InputError(f"with these settings the system {request.system} needs no {role}: name none")
    return {role: _identity(role, name, path) for role, name in named.items()}


def _identity(role: PinnedRole, name: str, path: Path) -> str:
    found: EvidenceSpec[Any] = find_extractor(path, name) if role == "extractor" else find_rater(path, name)
    check_here(f"the {role} {name}", found.engine)
    return found.identity()


def _table(role: PinnedRole) -> str:
    return "extractors" if role == "extractor" else "raters"
