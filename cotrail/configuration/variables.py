"""Variables named COTRAIL_ that no setting has, which are most likely misspelt."""

import logging
import os
import re
from collections.abc import Iterable

from msgspec import Struct

from cotrail.common.nearest import nearest

PREFIX = "COTRAIL_"

STACK = f"{PREFIX}STACK"
"""The variable that tells the service of a local stack which stack that is."""

STACK_HEADER = "Cotrail-Stack"
"""The header of its probes that has the same id."""

OTHERS = (
    *("FILES", "FLOWER_ADDRESS", "FLOWER_PASSWORD", "FLOWER_PORT", "FLOWER_USER", "LOG", "LOG_FILES", "LOG_SIZE"),
    *("POSTGRES_PASSWORD", "READY_FILE", "REDIS_PASSWORD", "SERVER", "STACK", "TOKEN", "UID", "WANTED"),
)
"""Variables that aren't settings: those of docker-compose.yml, of Flower, and of the processes of the stack."""

LIMITS = ("_CPUS", "_MEMORY")
"""How the limits of a service end in docker-compose.yml, after its name."""

logger = logging.getLogger(__name__)


def warn_of_unknown(settings: Iterable[str]) -> None:
    """Log a warning for each variable of the environment that is neither a setting nor one of the others."""
    names = [*(name.upper() for name in settings), *OTHERS]
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


CELERY = Foreign(
    owner="variables of Celery's",
    # Its broker, loader, configuration and result backend, and all options of its commands.
    prefix="CELERY_",
    # Those of its command line, of its modules as they are imported, and of billiard.
    names=frozenset(
        {"APP", "BROKER_URL", "CONFIG_MODULE", "C_STRICT_APP", "FORKED_BY_MULTIPROCESSING", "LOADER"}
        | {"REMAP_SIGTERM", "RESULT_BACKEND", "SKIP_CHECKS"}
    ),
    instead="COTRAIL_BROKER_URL names cotrail's Redis",
)
LIBPQ = Foreign(
    owner="variables of libpq's",
    # Those that lead to another server than the address names, or change a session. Who connects and how safely
    # (PGPASSFILE, PGSSLMODE and the like) stays the user's to say.
    names=frozenset(
        {"PGCLIENTENCODING", "PGDATESTYLE", "PGGEQO", "PGHOSTADDR", "PGLOADBALANCEHOSTS", "PGOPTIONS", "PGSERVICE"}
        | {"PGSERVICEFILE", "PGSYSCONFDIR", "PGTARGETSESSIONATTRS", "PGTZ"}
    ),
    instead="COTRAIL_DATABASE_URL names cotrail's PostgreSQL, and may hold such options",
)
_SERVICE_LINK = re.compile(
    r"COTRAIL_(\w{1,100}_)?(PORT=(tcp|udp|sctp)://.*|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=.*"
    r"|SERVICE_(HOST|PORT(_\w{1,100})?)=.*)"
)
KUBERNETES = Foreign(
    owner="service links of Kubernetes'",
    written=_SERVICE_LINK,
    instead="`enableServiceLinks: false` in the pod's specification spares it them",
)


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
