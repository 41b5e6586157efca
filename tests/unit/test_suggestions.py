"""A command line that can't be understood is answered with the command, option or choice that was probably meant."""

import re

import pytest
import typer

from cotrail.cli import lazy_group
from cotrail.cli.lazy_group import WORDS, unknown_command, usage
from cotrail.cli.main import app
from tests.cases import each_case

COMMANDS = tuple(entry.name for entry in lazy_group.COMMANDS)


def refused(*arguments: str) -> str:
    with pytest.raises(typer.TyperException) as caught:
        app(list(arguments), standalone_mode=False, prog_name="cotrail")
    return usage(caught.value)


@each_case(
    ("arguments", "said"),
    [
        (("sumbit",), "there is no command 'sumbit' (did you mean submit?); see `cotrail --help`"),
        (("audit", "vrify"), "(did you mean verify?); there are: verify, export, prompt; see `cotrail audit --help`"),
        (
            ("submit", "--demonstation", "x"),
            "no option '--demonstation' (did you mean --demonstrations?); see `cotrail submit --help`",
        ),
        (
            ("submit", "--demonstation=x"),
            "no option '--demonstation' (did you mean --demonstrations?); see `cotrail submit --help`",
        ),
        (("export", "latest", "--format", "arrow"), "--format can't be 'arrow'; there are: "),
        (
            ("audit", "export", "x", "--format", "bundel"),
            "(did you mean bundle?); there are: bundle, prov; see `cotrail a",
        ),
        (("ps",), "there is no command 'ps'; did you mean `cotrail stack` (processes) or `cotrail runs` (runs)?"),
        (("show",), "RUN is missing: The run's id, "),
        (("logs",), "PROCESS is missing, as in `cotrail logs generation --follow`: generation, retrieval, "),
        (("worker",), "ROLE is missing: generation, retrieval, evidence, maintenance; see"),
    ],
)
def test_what_was_meant_is_named_with_all_that_there_are(arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(*arguments)


@each_case("word", WORDS)
def test_a_word_that_people_try_first_leads_to_commands_that_there_are(word: str) -> None:
    assert word not in COMMANDS
    # `cotrail --help` leads to no command, but to the list of all.
    meant = set(re.findall(r"`(?:cotrail )?([a-z]+)", unknown_command(word, COMMANDS))) - {"cotrail"}
    assert meant <= set(COMMANDS)
