"""The files that the documentation's pages show, read by what reads them in the product."""

import re
import shlex
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cotrail.configuration.files import read_sign_in, read_webhooks
from cotrail.engines.retrieval.search_server import read_search_file
from cotrail.services.runs.experiments import read_experiment_file
from tests.integration.doc_pages import DATA, SHELL, Block, Command, as_here, blocks, commands, runnable, tables

NAMED = re.compile(r"\A# ([a-z_]+\.toml)\b")

READ: dict[str, Callable[[Path], object]] = {
    "search.toml": read_search_file,
    "service.toml": read_sign_in,
    "webhooks.toml": read_webhooks,
}
"""Files of a home that are read in this process."""

HOME_FILES = {
    "servers.toml": {"servers"},
    "search.toml": {"servers", "index", "corpora", "mcp", "web"},
    "service.toml": {"sign_in"},
    "webhooks.toml": {"webhooks"},
    "models.toml": {"models", "embedders", "entailers", "extractors", "raters"},
}
"""The tables of the files of a home."""


def written(page: str, folder: Path, names: dict[str, str]) -> list[Command]:
    """Writes the files of a page into a folder, reads those of a home, and returns the commands that read others."""
    reads = []
    for block in runnable(page, *DATA):
        shown = next((each for each in tables().files if each.page == page and each.has in block.text), None)
        name = shown.file if shown else _name(block)
        text = (shown.before if shown else "") + as_here(page, block.text, names)
        path = folder / (f"home-{block.line}" if name == "models.toml" else "") / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        given = shown.read if shown else ""
        try:
            reads += [Command(place=block.place, text=each) for each in _reads(page, path, given, names)]
        except Exception as error:
            error.add_note(f"at {block.place}")
            raise
    return reads


def _name(block: Block) -> str:
    """The name of a file that its block tells: in its first line, or by its tables."""
    assert block.language == "toml", f"{block.place}: the table `files` has to say what this is"
    if named := NAMED.match(block.text):
        return named[1]
    keys = set(tomllib.loads(block.text))
    if "token_variable" in block.text:
        return "servers.toml"
    home = [name for name, known in HOME_FILES.items() if keys <= known and name != "servers.toml"]
    assert home or "system" in keys, f"{block.place}: the table `files` has to say what this is"
    return home[0] if home else "run.toml"


def _reads(page: str, path: Path, given: str, names: dict[str, str]) -> list[str]:
    """Reads a file here, or returns the commands that do, unless the page has one itself."""
    if given:
        return [given]
    if path.name in READ:
        READ[path.name](path)
        return []
    if path.name == "servers.toml":
        shutil.copy(path, names["home"])
        return []
    if path.name == "models.toml":
        sound = "jq -e '[.. | .state? // empty] | length > 0 and all(. != \"malformed\")'"
        return [f"COTRAIL_MODEL=smollm2-135m COTRAIL_HOME=$PWD/{path.parent.name} cotrail models --json | {sound}"]
    keys: dict[str, Any] = tomllib.loads(path.read_text())
    if "datasets" in keys:
        read_experiment_file(path)
        return []
    if not {"system", "question_budget"} & keys.keys():
        return []
    used = any(path.name in each.text for block in blocks(page) if block.language in SHELL for each in commands(block))
    return [] if used else [f"cotrail submit {shlex.quote(path.name)} --estimate"]
