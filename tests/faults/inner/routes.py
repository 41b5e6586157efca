"""Separate ports for each of a stack's workers to its servers."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

NAME = "routes.json"


def write(home: Path, ports: Mapping[str, Mapping[str, int]]) -> None:
    """Makes workers use these ports for their servers: by worker, then by server."""
    (home / "inner").mkdir(exist_ok=True)
    (home / "inner" / NAME).write_text(json.dumps(ports))


def install(path: Path, name: str) -> None:
    """Sets this process's own ports in its environment, if there are any."""
    ports = json.loads(path.read_text()).get(name) if path.exists() else None
    if ports:
        os.environ["COTRAIL_DATABASE_URL"] = f"postgresql://postgres@127.0.0.1:{ports['postgres']}/cotrail"
        os.environ["COTRAIL_BROKER_URL"] = f"redis://127.0.0.1:{ports['redis']}/0"
    if ports and "search" in ports:
        os.environ["COTRAIL_SEARCH_URL"] = f"http://127.0.0.1:{ports['search']}"
