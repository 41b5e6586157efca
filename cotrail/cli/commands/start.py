"""`cotrail start`: from own documents, own questions and a model to a table that says what helps, in one command.

`cotrail sample` writes the bundled sample as files to start from.
"""

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tomli_w
import typer
from msgspec import Struct
from msgspec.structs import replace
from platformdirs import user_data_path
from rich.console import Console
from rich.text import Text

import cotrail
from cotrail.cli.request_options import Json, argument, option
from cotrail.cli.terminal.output import console, in_json, make_folder, write_text
from cotrail.configuration.settings import settings
from cotrail.core.ports.language_model import Profile
from cotrail.core.questions import Paragraph
from cotrail.data.corpora.document_names import files_in
from cotrail.data.datasets.loading import load_questions
from cotrail.engines.retrieval.manifest import checked_name
from cotrail.errors import InputError
from cotrail.services.library.corpora import list_corpora
from cotrail.services.library.models import check_model, keyed_providers
from cotrail.systems import own
from cotrail.systems.registry import SYSTEMS

BUNDLED = "sample"
"""Stands for the documents, and for the questions, of `cotrail sample`."""

QUESTION_COUNT = 20
"""The largest number of questions that are asked without --limit."""

RETRIEVAL_COUNT = 4
"""The number of paragraphs of each search: prompts stay short enough for small models."""

_OTHER = re.compile(r"[^a-z0-9]+")


class Task(Struct, frozen=True, kw_only=True):
    """What is to be tried.

    profile: of the model. drawn: how many of the questions are drawn, all by default. folder: where its files are kept.
    """

    name: str
    documents: Path
    questions: Path
    model: str
    profile: Profile
    drawn: int | None
    folder: Path

    @property
    def experiment(self) -> Path:
        """The experiment file."""
        return self.folder / "experiment.toml"

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands that carry it out, in their order."""
        return (
            ("index", str(self.documents), "--name", self.name),
            ("up",),
            ("experiment", "run", str(self.experiment)),
            ("experiment", "report", self.name, "--output", str(self.folder / "report")),
        )


def start(
    documents: Annotated[str | None, argument("start.documents")] = None,
    *,
    questions: Annotated[str | None, option("start.questions")] = None,
    model: Annotated[str | None, option("start.model")] = None,
    limit: Annotated[int, option("start.limit")] = QUESTION_COUNT,
    name: Annotated[str | None, option("start.name")] = None,
    folder: Annotated[Path | None, option("start.folder")] = None,
) -> None:
    """Try three systems on your own documents and questions, and say which is better and how sure that is.

    IRCoT is compared with a single search and with no search at all. On a terminal you are asked for what isn't given.
    Each command that it runs is shown, so that the next time you can type it, and the experiment file is kept. What is
    interrupted continues where it was when you start it again.

    Example: `cotrail start notes/ --questions questions.jsonl --model openai/gpt-5.1`
    """
    screen = console()
    where = documents or _asked(screen, "Documents", "a folder or a file, or `sample`", "DOCUMENTS", BUNDLED)
    found, called = _documents(where), checked_name(name or _name_of(where))
    kept = folder or Path(f"cotrail-{called}")
    given = questions or (BUNDLED if where == BUNDLED else None)
    chosen = model or _choose_model(screen)
    screen.print(f"Asking {chosen} whether it answers ...", style="dim", soft_wrap=True)
    profile = check_model(chosen)
    screen.print(f"{chosen} answers.", style="dim", soft_wrap=True)
    file, size = _questions(screen, given, kept)
    task = Task(
        name=called,
        documents=found,
        questions=file,
        model=chosen,
        profile=profile,
        drawn=limit if limit < size else None,
        folder=kept,
    )
    task = _of_its_own(screen, task, is_named=name is not None or folder is not None)
    _write_experiment(screen, task)
    _run_commands(screen, task)
    _print_what_next(screen, task)


def _documents(where: str) -> Path:
    path = SAMPLE / "corpus.jsonl" if where == BUNDLED else Path(where)
    if not path.exists():
        raise InputError(f"there is no {path}; name a folder or a file of documents, or `sample`")
    return path


def _name_of(where: str) -> str:
    """A name of corpora and experiments that resembles the documents'."""
    stem = where if where == BUNDLED else Path(where).resolve().name.partition(".")[0]
    return _OTHER.sub("-", stem.lower()).strip("-")[:40] or "mine"


def _asked(screen: Console, what: str, meaning: str, option: str, default: str | None = None) -> str:
    """What a person types; InputError where nobody is there to be asked."""
    if not sys.stdin.isatty():
        raise InputError(f"no {what.lower()} given: name {meaning} as {option}")
    screen.print(f"{what}: {meaning}", style="bold", soft_wrap=True)
    return str(typer.prompt(" ", default=default, prompt_suffix=">")).strip()


def _choose_model(screen: Console) -> str:
    if not sys.stdin.isatty():
        return settings().model
    found = ", ".join(f"{each}/MODEL" for each in keyed_providers())
    hint = f"keys are set for {found}" if found else "no key of a provider is set"
    return _asked(screen, "Model", f"a name of `cotrail models`; {hint}", "--model", settings().model)


def _questions(screen: Console, given: str | None, folder: Path) -> tuple[Path, int]:
    """The file of questions, and how many there are."""
    path = _question_file(screen, given, folder)
    loaded = load_questions("jsonl", path, _any_paragraphs)
    if not any(question.answers for question in loaded):
        raise InputError(
            f"no question of {path} has an answer, so nothing could be scored; add answers to some, or ask a single "
            "question with `cotrail ask`"
        )
    return path, len(loaded)


def _any_paragraphs(ids: Sequence[str]) -> dict[str, Paragraph]:
    """Stands for the corpus, which is indexed later; `cotrail experiment run` looks the paragraphs up."""
    return {each: Paragraph(id=each, title="", text=each) for each in ids}


def _question_file(screen: Console, given: str | None, folder: Path) -> Path:
    if given == BUNDLED:
        return SAMPLE / "questions.jsonl"
    if given is not None:
        if (Path(given).exists() and not (Path(given).is_file() or Path(given).is_dir())) or given == "-":
            raise InputError(f"{given} can be read only once: write the questions to a file, and name that")
        return Path(given)
    path = folder / "questions.jsonl"
    if path.exists():
        screen.print(f"The questions are those of {path}.", soft_wrap=True)
        return path
    lines = list(_typed(screen))
    if not lines:
        raise InputError("there is no question; name a file of them with --questions")
    make_folder(folder, "name another with --folder")
    write_text(path, "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines), "name another --folder")
    return path


def _typed(screen: Console) -> Iterator[dict[str, Any]]:
    """Questions as a person types them, until an empty one; without an answer where that is empty."""
    if not sys.stdin.isatty():
        raise InputError("no questions given: name a file of questions with their answers as --questions")
    screen.print("Questions: one a line, each with its answer; an empty question ends the list", style="bold")
    number = 0
    while text := typer.prompt(" question", default="", show_default=False).strip():
        number += 1
        answer = typer.prompt(" answer  ", default="", show_default=False).strip()
        yield {"id": f"q{number}", "question": text, "answers": [answer] if answer else []}


def _of_its_own(screen: Console, task: Task, *, is_named: bool) -> Task:
    """The task under a name that no other start has; InputError where a person chose one that is taken.

    A start that was interrupted, of the same documents and questions as they were, has its name still.
    """
    corpora, first = {each.corpus for each in list_corpora()}, task
    for number in count(2):
        if not (reason := _why_taken(task, corpora)):
            break
        if is_named:
            raise InputError(f"{reason}; take another --name, and another --folder if you name one")
        name = f"{first.name}-{number}"
        task = replace(task, name=name, folder=Path(f"cotrail-{name}"))
        screen.print(f"This start is called {name}: {reason}.", style="yellow", soft_wrap=True)
    return task


def _why_taken(task: Task, corpora: Collection[str]) -> str:
    """Why the task needs another name; empty where it has this one already, or nobody has."""
    if task.experiment.exists():
        same = task.experiment.read_text("utf-8") == _experiment_text(task)
        changed = f"{task.experiment} is of another start, or was changed, or the documents or questions were"
        return "" if same else changed
    return f"there is a corpus {task.name} already" if task.name in corpora else ""


def _experiment_text(task: Task) -> str:
    """The experiment file, which says in its first line what it was begun with."""
    states = f"documents {_state(task.documents)}, questions {_state(task.questions)}"
    return f"# of `cotrail start`: {states}\n{tomli_w.dumps(_experiment(task))}"


def _state(path: Path) -> str:
    """The digest of names, sizes and times of what a file or a folder holds."""
    files = sorted(files_in(path)) if path.is_dir() else [path]
    seen = [(str(each.relative_to(path)), each.stat().st_size, each.stat().st_mtime_ns) for each in files]
    return hashlib.sha256(msgspec.json.encode(seen)).hexdigest()[:16]


def _write_experiment(screen: Console, task: Task) -> None:
    make_folder(task.folder, "name another with --folder")
    shots = task.folder / "demonstrations.txt"
    if not shots.exists():
        write_text(shots, (SAMPLE / "demonstrations.txt").read_text("utf-8"), "name another --folder")
    write_text(task.experiment, _experiment_text(task), "name another --folder")
    screen.print(f"Kept in {task.folder}: the experiment, and the demonstrations that prompts show.", soft_wrap=True)


def _experiment(task: Task) -> dict[str, Any]:
    """The experiment file's keys, paths relative to it where they are below its folder."""
    searching = {"retrieval_count": RETRIEVAL_COUNT}
    return {
        "protocol": "compare",
        "name": task.name,
        "models": [task.model],
        **({"profile": task.profile} if task.profile == "fast" else {}),
        "systems": [
            {"system": "no-retrieval", "run": {"reader": "direct"}},
            {"system": "one-step", "run": {"reader": "direct", **searching}},
            {"system": "ircot", "run": {"reader": "direct", **searching}},
        ],
        "datasets": {
            task.name: {
                "format": "jsonl",
                "questions": _seen_from(task.folder, task.questions),
                "corpus": task.name,
                "demonstrations": "demonstrations.txt",
                **({"test_questions": task.drawn} if task.drawn else {}),
            }
        },
    }


def _seen_from(folder: Path, path: Path) -> str:
    absolute = path.resolve()
    return str(absolute.relative_to(folder.resolve())) if absolute.is_relative_to(folder.resolve()) else str(absolute)


def _run_commands(screen: Console, task: Task) -> None:
    """Run the commands one after the other; ends with the exit code of one that fails."""
    for words in task.commands:
        screen.print()
        screen.print(Text(f"$ {pasteable(*words)}", style="bold cyan"), soft_wrap=True)
        sys.stdout.flush()
        code = subprocess.run([sys.executable, "-P", "-m", "cotrail.cli.main", *words], check=False).returncode
        if code:
            screen.print(
                f"That ended with {code}. What is done is kept; `{pasteable(*sys.argv[1:])}` continues from there.",
                style="yellow",
                soft_wrap=True,
            )
            raise typer.Exit(code)


def _print_what_next(screen: Console, task: Task) -> None:
    page = (task.folder / "report" / "report.html").absolute()
    screen.print()
    screen.print(f"The tables as a page: {page}", soft_wrap=True)
    screen.print(f"The experiment, to change and run again: {task.experiment.absolute()}", soft_wrap=True)
    screen.print("To see why an answer came out, and to stop what runs:")
    print_commands(screen, ("view",), ("down",))


# The bundled sample.

SAMPLE = Path(cotrail.__file__).parent / "sample"
FILES = ("corpus.jsonl", "questions.jsonl", "demonstrations.txt", "short_demonstrations.txt", "run.toml")
FOLDER = Path("cotrail-sample")


def sample(folder: Annotated[Path, argument("sample.folder")] = FOLDER, *, json: Json = False) -> None:
    """Write the bundled sample into a folder, as files to start from: corpus, questions, demonstrations, run file."""
    files = [folder / name for name in FILES]
    if there := [str(file) for file in files if file.exists()]:
        raise InputError(f"{', '.join(there)} would be replaced; name another folder")
    make_folder(folder, "name another one")
    for file in files:
        write_text(file, (SAMPLE / file.name).read_text("utf-8"), "name another folder")
    if in_json({"files": [str(file) for file in files]}, json=json):
        return
    screen = console()
    screen.print(f"Written: {', '.join(map(str, files))}", soft_wrap=True)
    screen.print("Next, after `cotrail up`:")
    screen.print(f"  cotrail index {files[0]} --name sample", soft_wrap=True)
    screen.print(f"  cotrail submit {files[-1]} --wait", soft_wrap=True)


# A folder to begin a system of one's own in.

PLACES = re.compile("NAME|MODULE|FUNCTION")
"""What the bundled files have in the place of names."""


def new(kind: Annotated[str, argument("new.kind")], name: Annotated[str, argument("new.name")]) -> None:
    """Write a folder for a system of your own: its code, a test, and what makes a package of it.

    Example: `cotrail new system my-system`
    """
    if kind != "system":
        raise InputError(f"{kind!r} can't be made; `cotrail new system NAME` makes a system")
    if not own.NAME.fullmatch(name) or not (module := name.replace("-", "_")).isidentifier() or iskeyword(module):
        raise InputError(
            f"a system can't be named {name!r}: take small letters, digits and hyphens, a letter first, no keyword"
        )
    if any(each.name == name for each in SYSTEMS) or module in {*sys.stdlib_module_names, "cotrail", "pytest"}:
        raise InputError(f"there is a system, or a module of Python's, {name} already; name another one")
    folder, words = Path(name), {"NAME": name, "MODULE": module, "FUNCTION": module}
    if folder.exists():
        raise InputError(f"{folder} is there already; name another one")
    make_folder(folder, "name another one")
    for file in sorted((SAMPLE / "new_system").iterdir()):
        text = PLACES.sub(lambda each: words[each[0]], file.read_text("utf-8"))
        write_text(folder / file.name.removesuffix(".txt").replace("system.py", f"{module}.py"), text, "make room")
    tried = f'  cotrail ask "A question" --system {folder}/{module}.py --corpus CORPUS\n  cd {folder} && pytest'
    console().print(f"Written: {folder}/, a system that works. Try it, change it, test it:\n{tried}", soft_wrap=True)


def pasteable(*words: str) -> str:
    """A command: `cotrail up` where the shell finds this `cotrail`, else with its path; and with the home, if another.

    COTRAIL_HOME may have been set for this process alone, so it is repeated.
    """
    home = settings().home
    variables = [] if home == user_data_path("cotrail") else [f"COTRAIL_HOME={shlex.quote(str(home))}"]
    return " ".join([*variables, shlex.join([*_program(), *words])])


def print_commands(screen: Console, *commands: tuple[str, ...]) -> None:
    """Prints commands to paste, a line each."""
    for words in commands:
        screen.print(f"  {pasteable(*words)}", soft_wrap=True)


def _program() -> list[str]:
    called = Path(sys.argv[0])
    if called.suffix == ".py":
        return [sys.executable, "-m", "cotrail.cli.main"]
    path = shutil.which(called.name)
    is_on_path = path is not None and called.exists() and Path(path).samefile(called)
    return [called.name if is_on_path else str(called.absolute())]
