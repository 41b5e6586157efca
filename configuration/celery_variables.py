"""Variables by which Celery takes settings from the environment, over those that cotrail makes."""

import logging
import os

PREFIX = "CELERY_"
"""Celery's own: its broker, loader, configuration and result backend, and all options of its commands."""

OTHERS = (
    "APP",
    "BROKER_URL",
    "CONFIG_MODULE",
    "C_STRICT_APP",
    "FORKED_BY_MULTIPROCESSING",
    "LOADER",
    "REMAP_SIGTERM",
    "RESULT_BACKEND",
    "SKIP_CHECKS",
)
"""Those of Celery's command line, of its modules as they are imported, and of billiard."""

logger = logging.getLogger(__name__)


def take_out() -> tuple[str, ...]:
    """Remove these variables from the environment of this process and of those that it starts; returns their names."""
    names = tuple(sorted(name for name in os.environ if name.startswith(PREFIX) or name in OTHERS))
    for name in names:
        del os.environ[name]
    return names


def warn_of(taken_out: tuple[str, ...]) -> None:
    """Log which variables were removed, if any were."""
    if taken_out:
        logger.warning(
            "cotrail leaves out Celery's variables %s, which are meant for another application; COTRAIL_BROKER_URL "
            "names cotrail's Redis",
            ", ".join(taken_out),
        )
