"""A run as it is resolved: its system with every setting spelled out, and all else that its request names."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.refusals import refusal
from cotrail.common.structs import merged, nested
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.money import Prices
from cotrail.core.ports.encoders import RELEVANCE_RATER
from cotrail.core.ports.language_model import Profile
from cotrail.core.questions import Question
from cotrail.data.datasets.registry import DATASETS
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.language_models.catalogue import ModelSpec
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.sentence_splitters import pinned
from cotrail.errors import InputError
from cotrail.services.runs.requests import RunRequest
from cotrail.systems.parts.prompting import SHORT, short_path
from cotrail.systems.registry import find_system
from cotrail.systems.spec import Needs, SystemSpec


class ConfiguredSystem(Struct, frozen=True, kw_only=True):
    """A system with the settings of a run, every one spelled out; needs: what a run with these settings needs."""

    spec: SystemSpec
    settings: dict[str, Any]
    needs: Needs


RoleEngine = ModelSpec | NamedEngine[Any]
"""What a run has for a role: a language model, or an engine of another kind."""


class ResolvedRun(Struct, frozen=True, kw_only=True):
    """A request, and all that it names as it was found.

    engines: of the roles that the system needs, by role, language models among them.
    prices: of all hosted models, by role; None where nobody says it.
    corpora: their revisions by their stored names. shots: the demonstrations in each form that the system shows.
    questions: none where another run's are asked. missing_gold: how many of their gold paragraphs the corpora lack.
    """

    request: RunRequest
    system: ConfiguredSystem
    model: ModelSpec
    profile: Profile
    engines: Mapping[str, RoleEngine]
    prices: Prices
    corpora: Mapping[str, str]
    shots: dict[AnswerForm, Demonstrations]
    questions: tuple[Question, ...] = ()
    missing_gold: int = 0


def has_batches(model: object) -> bool:
    """Return whether a language model can be asked in batches."""
    return isinstance(model, Endpoint) and model.batch is not None


def find_answering(name: str) -> SystemSpec:
    """The newest system of this name; InputError where it answers no questions, but grades those of another run."""
    spec = find_system(name)
    if spec.judges:
        raise InputError(f"the system {spec.name} grades the answers of a run that is there: `cotrail judge RUN`")
    return spec


def configure(spec: SystemSpec, request: RunRequest, *, instructed: bool = False) -> ConfiguredSystem:
    """The system as the request configures it; arguments and errors are those of `system_settings`."""
    settings = system_settings(spec, request, instructed=instructed)
    if settings.get("reading", {}).get("reader") == "none" and not spec.readerless:
        raise InputError(f'the system {spec.name} answers by its reader: take the reader "direct" or "cot"')
    needs = spec.needs(msgspec.convert(settings, spec.settings))
    if needs.corpus and request.rerank is not None:
        needs = replace(needs, engines=tuple(dict.fromkeys((*needs.engines, RELEVANCE_RATER))))
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
        values[".".join(path)] = value
    return nested(values)
