"""Whether workers can carry out a run: what is certain to block it is refused as it is submitted.

The local stack's workers run in this process's environment, so that they lack what it lacks. Where the deployment has a
database of its own (COTRAIL_DATABASE_URL), workers may be on other hosts, and a host that only submits needs none of
their libraries. A model's files are read in either case: its identity is made of them.
"""

import os
from collections.abc import Mapping
from typing import Any

from cotrail.configuration.settings import settings
from cotrail.engines.engine_catalogue import Installable
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.sentence_splitters import check_installed
from cotrail.engines.optional_packages import OnLibrary, check_library
from cotrail.engines.server_address import ServerAddress
from cotrail.errors import InputError, NotInstalledError


def check_model(name: str, model: Installable) -> None:
    """Raises InputError where a language model's files are none of a model, or as `check_here` does."""
    try:
        model.check()
    except NotInstalledError as error:
        _refuse_here(f"the model {name}", error)


def check_key(name: str, model: object) -> None:
    """Raises InputError where the key of a served model isn't set, which the local stack's workers lack too."""
    variable = model.key_variable if isinstance(model, ServerAddress) else None
    if variable and _shares_environment() and not os.environ.get(variable, "").strip():
        raise InputError(
            f"the model {name} needs a key, and the environment variable {variable} isn't set: set it, then run "
            "`cotrail down` and `cotrail up`, since the local stack's workers have the same environment"
        )


def has_batches(model: object) -> bool:
    """Return whether a language model can be asked in batches."""
    return isinstance(model, Endpoint) and model.batch is not None


def check_batches(name: str, model: object) -> None:
    """Raises InputError where a language model can't be asked in batches."""
    if not has_batches(model):
        raise InputError(
            f"the model {name} can't be asked in batches: that needs a provider which offers them, and `batch` in its "
            'table of models.toml ("openai", "anthropic" or "mistral"); or submit the run without --serving batch'
        )


def check_temperature(name: str, model: object, temperature: float) -> None:
    """Raises InputError where a temperature was asked for that a served model isn't sent; 0 asks for greedy texts."""
    if not isinstance(model, Endpoint) or temperature in (0.0, 1.0):
        return
    if "temperature" in model.omits or (model.api == "anthropic" and model.thinking.may_think):
        raise InputError(
            f"the model {name} takes no temperature and writes with its own, which is 1, so that {temperature:g} would "
            "mean nothing: give temperature = 1, or none"
        )


def check_here(what: str, engine: OnLibrary) -> None:
    """Raises InputError where the local stack's workers lack an engine's library; what: the engine's name."""
    try:
        check_library(engine)
    except NotInstalledError as error:
        _refuse_here(what, error)


def check_splitter(settings: Mapping[str, Any]) -> None:
    """Raises InputError where a system's settings name a splitter that the local stack's workers lack."""
    if _shares_environment() and isinstance(splitter := settings.get("splitter"), str):
        check_installed(splitter)


def _refuse_here(what: str, error: NotInstalledError) -> None:
    if _shares_environment():
        raise InputError(
            f"{what} can't run here: {error}. The local stack's workers have the same environment; run "
            "`cotrail down` and `cotrail up` after the installation"
        ) from error


def _shares_environment() -> bool:
    return settings().database_url is None
