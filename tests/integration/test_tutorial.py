"""The tutorial, followed to the letter: each block of commands, and each cell of its notebook, is run as it stands."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.stack import Stack

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_block_of_the_tutorial_runs_and_what_it_promises_is_there() -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text())
    with _home() as (folder, environment):
        printed = [_run(block, folder, environment) for block in blocks]
        assert (folder / "cotrail-island" / "report" / "report.html").is_file()
    assert len(blocks) == 6
    started, traced, verified, stopped = printed[2:]
    assert re.findall(r"(?m)^\$ .*cotrail (\w+)", started) == ["index", "up", "experiment", "experiment"]
    assert "Which to take" in started
    assert "Where was the engineer of the Sollen lighthouse born?" in traced
    assert "as it was recorded" in verified
    assert "Stopped." in stopped


def test_every_cell_of_the_notebook_runs() -> None:
    cells = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text())["cells"]
    written = [
        cell["cell_type"] == "code" and ("".join(cell["source"]), cell["outputs"], cell["execution_count"])
        for cell in cells
    ]
    code = [cell for cell in written if cell]
    assert all((outputs, count) == ([], None) for _, outputs, count in code)  # as it is to be found by a newcomer
    with _home() as (folder, environment):
        script = "\n".join(source for source, *_ in code) + "\nassert verified.findings == ()\n"
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"(?m)^ircot +\d+\.\d% ", done.stdout)
    assert "How many people live in the only village of Vessel? -> " in done.stdout
    assert "q2 | retrieve | many people live in the only village of Vessel?" in done.stdout


BROKEN = """
import cotrail

def odd(question):
    found = yield from cotrail.search(question.text)
    return cotrail.Answer(text={"who?": "Aune", "what?": "Aune"}[question.text])

ended = cotrail.run(odd, ["who?", "bad?", "what?"], corpus=[{"text": "Something."}])
print([each.answer for each in ended], sum(each.failure is not None for each in ended), file=__import__("sys").stderr)
cotrail.run(odd, ["who?"], corpus=[{"text": "Something."}], at_once=0)
"""
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_a_system_of_ones_own_is_asked_scored_and_tested_as_its_page_and_its_notebook_have_it() -> None:
    blocks = PYTHON.findall((ROOT / "docs" / "own-systems.md").read_text())
    cells = json.loads((ROOT / "docs" / "own-systems.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "code"]
    assert code == blocks
    html = "print(asked._repr_html_())\nprint(rows)\n"
    with _home() as (folder, environment):
        done = subprocess.run(
            [sys.executable, "-c", "".join(code) + html], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "searched for &lt;q dir=" in done.stdout
        assert "Marit Aune was a composer" not in done.stdout.partition("<iframe")[0]
        refused = _refused(folder, environment, "import cotrail; cotrail.ask('ircto', 'Where?')")
        broken = _refused(folder, environment, BROKEN)
    assert "did you mean ircot?" in refused
    assert "['Aune', '', 'Aune'] 1" in broken


def test_importing_it_costs_nothing_and_what_it_has_is_there() -> None:
    loaded = "import cotrail, sys; print(len({'torch', 'celery', 'sqlalchemy', 'msgspec'} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", loaded], text=True) == "0\n"
    listed = "import cotrail; print([getattr(cotrail, name) for name in cotrail.__all__])"
    assert subprocess.run([sys.executable, "-c", listed], capture_output=True, check=False).returncode == 0


def _refused(folder: Path, environment: dict[str, str], code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


@contextmanager
def _home() -> Iterator[tuple[Path, dict[str, str]]]:
    """An empty folder to work in, and the environment of somebody who has never used cotrail."""
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        home = Path(folder, "home")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        try:
            yield Path(folder), {"HOME": folder, "COTRAIL_HOME": str(home), "PATH": path}
        finally:
            Stack(Settings(home=home, database_url=None, broker_url=None)).remove()


def _run(block: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(["sh", "-e", "-c", block], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    return done.stdout
