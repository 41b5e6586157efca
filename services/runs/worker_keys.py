"""Whether workers on other hosts have the keys of a run's served models: they are asked, by the variables' names."""

from collections.abc import Callable, Iterator
from typing import Any

from cotrail.common.humanize import count
from cotrail.configuration.settings import settings
from cotrail.core.actions.registry import carried_out_by
from cotrail.core.binding import Binding
from cotrail.engines.language_models.catalogue import catalogue, find_model
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.providers import provided
from cotrail.errors import InputError
from cotrail.tasks.roll_call import Present, call


def check_worker_keys(app: Callable[[], Any], binding: Binding) -> tuple[str, ...]:
    """Asks the workers of a deployment whether the variables of a run's keys are set; returns what is to be said of it.

    The local stack's have this process's environment, so that `check_key` has told. Takes a few seconds at most, and
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
        engine = find_model(path, name).engine if name in known or provided(name) is not None else None
        if isinstance(engine, Endpoint) and engine.key_variable:
            yield engine.key_variable
