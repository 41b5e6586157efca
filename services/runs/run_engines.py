"""The engines of a run's roles: those that a request names or the default ones, checked and identified."""

from msgspec import Struct

from cotrail.configuration.settings import settings
from cotrail.core.generation import Capability
from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.role import EngineRole
from cotrail.engines.language_models.catalogue import (
    ModelSpec,
    check_capabilities,
    check_profile,
    find_model,
    identity,
)
from cotrail.engines.models_file import LANGUAGE_MODEL
from cotrail.engines.registry import find_engine
from cotrail.errors import InputError
from cotrail.services.runs.requests import RunRequest
from cotrail.services.runs.runnable import check_here, check_model
from cotrail.systems.spec import Needs


class RunEngine(Struct, frozen=True, kw_only=True):
    """The engine that a run has for a role: its name and identity.

    note: why it stands in for the paper's; empty where it doesn't.
    served: whether it doesn't compute in the worker, if it is a language model.
    """

    name: str
    identity: str
    note: str = ""
    served: bool = True


def choose_engines(needs: Needs, request: RunRequest, model: ModelSpec, profile: Profile) -> dict[str, RunEngine]:
    """The engine of each role that the system needs, by the role.

    model: the run's own language model. Raises InputError where the request names too few or too many,
    UnknownNameError, NotInstalledError.
    """
    if unneeded := sorted(request.engines.keys() - {role.name for role in needs.engines}):
        raise InputError(f"with these settings the system {request.system} needs no {unneeded[0]}: name none")
    return {role.name: _choose(role, request, model, profile) for role in needs.engines}


def check_language_model(model: ModelSpec, profile: Profile, capabilities: frozenset[Capability]) -> None:
    """Raises InputError where a language model can't be loaded, or can't do what a run asks of it."""
    check_model(model)
    check_profile(model, profile)
    check_capabilities(model, capabilities)


def _choose(role: EngineRole, request: RunRequest, model: ModelSpec, profile: Profile) -> RunEngine:
    name = request.engines.get(role.name)
    if name is None and not role.has_default:
        raise InputError(
            f"with these settings the system {request.system} {role.work}: name its `{role.name}`, a built-in one or "
            f"one of the tables `[{role.kind}s.NAME]` of models.toml"
        )
    if role.kind == LANGUAGE_MODEL:
        entry = model if name is None else find_model(settings().catalogue_path, name)
        check_language_model(entry, profile, role.capabilities)
        return RunEngine(name=entry.name, identity=identity(entry), served=entry.engine.served)
    engine = find_engine(settings().catalogue_path, role.kind, name)
    check_here(f"the {role.name} {engine.name}", engine.engine)
    return RunEngine(name=engine.name, identity=engine.identity(identity(model)), note=engine.instead)
