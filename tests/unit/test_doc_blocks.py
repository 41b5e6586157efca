"""Blocks of the documentation: commands and their options are there, Python compiles, and TOML can be read."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from typer.core import TyperGroup

from cotrail.cli.lazy_group import COMMANDS, load
from tests.cases import each_case

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "systems").glob("*.md"))]
BLOCK = re.compile(r"^```(console|bash|python|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ENTRIES = {each.name: each for each in COMMANDS}


def blocks(page: Path, *languages: str) -> Iterator[str]:
    yield from (text for language, text in BLOCK.findall(page.read_text("utf-8")) if language in languages)


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each call of cotrail, up to what a shell makes of the line."""
    for block in blocks(page, "console", "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line.strip(), posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            try:
                words = list(lexer)
            except ValueError:  # a quotation over several lines
                continue
            ends = [n for n, word in enumerate(words) if set(word) <= set("|;&<>()")]
            words = words[: ends[0]] if ends else words
            if words[:1] == ["cotrail"]:
                yield words[1:]


def wrong(words: list[str]) -> str:
    """What of a call isn't there; empty where all is."""
    words = words[2:] if words[:1] == ["--server"] else words
    names = [word for word in words if not word.startswith("-")]
    if not names or names[0] not in ENTRIES:
        return "" if not names else f"there is no command {names[0]}"
    command, rest = load(ENTRIES[names[0]]), words[words.index(names[0]) + 1 :]
    while isinstance(command, TyperGroup) and rest and rest[0] in command.commands:
        command: Any = command.commands[rest[0]]  # type: ignore[no-redef]
        rest = rest[1:]
    options = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}
    given = [word.partition("=")[0] for word in rest if re.fullmatch(r"--[a-z][a-z-]*(=.*)?", word)]
    return next((f"{names[0]} has no {each}" for each in given if each not in options), "")


@each_case("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_of_a_page_is_there(page: Path) -> None:
    assert [(words, said) for words in commands(page) if (said := wrong(words))] == []


@each_case("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_python_and_toml_can_be_read(page: Path) -> None:
    for text in blocks(page, "python"):
        if text.startswith("# cotrail/"):  # lines of a system, which another test holds to the code
            continue
        # A part of a function as well: the steps of a system, say.
        kind = "async def" if "await " in text else "def"
        compile(f"{kind} page():\n{indent(dedent(text), '    ')}\n    pass\n", str(page), "exec")
    for text in blocks(page, "toml"):
        tomllib.loads(text)
