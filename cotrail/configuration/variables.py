"""Variables named COTRAIL_ that no setting has, which are most likely misspelt."""

import logging
import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.nearest import nearest

PREFIX = "COTRAIL_"

STACK = f"{PREFIX}STACK"
"""The variable that tells the service of a local stack which stack that is."""

STACK_HEADER = "Cotrail-Stack"
"""The header of its probes that has the same id."""

LIMITS = ("_CPUS", "_MEMORY")
"""How the limits of a service end in docker-compose.yml, after its name."""

_TABLE: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

logger = logging.getLogger(__name__)


def warn_of_unknown(settings: Iterable[str]) -> None:
    """Log a warning for each variable of the environment that is neither a setting nor one of the others."""
    names = [*(name.upper() for name in settings), *_TABLE["others"]]
    for variable in sorted(os.environ):
        name = variable.upper().removeprefix(PREFIX)
        if variable.upper().startswith(PREFIX) and name not in names and not name.endswith(LIMITS):
            meant = nearest(name, names)
            hint = f"; did you mean {PREFIX}{meant}?" if meant else "; unset it"
            logger.warning("cotrail has no setting %r, so this variable changes nothing%s", variable, hint)


# Variables of others: that libraries read over what cotrail sets, or that have the names of its settings.


class Foreign(Struct, frozen=True, kw_only=True):
    """Somebody's variables: those with a prefix, those by name, and those that are written in a way (`NAME=VALUE`).

    instead: what cotrail reads in their place, or how they are left out.
    """

    owner: str
    names: frozenset[str] = frozenset()
    prefix: str | None = None
    written: re.Pattern[str] | None = None
    instead: str

    def holds(self, name: str) -> bool:
        """Return whether a variable of the environment is one of these."""
        if name in self.names or (self.prefix is not None and name.startswith(self.prefix)):
            return True
        return self.written is not None and self.written.fullmatch(f"{name}={os.environ[name]}") is not None


_FOREIGN = msgspec.convert(_TABLE["foreign"], dict[str, Foreign])
_SERVICE_LINK = re.compile(_TABLE["service_link"])
CELERY, LIBPQ = _FOREIGN["celery"], _FOREIGN["libpq"]
KUBERNETES = replace(_FOREIGN["kubernetes"], written=_SERVICE_LINK)

_taken_out: dict[Foreign, list[str]] = {}


def take_out(*kinds: Foreign) -> None:
    """Remove such variables from the environment of this process and of those that it starts.

    To be called before a library that reads them is imported or used: some do so at once.
    """
    for kind in kinds:
        for name in sorted(filter(kind.holds, os.environ)):
            del os.environ[name]
            _taken_out.setdefault(kind, []).append(name)


def warn_of_taken_out(*kinds: Foreign) -> None:
    """Log which of these kinds of variables were removed since the last time, if any were."""
    for kind in kinds:
        if names := _taken_out.pop(kind, None):
            logger.warning(
                "cotrail leaves out %s, which are meant for others (%s); %s", kind.owner, ", ".join(names), kind.instead
            )
