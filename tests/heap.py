"""Collections of garbage leave alone what was imported and collected: it stays as long as the process does.

Without this, each looks at millions of objects, which takes a second and more.
"""

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
