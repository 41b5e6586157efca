"""The log of a process of the stack is printed, and followed past its rotation."""

from itertools import islice
from pathlib import Path

from typer.testing import CliRunner

from cotrail.cli.commands.operating import appended
from cotrail.cli.main import app
from cotrail.errors import InputError, UnknownNameError
from cotrail.workers.logs import open_log


def test_the_last_lines_are_printed_without_control_sequences(home: Path) -> None:
    (home / "logs").mkdir()
    (home / "logs" / "retrieval.log").write_bytes(b"first\nsecond\n\x1b[2Jthird \xff\n")
    shown = CliRunner().invoke(app, ["logs", "retrieval", "--lines", "2"])
    assert shown.stdout.splitlines()[0] == "second"
    assert "\x1b" not in shown.stdout
    assert "third" in shown.stdout


def test_a_process_that_is_unknown_or_has_no_log_is_refused(home: Path) -> None:
    unknown = CliRunner().invoke(app, ["logs", "generaton"])
    assert isinstance(unknown.exception, UnknownNameError)
    assert "did you mean generation?" in str(unknown.exception)
    assert isinstance(CliRunner().invoke(app, ["logs", "redis"]).exception, InputError)


def test_what_is_written_is_followed_past_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "x.log"
    with open_log(path) as log:
        log.write(b"before\none\nhal")
    lines = appended(path, len(b"before\n"))
    assert next(lines) == b"one\n"
    with open_log(path) as log:
        log.write(b"f\n")
    assert next(lines) == b"half\n"
    path.replace(path.with_name("x.log.1"))
    with open_log(path) as log:
        log.write(b"two\nthree\n")
    assert list(islice(lines, 2)) == [b"two\n", b"three\n"]
