"""Commands are imported when they are called; a worker starts wherever it is called."""

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import typer

from cotrail.cli.lazy_group import COMMANDS, Entry, load, signatures, summaries
from cotrail.common.toml_files import read_toml
from cotrail.models.queries.runs import KEYS
from tests.cases import each_case
from tests.unit.test_house import ROOT

COTRAIL = Path(sys.executable).parent / "cotrail"


@each_case("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_help_of_all_commands_has_the_first_words_of_each_one(entry: Entry) -> None:
    first, *_ = load(entry).help.split("\n\n")
    assert " ".join(first.split()) == summaries([entry])[entry.name]


@each_case("word", ["--help", "--version"])
def test_what_is_asked_first_imports_no_command_and_no_library_of_theirs(word: str) -> None:
    code = f"import sys; sys.argv = ['cotrail', '{word}']; import atexit; atexit.register(lambda: print(*sys.modules))"
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}; from cotrail.cli.main import main; main()"],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(shown.stdout.splitlines()[-1].split())
    assert "cotrail.cli.main" in imported
    assert not imported & {"cotrail.cli.commands." + entry.place.split(":")[0] for entry in COMMANDS}
    assert not imported & {"sqlalchemy", "pydantic_settings", "celery", "alembic", "psycopg", "jinja2", "numpy"}


HEAVY = {"sqlalchemy", "psycopg", "pydantic_settings", "celery", "kombu", "alembic", "jinja2", "numpy", "scipy"}
"""What no help needs."""

OBSERVER = """
import contextlib, json, os, sys
from cotrail.cli.main import app

def complete(words):
    asked = {"_COTRAIL_COMPLETE": "complete_bash", "COMP_WORDS": f"cotrail {words} --", "COMP_CWORD": "2"}
    os.environ |= asked
    with contextlib.suppress(SystemExit):
        app(prog_name="cotrail")
    for name in asked:
        del os.environ[name]

found = {}
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    for words in sys.argv[1:]:
        app([*words.split(), "--help"], standalone_mode=False)
        complete(words)
        found[words] = sorted(sys.modules)
print(json.dumps(found))
"""
"""The modules that a process has once it has shown and completed the options of each command, and of all before it."""


def calls() -> list[str]:
    """Every command, and every command of a group."""
    found = [""]
    for entry in COMMANDS:
        found += [entry.name, *(f"{entry.name} {name}" for name in getattr(load(entry), "commands", ()))]
    return found


def test_the_help_and_the_options_of_a_command_import_little_more_than_the_help_of_all() -> None:
    command = [sys.executable, "-c", OBSERVER, *calls()]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    bound = 2 * len(found[""])
    for words, imported in found.items():
        assert len(imported) < bound, words
        assert not HEAVY.intersection(imported), words


@each_case("entry", COMMANDS, ids=lambda entry: entry.name)
def test_a_signature_is_that_of_the_command(entry: Entry) -> None:
    place, name = entry.place.split(":")
    module = f"cotrail.cli.commands.{place}"
    shown, real = signatures(module, [name])[name], getattr(import_module(module), name)
    if isinstance(real, typer.Typer):
        pairs = zip(shown.registered_commands, real.registered_commands, strict=True)
        functions = [(left.callback, right.callback) for left, right in pairs]
    else:
        functions = [(shown, real)]
    for left, right in functions:
        assert left
        assert right
        assert left.__doc__ == right.__doc__
        assert get_type_hints(left) == get_type_hints(right)
        assert list(inspect.signature(left).parameters) == list(inspect.signature(right).parameters)


def test_the_help_of_runs_names_all_that_they_are_filtered_by() -> None:
    (option,) = (
        each for each in load(next(each for each in COMMANDS if each.name == "runs")).params if each.name == "filters"
    )
    assert all(key in option.help for key in KEYS)


def test_a_worker_imports_nothing_from_the_folder_that_it_is_started_in(tmp_path: Path) -> None:
    for name in ("tasks", "workers", "models", "celery"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('somebody else')\n")
    nowhere = {"COTRAIL_BROKER_URL": "redis://127.0.0.1:1", "COTRAIL_DATABASE_URL": "postgresql://n@127.0.0.1:1/n"}
    environment = {**os.environ, **nowhere, "COTRAIL_HOME": str(tmp_path)}
    environment.pop("PYTHONPATH", None)
    command = [str(COTRAIL), "worker", "retrieval", "--name", "anywhere"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as worker:
        assert worker.stdout is not None
        said = []
        for line in worker.stdout:
            said.append(line)
            if "Cannot connect" in line:
                break
        worker.kill()
    assert "Cannot connect" in said[-1], said
    assert any("anywhere@" in line for line in said)
    assert any("cotrail.retrieve" in line for line in said)


def test_each_description_of_an_option_is_used() -> None:
    files = (ROOT / "cotrail" / "cli" / "commands").glob("*.py")
    used = [place for file in files for place in re.findall(r'\b(?:option|argument)\("([^"]+)"', file.read_text())]
    assert set(used) == set(_places(read_toml(ROOT / "cotrail" / "cli" / "options.toml")))


def _places(table: dict[str, Any]) -> Iterator[str]:
    """The descriptions, by command and name: those tables that have a help."""
    for name, inner in table.items():
        if isinstance(inner, dict):
            yield from ([name] if isinstance(inner.get("help"), str) else [])
            yield from (f"{name}.{each}" for each in _places(inner))
