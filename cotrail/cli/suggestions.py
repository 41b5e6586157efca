"""What a command line that can't be understood probably meant: the nearest command, option or choice."""

import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from msgspec import Meta, inspect
from pydantic import ValidationError
from typer.core import TyperGroup

from cotrail.common.nearest import nearest, refused_choice, unknown
from cotrail.common.printable_text import cut
from cotrail.common.refusals import LONGEST_VALUE, example, in_words

_STACK, _RUNS, _SHOW = "`cotrail stack` (processes)", "`cotrail runs` (runs)", "`cotrail show RUN` (a run)"
_UP, _DOWN, _SUBMIT = "`cotrail up` (the stack)", "`cotrail down` (the stack)", "`cotrail submit` (a run)"
_EXPERIMENT = "`cotrail experiment run FILE` (a paper's protocol)"
_PAUSE, _CANCEL = "`cotrail pause RUN` (a run, for now)", "`cotrail cancel RUN` (a run)"
_PRUNE, _REMOVE = "`cotrail prune RUN` (a run)", "`cotrail corpora remove NAME` (a corpus)"
_LISTS = ("`cotrail systems`", "`models`", "`corpora`", "`datasets`")
_SCORE, _REPORT, _LABEL = "`cotrail score RUN`", "`cotrail report RUN`", "`cotrail label RUN` (a run's name and tags)"

WORDS: dict[str, tuple[str, ...]] = {
    "status": (_STACK, _SHOW),
    "ps": (_STACK, _RUNS),
    "top": (_STACK, "`cotrail watch RUN` (a run)"),
    "list": (_RUNS, *_LISTS),
    "ls": (_RUNS, *_LISTS),
    "history": (_RUNS, "`cotrail trace RUN QUESTION` (a question's steps)"),
    "queue": (_RUNS,),
    "info": (_SHOW, *_LISTS),
    "log": ("`cotrail logs PROCESS`",),
    "start": (_UP, _SUBMIT),
    "init": ("`cotrail sample` (files to start from)", _UP, "`cotrail demo`"),
    "example": ("`cotrail sample` (files to start from)", "`cotrail demo`"),
    "restart": ("`cotrail down`, then `cotrail up`",),
    "stop": (_DOWN, _PAUSE, _CANCEL),
    "kill": (_CANCEL, _DOWN),
    "abort": (_CANCEL,),
    "continue": ("`cotrail resume RUN`",),
    "run": (_SUBMIT, _EXPERIMENT),
    "delete": (_PRUNE, _REMOVE),
    "remove": (_PRUNE, _REMOVE),
    "rm": (_PRUNE, _REMOVE),
    "clean": (_PRUNE,),
    "eval": (_SCORE, _SUBMIT),
    "evaluate": (_SCORE, _SUBMIT),
    "results": (_SCORE, _REPORT),
    "tag": (_LABEL,),
    "name": (_LABEL,),
    "rename": (_LABEL,),
    "diff": ("`cotrail compare RUN RUN`", "`cotrail replay RUN` (a run's code against its record)"),
    "grade": ("`cotrail judge RUN`",),
    "config": (_LISTS[0], "`cotrail models`", "`cotrail show RUN` (a run's configuration)"),
    "settings": (_LISTS[0], "`cotrail models`", "`cotrail show RUN` (a run's configuration)"),
    "search": ("`cotrail corpora`", "`cotrail trace RUN QUESTION` (what was found)"),
    "corpus": ("`cotrail corpora`", "`cotrail index FILE --name NAME`"),
    "model": ("`cotrail models`",),
    "test": ("`cotrail demo`",),
    "verify": ("`cotrail audit verify RUN`",),
    "build": ("`cotrail data build`", "`cotrail index`", "`cotrail knowledge build`"),
    "download": ("`cotrail datasets` (where to get them)",),
    "help": ("`cotrail --help`",),
    "version": ("`cotrail --version`",),
}
"""Words of other programs that people try first, with the commands that do what these mean."""

_COMMAND = re.compile(r"\ANo such command '(?P<name>.*?)'\.?(?: Did you mean .*)?$", re.DOTALL)
_ABSENT = re.compile(
    r"\AMissing (?:argument|option) '(?P<name>.*?)'(?:\. Choose from:\s*+(?P<choices>.*))?$", re.DOTALL
)
_SURPLUS = re.compile(r"\AGot unexpected extra arguments?(?:\(s\))? \((?P<given>.*)\)$", re.DOTALL)
_EXAMPLE = re.compile(r"Examples?: (`[^`]+`)")
_CHOICE = re.compile(
    r"\AInvalid value for '(?P<what>[^:]*)': (?:Value error, )?'(?P<given>.*)' is not one of (?P<choices>.*)$",
    re.DOTALL,
)
_QUOTED = re.compile(r"'(.*?)'")


LONGEST_HELP = 160
"""Characters that a message has of an argument's help."""


def usage(error: typer.TyperException) -> str:
    """One line on a command line that can't be understood: what is wrong with it, and where to read on."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "cotrail"
    message = _problem(error, error.format_message().rstrip("."), context)
    return message if message.endswith("?") else f"{message}; see `{command} --help`"


def _problem(error: typer.TyperException, message: str, context: typer.Context | None) -> str:
    if context and (match := _ABSENT.match(message)):
        return _absent(match["name"], match["choices"], context)
    if context and message.startswith("No such option: "):
        name = message.removeprefix("No such option: ").split(" ", 1)[0]
        return unknown("option", name, _options(context))
    if context and isinstance(context.command, TyperGroup) and (match := _COMMAND.match(message)):
        return unknown_command(match["name"], context.command.list_commands(context), context.command_path)
    if isinstance(cause := error.__cause__, ValidationError) and cause.errors()[0]["type"] != "value_error":
        return _refused_number(getattr(error, "param", None), cause)
    if match := _SURPLUS.match(message):
        return f"{match['given']} is one argument too many"
    if match := _CHOICE.match(message):
        choices = _QUOTED.findall(match["choices"])
        return refused_choice(match["what"], match["given"], choices)
    return message


def _refused_number(parameter: Any, cause: ValidationError) -> str:
    """The message for what is no number, or out of bounds; cause: pydantic's error, by which typer reads numbers."""
    kind: type[int | float] = int if "int" in cause.title else float
    low, high = (None if bound is None else kind(bound) for bound in (parameter.min, parameter.max))
    bounded: Any = Annotated[kind, Meta(ge=low, le=high)]
    declared = inspect.type_info(bounded)
    name = parameter.metavar if not parameter.opts[0].startswith("-") else max(parameter.opts, key=len)
    value = cut(str(cause.errors()[0]["input"]), LONGEST_VALUE)
    return f"{name} must be {in_words(declared)}, e.g. {example(declared, None, None)}, not {value!r}"


def unknown_command(name: str, commands: Iterable[str], group: str = "cotrail") -> str:
    """The message for a command that doesn't exist; group: the command line before it."""
    meant = WORDS.get(name.lower()) if group == "cotrail" else None
    if meant is None:
        message = unknown("command", name, commands)
        return message if nearest(name, commands) else message.partition(";")[0]
    return f"there is no command {name!r}; did you mean {_either(meant)}?"


def _either(names: tuple[str, ...]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _absent(name: str, choices: str | None, context: typer.Context) -> str:
    """The message for an argument or option that is missing, with what can stand there."""
    parameters = (each for each in context.command.params if name in (each.metavar, *each.opts))
    text = choices or next((getattr(each, "help", None) for each in parameters), None)
    example = _EXAMPLE.search(context.command.help or "")
    message = f"{name} is missing{f', as in {example[1]}' if example else ''}"
    return f"{message}: {cut(text, LONGEST_HELP).rstrip('.')}" if text else message


def _options(context: typer.Context) -> list[str]:
    return [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
