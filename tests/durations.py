"""How long each module of tests takes: shown at the end, and the order of the next run.

Test processes share modules, longest first, so that none is left running alone at the end. How long each took is kept
in the cache (`tests.cache`); `durations.json` beside this file has it for a machine where no run was made yet.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from random_order.config import Config  # type: ignore[import-untyped]
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.cache import FOLDER

LAST = FOLDER / "durations.json"
FIRST = Path(__file__).with_name("durations.json")

TOGETHER = (
    ("integration/test_elasticsearch.py", "integration/test_search_indexes.py"),
    (
        "integration/test_asking.py",
        "integration/test_searchain_experiment.py",
        "faults/test_account_limits.py",
        "faults/test_cancelling.py",
    ),
)
"""Modules that one process runs, as they use what is started once a process: search servers, and a leased stack."""

UNITS = {f"tests/{module}": f"tests/{modules[0]}" for modules in TOGETHER for module in modules}

SHOWN = 25
"""How many of the longest modules are shown."""

_seconds: dict[str, float] = defaultdict(float)


def known() -> dict[str, float]:
    """The seconds that each module took when it was last run."""
    return {name: seconds for file in (FIRST, LAST) if file.exists() for name, seconds in _read(file).items()}


class Sharing(LoadFileScheduling):  # type: ignore[misc]
    """Hands out modules, and those that belong together at once, in the order in which they are collected."""

    def _split_scope(self, nodeid: str) -> str:
        return UNITS.get(_module(nodeid), _module(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Sharing | None:
    config.option.loadscopereorder = False
    return Sharing(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if Config(config).is_enabled:
        return
    units: dict[str, float] = defaultdict(float)
    for module, seconds in known().items():
        units[UNITS.get(module, module)] += seconds
    items.sort(key=lambda item: -units[UNITS.get(_module(item.nodeid), _module(item.nodeid))])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[_module(report.nodeid)] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _seconds:
        return
    longest = sorted(_seconds.items(), key=lambda each: -each[1])
    terminalreporter.section(f"seconds by module, of {sum(_seconds.values()):,.0f} in all test processes")
    for name, seconds in longest[:SHOWN]:
        terminalreporter.write_line(f"{seconds:7.1f} {name}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput") or not _seconds:
        return  # the process that the others report to has it all
    FOLDER.mkdir(parents=True, exist_ok=True)
    last = _read(LAST) if LAST.exists() else {}
    new = {name: round(seconds, 1) for name, seconds in _seconds.items()}
    beside = LAST.with_suffix(".new")
    beside.write_text(json.dumps(last | new, indent=0, sort_keys=True))
    beside.replace(LAST)


def _module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _read(file: Path) -> dict[str, float]:
    return {str(name): float(seconds) for name, seconds in json.loads(file.read_text()).items()}
