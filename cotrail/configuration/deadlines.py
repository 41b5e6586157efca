"""How long executions may take by the kinds of their steps, those of extensions included."""

from cotrail.common.nearest import unknown
from cotrail.configuration.settings import Settings
from cotrail.core.actions.registry import KINDS
from cotrail.errors import InputError


def check_deadlines(settings: Settings) -> None:
    """Raises InputError where a deadline is set for a kind that there isn't; extensions have to be loaded before."""
    if missing := [kind for kind in settings.deadlines if kind not in KINDS]:
        raise InputError(
            "the environment variable COTRAIL_DEADLINES can't be used: "
            f"{unknown('kind of step', missing[0], KINDS)}; correct it or unset it"
        )


def deadline_of(kind: str, settings: Settings) -> float:
    """How many seconds the execution of a step of that kind may take."""
    return settings.deadlines.get(kind, KINDS[kind].deadline)
