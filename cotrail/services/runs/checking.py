"""The third stage of a submission: what is certain to block a run is refused before anything is written.

The local stack's workers run in this process's environment, so that they lack what it lacks. Where the deployment has a
database of its own (COTRAIL_DATABASE_URL), workers may be on other hosts, and a host that only submits needs none of
their libraries. A model's files are read in either case: its identity is made of them.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from difflib import SequenceMatcher
from typing import Any, get_args

from msgspec.structs import replace

from cotrail.common.humanize import count
from cotrail.common.optional_packages import OnLibrary, check_library
from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import settings
from cotrail.core.actions.registry import carried_out_by
from cotrail.core.binding import Binding, filter_of
from cotrail.core.generation import Capability
from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.retriever import SearchRequest
from cotrail.core.questions import GoldParagraph
from cotrail.core.search_ways import SearchWay
from cotrail.engines.engine_catalogue import Installable, NamedEngine
from cotrail.engines.language_models.catalogue import (
    ModelSpec,
    catalogue,
    check_capabilities,
    check_profile,
    check_thinking,
    find_model,
)
from cotrail.engines.language_models.endpoint import Api, Endpoint
from cotrail.engines.language_models.providers import provided
from cotrail.engines.language_models.sentence_splitters import check_installed
from cotrail.engines.server_address import ServerAddress
from cotrail.errors import InputError, NotInstalledError, StepError, UnknownNameError
from cotrail.services.runs.configuring import ResolvedRun, has_batches
from cotrail.systems.registry import SYSTEMS
from cotrail.tasks.broker_health import Present, call


def checked(run: ResolvedRun) -> ResolvedRun:
    """The run, where its workers can carry it out; raises InputError and its kinds, NotInstalledError."""
    request, model = run.request, run.model
    check_splitter(run.system.settings)
    _check_search_way(run)
    _check_evidence(run)
    _check_language_model(model, run.profile, frozenset())
    try:
        check_capabilities(model, run.system.needs.capabilities)
    except InputError as error:
        with suppress(InputError):  # where what it lacks can't be read, that is what the error says
            nearest = _nearest(run)
            error = InputError(f"{error}. The system {request.system} needs that; {nearest} doesn't")
        raise error from None
    check_temperature(model.name, model.engine, request.temperature)
    check_range(model.name, model.engine, run.system.settings.get("temperature"))
    if request.serving == "batch":
        check_batches(model.name, model.engine)
    _check_engines(run)
    _check_money(run)
    return run


def _check_evidence(run: ResolvedRun) -> None:
    """Raises InputError where no question has the paragraphs that its dataset names as evidence, and a system's to."""
    if not run.system.needs.evidence or not run.questions:
        return
    if not any(isinstance(each, GoldParagraph) for question in run.questions for each in question.evidence):
        raise InputError(
            f'{run.request.questions}: knowledge = ["evidence"] looks at the paragraphs that the dataset names as '
            "evidence, and the corpus has none of them: search StrategyQA's own (`cotrail index "
            'strategyqa_train_paragraphs.json --name evidence`), or set evidence = "pages" to search the pages of '
            "those titles"
        )


def _check_search_way(run: ResolvedRun) -> None:
    """Raises InputError where the run says how its corpora are searched, and one can't be searched so."""
    way, store = run.request.search_way, corpora_of(settings())
    if way != SearchWay() and not run.system.needs.corpus:
        raise InputError(
            f"with these settings {run.request.system} searches no corpus: leave out `retriever`, `filter` and `rerank`"
        )
    filters = {filter_of(way.filter, each.kinds, each.id): f" for question {each.id}" for each in run.questions}
    for name in run.corpora if way.options else ():
        with suppress(UnknownNameError):  # a fork of a run whose corpus was removed takes over what was found there
            corpus = store.open(name)
            for filter_, asked in (filters or {filter_of(way.filter, None): ""}).items():
                try:
                    options = replace(way, filter=filter_).options
                    corpus.search(SearchRequest(query="", count=0, options=options))
                except StepError as error:
                    where = asked if filter_ != way.filter else ""
                    raise InputError(f"the corpus {name} can't be searched so{where}: {error}{way.advice}") from error


def _check_engines(run: ResolvedRun) -> None:
    """Raises InputError where the request names too many engines, or one can't be loaded or do what is asked of it."""
    if unneeded := sorted(run.request.engines.keys() - run.engines.keys()):
        raise InputError(f"with these settings the system {run.request.system} needs no {unneeded[0]}: name none")
    for role in run.system.needs.engines:
        engine = run.engines[role.name]
        if isinstance(engine, NamedEngine):
            engine.check_profile(run.profile)
            check_here(f"the {role.name} {engine.name}", engine.engine)
            check_key(engine.name, engine.engine)
        else:
            _check_language_model(engine, run.profile, role.capabilities)


def _check_language_model(model: ModelSpec, profile: Profile, capabilities: frozenset[Capability]) -> None:
    """Raises InputError where a language model can't be loaded, or can't do what a run asks of it."""
    check_model(model.name, model.engine)
    check_key(model.name, model.engine)
    check_thinking(model)
    check_profile(model, profile)
    check_capabilities(model, capabilities)


def _nearest(run: ResolvedRun) -> str:
    """The system most like the run's of those that the model has the capabilities for. Raises InputError."""
    lacking = {each for each in get_args(Capability) if run.model.engine.lacks(each) is not None}
    needed = run.system.needs
    needs = {spec.name: spec.needs(spec.settings()) for spec in SYSTEMS if not spec.judges}
    fitting = [name for name, each in needs.items() if not lacking & each.capabilities]

    def likeness(name: str) -> tuple[bool, int, float]:
        each, similar = needs[name], SequenceMatcher(None, name, run.request.system).ratio()
        return each.corpus == needed.corpus, -len(set(each.engines) ^ set(needed.engines)), similar

    return max(fitting, key=likeness)


def _check_money(run: ResolvedRun) -> None:
    """Raises InputError where money is limited and a price isn't known."""
    budgets = run.request.budgets
    limited = budgets.question.money is not None or budgets.run.money is not None
    if limited and (not run.prices or None in run.prices.values()):
        raise InputError(
            "a budget of money needs the prices of all hosted models, and there are none: give their tables in "
            "models.toml a `price`, or limit tokens"
        )


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


# Whether workers on other hosts have the keys of a run's served models: they are asked, by the variables' names.


def check_worker_keys(app: Callable[[], Any], binding: Binding) -> tuple[str, ...]:
    """Asks the workers of a deployment whether the variables of a run's keys are set; returns what is to be said of it.

    The local stack's have this process's environment, so that `check_key` has said. Takes a few seconds at most, and
    none where no model needs a key. app: makes the Celery app.
    Raises InputError where workers generate and none of them has a key.
    """
    wanted = tuple(dict.fromkeys(_key_variables(binding)))
    if not wanted or settings().database_url is None:
        return ()
    present = call(app(), settings().broker, wanted).present
    generating = [each for each in present if set(each.kinds) & set(carried_out_by("generation"))]
    if not generating:
        names = " and ".join(wanted)
        return (f"no worker that generates answers, so it isn't known whether {names} is set where they start",)
    return tuple(filter(None, (_note(variable, generating) for variable in wanted)))


def _note(variable: str, generating: list[Present]) -> str:
    """What is to be said where some of these workers lack a variable; InputError where all do."""
    lacking = [each for each in generating if variable not in each.variables]
    hosts = ", ".join(sorted({each.host for each in lacking}))
    if len(lacking) == len(generating):
        raise InputError(
            f"the environment variable {variable}, which holds the key of a model, isn't set in any worker that "
            f"generates ({count(len(generating), 'worker')} on {hosts}): set it where they start, start them again, "
            "then submit again"
        )
    if not lacking:
        return ""
    return (
        f"{variable} isn't set in {len(lacking)} of {count(len(generating), 'worker')} that generate ({hosts}): a step "
        "of this model that one of them takes blocks its question"
    )


def _key_variables(binding: Binding) -> Iterator[str]:
    """The variables of the keys of all language models that a run pins."""
    path = settings().catalogue_path
    known = catalogue(path)
    for identity in (binding.model, *binding.pins.values()):
        name = identity.rpartition("@")[0]
        # A pin may be that of an engine of another kind, whose name a malformed table of a model has too.
        listed = known[name] if name in known else find_model(path, name) if provided(name) is not None else None
        engine = listed and listed.engine
        if isinstance(engine, Endpoint) and engine.key_variable:
            yield engine.key_variable
