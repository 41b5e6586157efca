"""The build backend (PEP 517): setuptools', once the modules of the clients are written.

So a wheel, an sdist and an editable installation have them, and git doesn't.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from setuptools import build_meta
from setuptools.build_meta import get_requires_for_build_editable as get_requires_for_build_editable
from setuptools.build_meta import get_requires_for_build_sdist as get_requires_for_build_sdist
from setuptools.build_meta import get_requires_for_build_wheel as get_requires_for_build_wheel
from setuptools.build_meta import prepare_metadata_for_build_editable as prepare_metadata_for_build_editable
from setuptools.build_meta import prepare_metadata_for_build_wheel as prepare_metadata_for_build_wheel

P = ParamSpec("P")

NEEDED = (
    "cotrail's client is written from its operations, which import this: without build isolation, first install what "
    "[build-system] in pyproject.toml requires"
)


def _once_written(build: Callable[P, str]) -> Callable[P, str]:
    @wraps(build)
    def hook(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            from building.clients import write
        except ModuleNotFoundError as error:
            error.add_note(NEEDED)
            raise
        write()
        return build(*args, **kwargs)

    return hook


build_editable = _once_written(build_meta.build_editable)
build_sdist = _once_written(build_meta.build_sdist)
build_wheel = _once_written(build_meta.build_wheel)
