"""Makes clients of the description by public generators, in a folder with a program that asks by each."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec import Struct

HERE = Path(__file__).parent
DESCRIPTION = HERE.parents[1] / "docs" / "openapi-3.1.json"

SECONDS = 300

COMPILED = (
    "--strict",
    "--skipLibCheck",
    "--target",
    "es2022",
    "--lib",
    "es2022,dom,dom.iterable",
    "--module",
    "commonjs",
)
"""How TypeScript is read and written: every type of the generated client is checked."""


class Made(Struct, frozen=True):
    """A client: the names of its operations, and the command of the program that asks by it."""

    operations: frozenset[str]
    command: tuple[str | Path, ...]


def python_client(folder: Path) -> Made:
    """A client in Python, by openapi-python-client; a warning fails, since it leaves out what it warns of."""
    programs = _generator("python/bin/openapi-python-client").parent
    shutil.copy(HERE / "ask.py", folder)
    options = ("--meta", "none", "--fail-on-warning", "--config", HERE / "openapi_python_client.yaml")
    made = ("--path", DESCRIPTION, "--output-path", folder / "generated")
    run(programs / "openapi-python-client", "generate", *made, *options)
    modules = (folder / "generated" / "api").glob("*/*.py")
    return Made(
        frozenset(path.stem for path in modules if path.stem != "__init__"), (programs / "python", folder / "ask.py")
    )


def typescript_client(folder: Path) -> Made:
    """A client in TypeScript, by openapi-ts, compiled to be carried out by Node."""
    programs = _generator("node_modules/.bin/openapi-ts").parent
    shutil.copy(HERE / "ask.ts", folder)
    (folder / "node_modules").symlink_to(programs.parent)
    run(
        programs / "openapi-ts",
        "-i",
        DESCRIPTION,
        "-o",
        folder / "generated",
        "-c",
        "@hey-api/client-fetch",
        "--silent",
    )
    run(
        programs / "tsc",
        *COMPILED,
        "--typeRoots",
        programs.parent / "@types",
        "--outDir",
        folder / "compiled",
        folder / "ask.ts",
    )
    exported = re.findall(
        r"^export const (\w+) =", (folder / "generated" / "sdk.gen.ts").read_text("utf-8"), re.MULTILINE
    )
    return Made(frozenset(exported), ("node", folder / "compiled" / "ask.js"))


def run(*command: str | Path) -> str:
    """Run a program to its end; returns what it prints, and fails with all of it."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{command[0]}:\n{done.stdout}{done.stderr}"
    return done.stdout


def _generator(name: str) -> Path:
    """A generator in the folder into which .ci/run installs them."""
    folder = os.environ.get("TEST_GENERATORS")
    if not folder or not (Path(folder) / name).exists():
        pytest.skip(f"TEST_GENERATORS names no folder with {name}, as .ci/run makes it")
    return Path(folder) / name
