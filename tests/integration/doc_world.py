"""The stack, the corpora and the runs of a reader who follows the documentation's pages."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.stack import Stack
from tests.clusters import lay_cluster
from tests.faults.stacked import QUICK
from tests.integration.doc_files import written
from tests.integration.doc_pages import ROOT, looks_back, modules, python_of, script
from tests.integration.doc_shelf import ASKED, DEVELOPMENT, judge, script_of, write_files
from tests.integration.warmed import Warmed

MODELS = dict.fromkeys(("scripted", "towns", "gpt-5", "openai/gpt-5.1"), "good")
MODELS |= {"weak": "weak", "qwen": "judge", "llama": "judge"}
"""The names that pages have for models, and which script is each here."""

CORPORA = {"mine": "corpus.jsonl", "wiki": "wiki.jsonl", "scifact": "scifact/corpus.jsonl", "sample": "corpus.jsonl"}
CORPORA |= {"hotpotqa": "corpus.jsonl"}
"""The corpora that pages have, and their files."""

RUNS = {
    "baseline": ("ircot", "weak"),
    "ircot-8b": ("ircot", "scripted"),
    "one-step-8b": ("one-step", "scripted"),
    "sampled": ("one-step", "scripted"),
    "strong-ircot": ("ircot", "scripted"),
    "weak-ircot": ("ircot", "weak"),
}
"""Runs that have ended: their systems and models."""

SECONDS = 1500
"""How long a page may take."""

VARIABLES = {"OPENAI_API_KEY": "none", "GPU1_KEY": "none", "BROWSER": "true"}


class World(Struct, frozen=True):
    """Where the reader works; the environment of what is run there; names: what the table of names may take."""

    folder: Path
    environment: dict[str, str]
    names: dict[str, str]

    def run(self, text: str, folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """Runs a shell's script."""
        return subprocess.run(
            ["bash", "-c", text],
            cwd=folder or self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def page(self, page: str) -> "subprocess.CompletedProcess[str]":
        """Runs a page in a folder of its own, on a stack that is up."""
        folder = Path(tempfile.mkdtemp(prefix="page-", dir=self.folder))
        shutil.copytree(self.folder / "files", folder, dirs_exist_ok=True)
        named = re.findall(r'dataset (?:= ")?(\w+)', (ROOT / page).read_text())
        form = next((each for each in named if each in DEVELOPMENT), "hotpotqa")
        (folder / "dev.json").write_text(json.dumps(DEVELOPMENT[form]))
        python = folder / "page.py"
        python.write_text(python_of(page, self.names))
        for name, text in modules(page):
            (folder / name).write_text(text)
        reads = written(page, folder, self.names)
        first = [] if (self.folder / "home" / "run" / ".s.PGSQL.5432").exists() else ["cotrail up"]
        if looks_back(page):
            first += ["cotrail submit run.toml --wait", "cotrail audit verify latest"]  # which waits until it is sealed
        return self.run("\n".join([*first, script(page, self.names, python, reads)]), folder)


@contextmanager
def world() -> Iterator[World]:
    """Everything, up and running; nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="cp-") as made:
        folder = Path(made)
        home = folder / "home"
        for each in (home, folder / "bin", folder / "files"):
            each.mkdir()
        (folder / ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n")
        for name, written_by_it in {"good": script_of(ASKED - 1), "weak": script_of(0), "judge": judge()}.items():
            (home / f"{name}.json").write_text(json.dumps(written_by_it))
        tables = (f'[models."{name}"]\nengine = "scripted"\npath = "{by}.json"\n' for name, by in MODELS.items())
        (home / "models.toml").write_text("".join(tables))
        write_files(folder / "files")
        lay_cluster(home)
        environment = _environment(folder, home)
        warmed = Warmed(folder / "bin", environment)
        try:
            yield _begun(warmed, World(folder, environment, {"home": str(home), "port": _free_port()}))
        finally:
            warmed.close()
            Stack(Settings(home=home, database_url=None, broker_url=None)).remove()


def _environment(folder: Path, home: Path) -> dict[str, str]:
    own = {key: value for key, value in os.environ.items() if not key.startswith("COTRAIL_")}
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    homes = {"HOME": str(folder), "COTRAIL_HOME": str(home), "COTRAIL_MODEL": "scripted", "PATH": path}
    return own | QUICK | VARIABLES | homes


def _free_port() -> str:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return str(bound.getsockname()[1])


def _begun(warmed: Warmed, world: World) -> World:
    installed = Path(sys.executable).with_name("cotrail")
    started = world.run(f"{installed} up --json > up.json")
    assert started.returncode == 0, started.stderr
    warmed.ready()
    lines = ["set -e", "cotrail token create reader --scope admin --json > token.json"]
    lines += [f"cotrail index files/{file} --name {corpus}" for corpus, file in CORPORA.items()]
    lines += [
        f"cotrail submit files/run.toml --system {system} --model {model} --name {name}"
        for name, (system, model) in RUNS.items()
    ]
    lines += [f"cotrail watch {name}" for name in RUNS]
    done = world.run("\n".join(lines))
    assert done.returncode == 0, done.stdout + done.stderr
    world.names["url"] = json.loads((world.folder / "up.json").read_text())["api"]
    secret = json.loads((world.folder / "token.json").read_text())["secret"]
    world.environment.update({"URL": world.names["url"], "COTRAIL_TOKEN": secret, "TEAM_TOKEN": secret})
    return world
