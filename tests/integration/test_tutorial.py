"""The tutorial, followed to the letter: each block of commands is run as it stands in the page."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.stack import Stack

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_block_of_the_tutorial_runs_and_what_it_promises_is_there() -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text())
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        home = Path(folder, "home")
        environment = {
            "HOME": folder,
            "COTRAIL_HOME": str(home),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        try:
            printed = [_run(block, Path(folder), environment) for block in blocks]
        finally:
            Stack(Settings(home=home, database_url=None, broker_url=None)).remove()
        assert (Path(folder) / "cotrail-island" / "report" / "report.html").is_file()
    assert len(blocks) == 6
    started, traced, verified, stopped = printed[2:]
    assert re.findall(r"(?m)^\$ .*cotrail (\w+)", started) == ["index", "up", "experiment", "experiment"]
    assert "Which to take" in started
    assert "Where was the engineer of the Sollen lighthouse born?" in traced
    assert "as it was recorded" in verified
    assert "Stopped." in stopped


def _run(block: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(["sh", "-e", "-c", block], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    return done.stdout
