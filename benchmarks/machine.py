"""Description of the machine and the software that a benchmark ran on."""

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def describe() -> dict[str, Any]:
    """Cores, processor, memory in GiB, system, Python, and the name of the first GPU, None where there is none."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": field("/proc/cpuinfo", "model name") or platform.processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "gpu": _gpu(),
    }


def versions(*packages: str) -> dict[str, str | None]:
    """The version of each package, None if it isn't installed."""
    return {package: _version(package) for package in packages}


def command(module: str) -> str:
    """The command that started this process; files by name, without their folders."""
    arguments = [Path(argument).name if argument.startswith(("/", ".")) else argument for argument in sys.argv[1:]]
    return shlex.join(["python", "-m", module, *arguments])


def publish(report: dict[str, Any], output: Path | None) -> None:
    """Write a report into a file, where one is given, and print what it has under `measured`: rows of numbers."""
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    rows = report["measured"]
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(f"{value:,}" for value in row.values()))
    Console().print(table)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def field(path: str, name: str) -> str | None:
    """The value of the first line `name: value` in a file of /proc; None where there is none."""
    for line in Path(path).read_text().splitlines():
        field, _, value = line.partition(":")
        if field.strip() == name:
            return value.strip()
    return None


def _gpu() -> str | None:
    command = shutil.which("nvidia-smi")
    if command is None:
        return None
    asked = [command, "--query-gpu=name", "--format=csv,noheader"]
    names = subprocess.run(asked, capture_output=True, check=False, text=True).stdout.splitlines()
    return names[0] if names else None
