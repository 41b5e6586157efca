"""Commands of this program that work when they are pasted into the shell it was called from."""

import shlex
import shutil
import sys
from pathlib import Path

from platformdirs import user_data_path
from rich.console import Console

from cotrail.configuration.settings import settings


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
