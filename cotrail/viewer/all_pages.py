"""All pages of the viewer."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from cotrail.viewer.page import PAGES as _PAGES
from cotrail.viewer.page import Page

MODULES = ("ask", "comparisons", "corpora", "experiments", "questions", "run", "workers")
"""The modules of `cotrail.viewer.pages`."""

for _module in MODULES:
    import_module(f"cotrail.viewer.pages.{_module}")

PAGES: Mapping[str, Page[..., Any]] = _PAGES
