"""Whether workers can carry out a run: what is certain to block it is refused as it is submitted.

The local stack's workers run in this process's environment, so that they lack what it lacks. Where the deployment has a
database of its own (COTRAIL_DATABASE_URL), workers may be on other hosts, and a host that only submits needs none of
their libraries. A model's files are read in either case: its identity is made of them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.optional_packages import OnLibrary, check_library
from cotrail.common.refusals import refusal
from cotrail.common.structs import merged
from cotrail.configuration.settings import settings
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.data.datasets.registry import DATASETS
from cotrail.data.demonstrations.self_written import read_prompts
from cotrail.data.demonstrations.sets import in_form, listed_set, read_demonstrations
from cotrail.engines.engine_catalogue import Installable
from cotrail.engines.language_models.endpoint import Api, Endpoint
from cotrail.engines.language_models.sentence_splitters import check_installed, pinned
from cotrail.engines.server_address import ServerAddress
from cotrail.errors import DemonstrationError, InputError, NotInstalledError
from cotrail.services.runs.requests import RunRequest
from cotrail.systems.parts.prompting import SHORT, short_path
from cotrail.systems.spec import Needs, SystemSpec


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
    check_range(name, model, temperature)
    if "temperature" in model.omits or (model.api == "anthropic" and model.thinking.may_think):
        raise InputError(
            f"the model {name} takes no temperature and writes with its own, which is 1, so that {temperature:g} would "
            "mean nothing: give temperature = 1, or none"
        )


def check_range(name: str, model: object, temperature: object) -> None:
    """Raises InputError where a provider would refuse a temperature with every request."""
    most = _HOTTEST.get(model.api) if isinstance(model, Endpoint) else None
    if most is not None and isinstance(temperature, int | float) and temperature > most:
        raise InputError(
            f"the model {name} takes temperatures up to {most:g}, and {temperature:g} is asked for: give a lower one"
        )


_HOTTEST: Mapping[Api, float] = {"anthropic": 1.0, "gemini": 2.0, "responses": 2.0}
"""The highest temperature that these APIs take, each of which one provider has alone."""


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


# Configuration of a system for one run: every setting spelled out, and what the run then needs.


class ConfiguredSystem(Struct, frozen=True, kw_only=True):
    """A system with the settings of a run; needs: what a run with these settings needs."""

    spec: SystemSpec
    settings: dict[str, Any]
    needs: Needs


def check_answers(spec: SystemSpec) -> None:
    """Raises InputError for a system that answers no questions, but grades the answers of another run."""
    if spec.judges:
        raise InputError(f"the system {spec.name} grades the answers of a run that is there: `cotrail judge RUN`")


def configure(spec: SystemSpec, request: RunRequest, *, instructed: bool = False) -> ConfiguredSystem:
    """The system as the request configures it; arguments and errors are those of `system_settings`."""
    settings = system_settings(spec, request, instructed=instructed)
    if settings.get("reading", {}).get("reader") == "none" and not spec.readerless:
        raise InputError(f'the system {spec.name} answers by its reader: take the reader "direct" or "cot"')
    needs = spec.needs(msgspec.convert(settings, spec.settings))
    return ConfiguredSystem(spec=spec, settings=settings, needs=needs)


def system_settings(spec: SystemSpec, request: RunRequest, *, instructed: bool = False) -> dict[str, Any]:
    """The system's settings with every default spelled out; InputError names a setting that it lacks or refuses.

    Later ones win: the defaults, the request's rules, the dataset's task and questions, `settings`, the fields that are
    short for settings.

    instructed: whether the demonstrations have an instruction before the question.
    """
    defaults: dict[str, Any] = msgspec.to_builtins(spec.settings())
    values = spec.rule_settings(request.rules, instructed=instructed) | _of_dataset(request.dataset, defaults)
    values = merged(merged(values, request.settings), _short_settings(spec, request, defaults))
    resolved = merged(defaults, values)
    try:
        converted = msgspec.convert(resolved, spec.settings)
    except msgspec.ValidationError as error:
        raise InputError(f"settings of {spec.name}: {refusal(error, spec.settings, resolved)}; correct it") from error
    settings = dict(msgspec.to_builtins(spec.spelled_out(converted)))
    # Another version of the splitter may split otherwise, so the run names the one that is installed now.
    return settings | {key: pinned(settings[key]) for key in ("splitter",) if key in settings}


def _of_dataset(name: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """What the dataset's questions are like, for a system that has settings for it."""
    dataset = DATASETS.get(name)
    values = {"task": dataset.task, "questions": dataset.sort} if dataset else {}
    return {setting: value for setting, value in values.items() if value is not None and setting in defaults}


def _short_settings(spec: SystemSpec, request: RunRequest, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are short for settings, in the settings' own tree."""
    values: dict[str, Any] = {}
    for field in SHORT:
        value = getattr(request, field)
        if value is None:
            continue
        path = short_path(field, defaults)
        if path is None:
            raise InputError(f"the system {spec.name} has no {field}; leave it out or take another system")
        values = merged(values, _nested(path, value))
    return values


def _nested(path: tuple[str, ...], value: object) -> dict[str, Any]:
    head, *rest = path
    return {head: _nested(tuple(rest), value) if rest else value}


# Few-shot demonstrations of a run: read from its files, and shown in each form that its system needs.


def read_shown(path: str | None, sets: str | None, number: int | None) -> Demonstrations:
    """The demonstrations of a file that a run shows: all, or the set of that number; none without a file."""
    if sets is None and number is not None:
        raise InputError("a set_number needs sets; name a file of lists of ids, or `released`")
    if path is None:
        return Demonstrations()
    demonstrations = read_demonstrations(Path(path))
    if sets is None:
        return demonstrations
    try:
        return listed_set(demonstrations, sets, number or 1)
    except DemonstrationError as error:
        raise DemonstrationError(f"{path}: {error}") from error


def make_shots(
    needs: Needs, demonstrations: Demonstrations, titles: Demonstrations
) -> dict[AnswerForm, Demonstrations]:
    """The demonstrations in each form that the system shows, its own, and those that name pages, if there are any."""
    return complete_shots(needs, {form: in_form(demonstrations, form) for form in sorted(needs.forms)}, titles)


def read_words(path: str | None, system: ConfiguredSystem) -> dict[AnswerForm, Demonstrations]:
    """The words of prompts that a run brings in a file or a folder; InputError where its system takes none."""
    if path is None:
        return {}
    if not system.needs.words:
        raise InputError("the system takes no prompt of the run's; leave out `prompt`, or give `demonstrations`")
    return {AnswerForm.PROMPT: read_prompts(Path(path), system.needs.words, system.spec.authors_words)}


def complete_shots(
    needs: Needs, demonstrations: dict[AnswerForm, Demonstrations], titles: Demonstrations
) -> dict[AnswerForm, Demonstrations]:
    """The demonstrations given in each form, with the system's own, and those that name pages, if there are any."""
    shots = demonstrations | dict(needs.brought)
    return shots | {AnswerForm.TITLES: titles} if titles.items else shots
