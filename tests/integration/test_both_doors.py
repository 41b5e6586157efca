"""Commands are the same whether they are carried out here or by a server: what they print, and how they exit."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import Engine, select
from typer.testing import CliRunner

from cotrail.cli.main import app, exit_code
from cotrail.configuration.settings import Settings, settings
from cotrail.errors import CotrailError
from cotrail.models.schema.database import connect
from cotrail.models.schema.tables import steps
from tests.cases import each_case
from tests.integration import compared, judged, recorded
from tests.integration.conftest import made_database
from tests.integration.served_here import serving

Said = tuple[str, str, int]
"""What a command prints, what it says beside it, and its exit code."""

Command = tuple[str, ...]

Doors = Callable[..., tuple[Said, Said]]

IDS = re.compile(r"[a-z-]+-\d{8}-[0-9a-f]{6}")
"""Ids of new runs, which each door makes anew."""

MINUTE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d")
"""When a page was written; the other door may write its own a minute later."""

MODELS = """
[models.costless]
engine = "openai"
url = "http://localhost:8000/v1"
model = "costless"
context = 8192

[models.further]
engine = "openai"
url = "http://localhost:8000/v1"
model = "further"
api = "chat"
context = 8192
"""
"""The model of the recorded runs, so that they can be forked, and another one."""

JUDGES_RUN = "first judge"


@pytest.fixture(scope="module")
def filled(servers: Settings) -> Iterator[Engine]:
    """A store with recorded runs, judged ones and runs to compare."""
    engine = connect(made_database(servers, "both_doors"))
    right = {key: judged.verdict("correct", 90) for key in judged.ANSWERED}
    judged.answer(engine)
    judged.answer(engine, judged.OTHER, "elsewhere")
    judged.judge(engine, judged.verdicts(right), name=JUDGES_RUN)
    judged.judge(engine, judged.verdicts({**right, "q1": judged.verdict("incorrect", 60)}), name="second judge")
    compared.answered(engine, "good", [compared.RIGHT] * 12)
    compared.answered(engine, "bad", [compared.RIGHT, compared.HALF, compared.WRONG] * 4)
    recorded.record(engine)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server, on the store that this process uses."""
    with serving() as address:
        yield address


@pytest.fixture
def doors(filled: Engine, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Doors]:
    """Carries out a command by either door, here first."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    # However slow the machine is, nothing is said of it.
    monkeypatch.setattr("cotrail.services.runs.watching.SLOW_SECONDS", 600.0)
    (tmp_path / "models.toml").write_text(MODELS)
    url = filled.url.render_as_string(hide_password=False)
    monkeypatch.setenv("COTRAIL_DATABASE_URL", url.replace("+psycopg", ""))
    settings.cache_clear()

    def carry_out(*arguments: object, typed: str = "") -> tuple[Said, Said]:
        return _said(*arguments, typed=typed), _said("--server", address, *arguments, typed=typed)

    yield carry_out
    settings.cache_clear()


def _said(*arguments: object, typed: str = "") -> Said:
    result = CliRunner().invoke(app, [str(each) for each in arguments], input=typed)
    if isinstance(result.exception, CotrailError):
        notes = "".join(getattr(result.exception, "__notes__", ()))
        return result.stdout, f"{result.exception}{notes}", exit_code(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout, result.stderr, result.exit_code


READ = (
    ("runs",),
    ("show", recorded.PLAIN),
    ("watch", recorded.PLAIN),
    ("watch", recorded.CANCELLED),
    ("watch", judged.RUN),
    ("score", recorded.PLAIN),
    ("score", "good"),
    ("score", judged.RUN),
    ("score", JUDGES_RUN),
    ("trace", recorded.PLAIN, "1"),
    ("trace", recorded.PLAIN, "1", "--full"),
    ("trace", recorded.PLAIN, "5"),
    ("trace", recorded.OPEN, "3"),
    ("trace", recorded.PARALLEL, "1"),
    ("trace", judged.RUN, "q1"),
    ("trace", JUDGES_RUN, "q1"),
    ("trace", recorded.PLAIN, "1", "--prompt", "1"),
    ("label", recorded.PLAIN),
    ("plan", recorded.PLAIN),
    ("plan", "good"),
    ("replay", recorded.PLAIN),
    ("compare", "good", "bad"),
    ("compare", "good", "bad", "--metric", "answer_f1", "--against", "good"),
    ("errors", "bad", "--questions", "--kinds"),
    ("errors", recorded.PLAIN),
    ("verdicts", judged.RUN),
    ("verdicts", judged.RUN, "--questions"),
    ("judge", judged.RUN, "--model", "further", "--estimate"),
    ("export", judged.RUN),
    ("export", recorded.PLAIN, "--format", "hotpotqa"),
    ("export", recorded.PLAIN, "--format", "musique"),
    ("export", recorded.PLAIN, "--format", "trec"),
    ("export", recorded.PLAIN, "--format", "chat", "--reward", "answer_f1"),
    ("prune", recorded.PLAIN, "good", "--dry-run"),
    ("prune", "--older-than", "0", "--dry-run"),
    ("audit", "verify", recorded.PLAIN),
    ("audit", "verify", recorded.OPEN, "--digest", "0"),
    ("audit", "prompt", recorded.PLAIN, "1", "1"),
    ("audit", "export", recorded.PLAIN, "--question", "1", "--format", "prov"),
)
"""Commands that change nothing."""


@each_case("command", READ, ids=" ".join)
@each_case("json", [(), ("--json",)], ids=["text", "json"])
def test_a_command_prints_the_same_by_either_door(
    doors: Doors, command: tuple[str, ...], json: tuple[str, ...]
) -> None:
    here, there = doors(*command, *json)
    assert there == here
    assert here[0]


def test_a_prompt_is_found_by_the_id_of_its_step_by_either_door(filled: Engine, doors: Doors) -> None:
    with filled.connect() as connection:
        step = connection.execute(select(steps.c.id).where(steps.c.kind == "reason").limit(1)).scalar_one()
    here, there = doors("audit", "prompt", step)
    assert there == here
    assert here[0]


REFUSED = (
    ("watch", "nowhere"),
    ("score", "nowhere"),
    ("trace", "nowhere", "1"),
    ("trace", recorded.PLAIN, "99"),
    ("trace", recorded.PLAIN, "1", "--prompt", "0"),
    ("trace", recorded.PLAIN, "1", "--prompt", "99"),
    ("label", "nowhere", "--name", "a"),
    ("label", recorded.PLAIN, "--name", "latest"),
    ("plan", "nowhere"),
    ("replay", "nowhere"),
    ("fork", "nowhere"),
    ("fork", recorded.PLAIN, "--set", "nothing=1"),
    ("repeat", "nowhere"),
    ("repeat", recorded.PLAIN, "--kind", "nothing"),
    ("compare", "good"),
    ("compare", "good", "nowhere"),
    ("compare", "good", "bad", "--metric", "nothing"),
    ("errors", "nowhere"),
    ("verdicts", "nowhere"),
    ("verdicts", JUDGES_RUN),
    ("judge", "nowhere"),
    ("judge", JUDGES_RUN),
    ("judge", judged.RUN, "--rubric", "preference"),
    ("export", "nowhere"),
    ("export", "nowhere", "--output", "there"),
    ("export", recorded.PLAIN, "--format", "browsecomp-plus"),
    ("export", recorded.PLAIN, "--format", "inspect"),
    ("export", judged.RUN, "--format", "qrels"),
    ("export", judged.RUN, "--format", "chat", "--reward", "taste"),
    ("report", "nowhere", "--html", "there"),
    ("audit", "verify", "nowhere"),
    ("audit", "export", "nowhere"),
    ("audit", "prompt", "nowhere"),
    ("prune",),
    ("prune", "nowhere", "--yes"),
    ("prune", recorded.OPEN, "--yes"),
    ("prune", recorded.PLAIN),
    ("audit", "prompt", "2"),
    ("audit", "prompt", "987654321"),
    ("trace", recorded.PLAIN, "1", "--prompt", "-1"),
    ("annotate", "nowhere"),
    ("annotate", "good", "--causes"),
)
"""Commands that are refused."""


@each_case("command", REFUSED, ids=" ".join)
def test_a_command_is_refused_in_the_same_words_by_either_door(doors: Doors, command: Command) -> None:
    here, there = doors(*command)
    assert there == here
    assert here[2] == 2


WRITTEN = (
    ("export", judged.RUN, "--output"),
    ("export", recorded.PLAIN, "--format", "browsecomp-plus", "--output"),
    ("export", recorded.PLAIN, "--format", "inspect", "--output"),
    ("report", judged.RUN, "--html"),
    ("audit", "export", recorded.PLAIN, "--output"),
    ("audit", "export", recorded.PLAIN, "--question", "1", "--format", "prov", "--output"),
    ("compare", "good", "bad", "--html"),
)
"""Commands that write what is named last."""


@pytest.mark.parametrize("command", WRITTEN, ids=" ".join)
@pytest.mark.parametrize("json", [(), ("--json",)], ids=["text", "json"])
def test_a_command_writes_the_same_by_either_door(
    address: str, doors: Doors, tmp_path: Path, command: Command, json: Command
) -> None:
    place = tmp_path / "written"
    results = []
    for door in ((), ("--server", address)):
        results.append((_said(*door, *command, place, *json), _content(place)))
        place.rename(tmp_path / f"written{len(results)}")
    here, there = results
    assert there == here
    assert here[0][2] == 0, here[0][1]


def _content(place: Path) -> dict[str, bytes]:
    files = sorted(place.iterdir()) if place.is_dir() else [place]
    return {file.name: MINUTE.sub(b"", file.read_bytes()) for file in files}


ANNOTATED = (("annotate", recorded.FIRST, "--annotator", "ann"), ("annotate", "bad", "--causes", "--annotator", "ann"))
"""Commands that ask a person, who marks one thing, takes that back, and quits."""


@pytest.mark.parametrize("command", ANNOTATED, ids=" ".join)
def test_a_person_is_asked_the_same_by_either_door(doors: Doors, command: Command) -> None:
    here, there = doors(*command, typed="y a note\nu\nq\n")
    assert there == here
    assert here[2] == 0


@pytest.mark.parametrize("command", ANNOTATED, ids=" ".join)
def test_a_file_is_filled_in_by_either_door(doors: Doors, tmp_path: Path, command: Command, address: str) -> None:
    files = [tmp_path / "here.jsonl", tmp_path / "there.jsonl"]
    for door, file in zip(((), ("--server", address)), files, strict=True):
        assert _said(*door, *command, "--export", file, "--json")[2] == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    rows = [msgspec.json.decode(line) for line in files[0].read_bytes().splitlines()]
    says = {"cause": rows[0]["by_rule"]} if "cause" in rows[0] else {"is_true": False}
    files[0].write_bytes(msgspec.json.Encoder().encode_lines([rows[0] | says | {"note": "odd"}, *rows[1:]]))
    for json in ((), ("--json",)):
        here, there = doors(*command, "--import", files[0], *json)
        assert there == here
        assert here[2] == 0, here[1]
    files[0].write_bytes(msgspec.json.encode(rows[0] | says | {"run": "another"}))
    here, there = doors(*command, "--import", files[0])
    assert there == here
    assert here[2] == 2


MADE = (
    ("fork", recorded.PLAIN, "--set", "retrieval_count=3"),
    ("fork", recorded.PLAIN, "--at", "1", "--question", "q0"),
    ("repeat", "good", "--share", "100%", "--no-wait"),
    ("judge", judged.RUN, "--model", "further"),
)
"""Commands that begin runs."""


@pytest.mark.parametrize("command", MADE, ids=" ".join)
@pytest.mark.parametrize("json", [(), ("--json",)], ids=["text", "json"])
def test_a_run_is_begun_in_the_same_way_by_either_door(
    doors: Doors, command: tuple[str, ...], json: tuple[str, ...]
) -> None:
    here, there = (_without_ids(said) for said in doors(*command, *json))
    assert there == here
    assert here[2] == 0, here[1]


def _without_ids(said: Said) -> Said:
    stdout, stderr, code = said
    return IDS.sub("RUN", stdout), IDS.sub("RUN", stderr), code
