"""The blocks of the documentation's pages, and scripts of a shell that run them."""

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from textwrap import dedent

from msgspec import Struct, convert
from msgspec.structs import replace

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
"""Pages that are written from the code where the site is built (`building.references`)."""

WRITTEN = (path for path in (ROOT / "docs").rglob("*.md") if REFERENCE not in path.parents)
PAGES = sorted(["README.md", *(str(path.relative_to(ROOT)) for path in WRITTEN)])

SHELL = ("console", "bash", "sh")
DATA = ("toml", "json", "yaml", "csv")
SERVE = ("serve", "serve-corpus", "mcp")
"""Commands that end when they are interrupted."""

BEGIN = r"cotrail (submit|ask|start|demo)\b"
"""Commands that begin a run."""

UNTIL_IT_SERVES = Path(__file__).with_name("until_it_serves.py")

SHOWN = ("text", "mermaid")
"""Languages of blocks that nothing reads."""

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
MODULE = re.compile(r"# ([a-z_]+\.py)\n")
TABLES = Path(__file__).with_suffix(".toml")


class Left(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What isn't run of a page: the commands with these words in them, or the block of another language; and why."""

    page: str
    has: str
    why: str


class Named(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands for something of the reader's own on a page, and what it is here."""

    shown: str
    here: str
    page: str = ""


class File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that a page shows with these words in it: its name, what is before it in the file, and what reads it."""

    page: str
    has: str
    file: str
    before: str = ""
    read: str = ""


class Elsewhere(Struct, frozen=True, forbid_unknown_fields=True):
    """The languages of a page's blocks that another module of tests runs."""

    languages: tuple[str, ...]
    test: str


class Tables(Struct, frozen=True, forbid_unknown_fields=True):
    """What the pages' blocks need to be known of them."""

    left: tuple[Left, ...]
    named: tuple[Named, ...]
    files: tuple[File, ...]
    elsewhere: dict[str, Elsewhere]


class Block(Struct, frozen=True, kw_only=True):
    """A block of a page; line: that of its first line."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return f"{self.page}:{self.line}"


class Command(Struct, frozen=True, kw_only=True):
    """A command of a shell; place: where it is in its page; refused: whether the page shows how it is refused."""

    place: str
    text: str
    refused: bool = False


@cache
def tables() -> Tables:
    """The tables."""
    return convert(tomllib.loads(TABLES.read_text()), Tables)


@cache
def blocks(page: str) -> tuple[Block, ...]:
    """The blocks of a page."""
    text = (ROOT / page).read_text()
    return tuple(
        Block(page=page, line=text.count("\n", 0, found.start()) + 2, language=found[1], text=dedent(found[2]))
        for found in FENCE.finditer(text)
    )


def commands(block: Block) -> Iterator[Command]:
    """The commands of a block, each with all its lines; where some have a prompt before them, the others are output."""
    lines = block.text.splitlines()
    prompted = any(line.startswith("$ ") for line in lines)
    begun: list[str] = []
    refusals = {number - 1 for number, line in enumerate(lines, block.line) if line.startswith("cotrail: ")}
    for number, line in enumerate(lines, block.line):
        if not begun:
            if not line.strip() or (prompted and not line.startswith("$ ")):
                continue
            begun, place = [line.removeprefix("$ ")], f"{block.page}:{number}"
        else:
            begun.append(line)
        if _is_whole("\n".join(begun)):
            yield Command(place=place, text="\n".join(begun), refused=number in refusals)
            begun = []
    assert not begun, f"{block.place}: a command has no end"


@cache
def _is_whole(text: str) -> bool:
    """Return whether a shell waits for no further line."""
    if text.endswith("\\"):
        return False
    if not re.search(r"<<|'|\"|\(|\b(do|then)\b|\{", text):
        return True
    read = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True)
    return read.returncode == 0 and not read.stderr


def looks_back(page: str) -> bool:
    """Return whether a page asks for the latest run before it has submitted one."""
    all_texts = (command.text for block in blocks(page) for command in _commands_of(block))
    texts = [each for each in all_texts if left_out(page, each) is None]
    begun = next((place for place, each in enumerate(texts) if re.match(BEGIN, each)), len(texts))
    return any("latest" in each for each in texts[: begun + 1])


def left_out(page: str, text: str) -> Left | None:
    """What says that a command, or a block of another language, isn't run."""
    return next((each for each in tables().left if each.page == page and each.has in text), None)


def as_here(page: str, text: str, names: dict[str, str]) -> str:
    """A text of a page with what is here in place of the reader's own; names: those that are known once all is up."""
    for each in tables().named:
        if each.page in ("", page):
            text = text.replace(each.shown, each.here.format(**names))
    return text


def script(page: str, names: dict[str, str], python: Path, reads: Sequence[Command]) -> str:
    """A shell's script of a page's commands, its SQL and its Python, which is in this file.

    reads: further commands, which read the files that the page shows.
    """
    carried_out = []
    last = next((each for each in reversed(runnable(page, "python"))), None)
    for block in blocks(page):
        here = [each for each in _commands_of(block) if left_out(page, each.text) is None]
        carried_out += [replace(each, text=as_here(page, each.text, names)) for each in here]
        if block is last:
            carried_out.append(Command(place=block.place, text=f"python {shlex.quote(str(python))}"))
    ends = bool(carried_out) and carried_out[-1].text.startswith("cotrail down")
    return as_script([*carried_out[:-1], *reads, carried_out[-1]] if ends else [*carried_out, *reads])


def as_script(carried_out: Sequence[Command]) -> str:
    """A shell's script of commands: it says which fail, and goes on."""
    lines = ["set -u -o pipefail", "failed=0", "trap 'echo \"FAILED at $AT: exit code $?\" >&2; failed=1' ERR"]
    for each in carried_out:
        lines += [f"AT={each.place}", *_carried_out(each)]
    return "\n".join([*lines, "exit $failed", ""])


def is_elsewhere(block: Block) -> bool:
    """Return whether another module of tests runs a block."""
    other = tables().elsewhere.get(block.page)
    return other is not None and block.language in other.languages


def _carried_out(command: Command) -> list[str]:
    """The lines of a script for a command: one that serves is ended as soon as it does."""
    text = command.text
    if command.refused:
        return [f"if {text}", "then false", "fi"]
    words = text.split()
    serves = words[:1] == ["cotrail"] and words[1] in SERVE
    return [f"python {UNTIL_IT_SERVES} {text}"] if serves else [text]


def _commands_of(block: Block) -> Iterator[Command]:
    if is_elsewhere(block):
        return
    if block.language in SHELL:
        yield from commands(block)
    elif block.language == "sql":
        yield Command(place=block.place, text=f"cotrail sql {shlex.quote(block.text)}")


def runnable(page: str, *languages: str) -> list[Block]:
    """The blocks of a page in these languages that are run here; lines that are shown of a file aren't."""
    return [
        each
        for each in blocks(page)
        if each.language in languages
        and not each.text.startswith("# cotrail/")
        and not (each.language == "python" and MODULE.match(each.text))
        and not is_elsewhere(each)
        and left_out(page, each.text) is None
    ]


def modules(page: str) -> Iterator[tuple[str, str]]:
    """The files of Python that a page shows for its commands, by their names."""
    for block in blocks(page):
        if block.language == "python" and (named := MODULE.match(block.text)):
            yield named[1], block.text


def python_of(page: str, names: dict[str, str]) -> str:
    """The blocks of Python of a page as one program, whose tracebacks name the page's lines."""
    lines = ["namespace = {'__name__': '__main__'}"]
    for block in runnable(page, "python"):
        text = "\n" * (block.line - 1) + as_here(page, block.text, names)
        lines.append(f"exec(compile({text!r}, {page!r}, 'exec'), namespace)")
    return "\n".join(lines)
