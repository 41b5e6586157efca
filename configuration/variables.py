"""Variables named COTRAIL_ that no setting has, which are most likely misspelt."""

import logging
import os
from collections.abc import Iterable

from cotrail.common.nearest import nearest

PREFIX = "COTRAIL_"

OTHERS = (
    "FILES",
    "FLOWER_ADDRESS",
    "FLOWER_PASSWORD",
    "FLOWER_PORT",
    "FLOWER_USER",
    "LOG",
    "LOG_FILES",
    "LOG_SIZE",
    "POSTGRES_PASSWORD",
    "READY_FILE",
    "REDIS_PASSWORD",
    "SERVER",
    "TOKEN",
    "UID",
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
