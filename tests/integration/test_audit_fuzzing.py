"""Bundles that somebody changed in any way: each ends in a verdict, and what a seal covers is named."""

import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from cotrail.audit.bundles import bundle_pieces, read_bundle, write_bundle
from cotrail.audit.findings import Verification
from cotrail.audit.records import COLUMNS, FORMAT, end_of, write_record
from cotrail.audit.verification import verify
from cotrail.core.demonstrations import Demonstrations
from cotrail.errors import BundleError
from cotrail.models.records.trail import read_trail
from tests.integration.forging import resealed
from tests.integration.recorded import CANCELLED, OPEN, PARALLEL, PLAIN, SECOND

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

RUNS = (PLAIN, PARALLEL, CANCELLED, SECOND, OPEN)

fuzzing = settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

Line = dict[str, Any]


@pytest.fixture(scope="module")
def bundles(store: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The bundle of each run."""
    folder = tmp_path_factory.mktemp("bundles")
    with store.connect() as connection:
        for run in RUNS:
            write_bundle(folder / run, bundle_pieces(read_trail(connection, run), run, "0"), run)
    return {run: folder / run for run in RUNS}


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], Verification | None]:
    """What is found of a file with this content; None where it is refused."""
    path = tmp_path_factory.mktemp("changed") / "bundle"

    def verdict(content: bytes) -> Verification | None:
        path.write_bytes(content)
        try:
            return verify(read_bundle(path), bundled=True)
        except BundleError:
            return None

    return verdict


Verdict = Callable[[bytes], Verification | None]


def is_accepted(found: Verification | None) -> bool:
    return found is not None and not found.findings and found.closed


def zipped(lines: Sequence[bytes], *, sealed: bool) -> bytes:
    """A bundle of these lines; sealed: with a last line that agrees with them, as a forger would write it."""
    content = b"".join(lines)
    if sealed:
        body = b"".join(lines[:-1])
        content = body + write_record(end_of(len(lines) - 1, hashlib.sha256(body).hexdigest()))
    return zstd.compress(content)


def lines_of(bundle: Path) -> list[bytes]:
    return zstd.decompress(bundle.read_bytes()).splitlines(keepends=True)


@fuzzing
@given(run=st.sampled_from(RUNS), data=st.data())
def test_a_file_whose_bytes_are_changed_is_refused_or_says_the_same(
    bundles: dict[str, Path], verdict: Verdict, run: str, data: st.DataObject
) -> None:
    whole = bundles[run].read_bytes()
    place = data.draw(st.integers(0, len(whole)), "place")
    length = data.draw(st.integers(0, len(whole) - place) | st.integers(0, min(9, len(whole) - place)), "length")
    put = data.draw(st.binary(max_size=20) | st.just(whole[place : place + length] * 2) | st.just(whole), "put")
    changed = whole[:place] + put + whole[place + length :]
    found = verdict(changed)
    if found is not None and not found.findings:
        assert zstd.decompress(changed) == zstd.decompress(whole)


TEXTS = st.text(max_size=20) | st.sampled_from(
    [
        "0",
        "-1",
        "007",
        " 7",
        "1_0",
        "٣",
        "9" * 18,
        "9" * 19,
        "9" * 5000,
        "1e999",
        "NaN",
        "null",
        "[]",
        "{}",
        "[" * 100_000,
        '{"hits": 999999999999, "digest": ""}',
        '{"hits": ' + "9" * 5000 + "}",
        '{"a": ' * 5000,
        "\u202e\x1b[2J\ud7ff\U0010ffff\x00",
        "x" * 100_000,
    ]
)
ODD = (
    TEXTS
    | st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.lists(st.text(max_size=3), max_size=3)
    | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3)
)
"""What a value is replaced by: as columns may hold it, and as they may not."""

AS_TEXT = ("inner", "text", "part")
SEALED = ("experiments", "runs", "questions", "steps", "attempts")
"""The tables whose rows digests cover."""

HOW = (*AS_TEXT, *AS_TEXT, "value", "drop", "add", "double", "table", "row", "line")
"""How a line is changed; `AS_TEXT`: so that it is a row still."""


def a_line(lines: Sequence[bytes], of: Container[str] = COLUMNS) -> st.SearchStrategy[int]:
    """The number of a line, of any of these tables alike however many rows it has."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        table = msgspec.json.decode(line)["table"]
        if table in of:
            numbers[table].append(number)
    return st.sampled_from(sorted(numbers)).flatmap(lambda table: st.sampled_from(numbers[table]))


def inner_of(value: str | None) -> Any:
    """What a column holds as JSON, if it does."""
    try:
        return msgspec.json.decode(value or "null")
    except msgspec.DecodeError:
        return None


def changed_line(line: bytes, data: st.DataObject, ways: Sequence[str] = HOW) -> bytes:
    """A line of a bundle as somebody might forge it."""
    said: Line = msgspec.json.decode(line)
    row = said["row"]
    names = sorted(row)
    nested = [name for name in names if isinstance(inner_of(row[name]), list | dict)] or names
    name = data.draw(st.sampled_from(names) | st.sampled_from(nested), "column")
    match data.draw(st.sampled_from(ways), "way"):
        case "inner" if isinstance(inner := inner_of(row[name]), list | dict) and inner:
            at = data.draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))), "at")
            inner[at] = data.draw(ODD, "inner")
            row[name] = json.dumps(inner, ensure_ascii=False)
        case "part" if row[name]:
            place = data.draw(st.integers(0, len(row[name]) - 1), "place")
            put = data.draw(st.characters(codec="utf-8"), "character")
            row[name] = row[name][:place] + put + row[name][place + 1 :]
        case "inner" | "part" | "text":
            row[name] = data.draw(TEXTS, "text")
        case "value":
            row[name] = data.draw(ODD, "value")
        case "drop":
            del row[name]
        case "add":
            row[data.draw(st.text(min_size=1, max_size=3), "name")] = "x"
        case "double":
            return line[:-3] + b"," + msgspec.json.encode(name) + b':"x"}}\n'
        case "table":
            said["table"] = data.draw(ODD | st.sampled_from(["runs", "steps", "end", "bundle"]), "table")
        case "row":
            said["row"] = data.draw(ODD, "row")
        case _:
            return data.draw(st.sampled_from([b"", b"\n", b" " + line, line[:-1], line[:-1] + b"x\n", b"[" * 100_000]))
    return msgspec.json.encode(said) + b"\n"


def is_covered(before: bytes, after: bytes) -> bool:
    """Whether something covers what was changed.

    Not the version that wrote a bundle, and in demonstrations not what shows in no prompt; another spelling of a score
    changes nothing.
    """
    old, new = msgspec.json.decode(before), msgspec.json.decode(after)
    changed = [name for name in old["row"] if old["row"][name] != new["row"][name]]
    match old["table"], changed:
        case "bundle", ["cotrail"]:
            return False
        case "paragraph_sets", ["score"]:
            return float(old["row"]["score"]) != float(new["row"]["score"])
        case "demonstrations", ["body"]:
            return shots(old) != shots(new)
    return bool(changed)


def shots(line: Line) -> str:
    return msgspec.json.decode(line["row"]["body"], type=Demonstrations).text


@fuzzing
@given(run=st.sampled_from(RUNS), data=st.data())
def test_whatever_a_record_is_made_to_say_is_named(
    bundles: dict[str, Path], verdict: Verdict, run: str, data: st.DataObject
) -> None:
    lines, sealed = lines_of(bundles[run]), data.draw(st.booleans(), "sealed")
    number = data.draw(a_line(lines[: len(lines) - sealed]), "line")
    changed = changed_line(lines[number], data)
    found = verdict(zipped([*lines[:number], changed, *lines[number + 1 :]], sealed=sealed))
    if is_accepted(found) and changed != lines[number]:
        assert sealed
        assert not is_covered(lines[number], changed)


@fuzzing
@given(run=st.sampled_from(RUNS), data=st.data())
def test_lines_that_are_dropped_doubled_or_moved_are_named(
    bundles: dict[str, Path], verdict: Verdict, run: str, data: st.DataObject
) -> None:
    lines, sealed = lines_of(bundles[run]), data.draw(st.booleans(), "sealed")
    places = st.integers(0, len(lines) - 1 - sealed)
    one, other = data.draw(places, "one"), data.draw(places, "other")
    changed = list(lines)
    match data.draw(st.sampled_from(["drop", "double", "swap", "move"]), "how"):
        case "drop":
            del changed[one]
        case "double":
            changed.insert(other, lines[one])
        case "swap":
            changed[one], changed[other] = lines[other], lines[one]
        case _:
            changed.insert(other, changed.pop(one))
    found = verdict(zipped(changed, sealed=sealed))
    assert not is_accepted(found) or changed == lines


@pytest.mark.parametrize("run", RUNS)
def test_contents_that_stand_elsewhere_are_found_though_the_last_line_agrees(
    bundles: dict[str, Path], verdict: Verdict, run: str
) -> None:
    """Whichever stands one line later, or a little before its questions."""
    lines = lines_of(bundles[run])
    assert not verdict(zipped(lines, sealed=True)).findings  # type: ignore[union-attr]
    for number, line in enumerate(lines[:-2]):
        if line.startswith((b'{"table":"demonstrations"', b'{"table":"paragraphs"')):
            moved = [*lines[:number], lines[number + 1], line, *lines[number + 2 :]]
            found = verdict(zipped(moved, sealed=True))
            assert found is not None
            assert {each.what for each in found.findings} == {"reordered"}, line


@pytest.mark.parametrize("run", RUNS)
def test_a_bundle_with_another_version_in_its_head_is_refused_or_found(
    bundles: dict[str, Path], verdict: Verdict, run: str
) -> None:
    lines = lines_of(bundles[run])
    for form in ("5", "0.9", "1.1", "2.0", ""):
        head = lines[0].replace(f'"format":"{FORMAT}"'.encode(), f'"format":"{form}"'.encode())
        assert verdict(zipped([head, *lines[1:]], sealed=True)) is None, form
    for version in ("99.0", "x", ""):
        head = lines[0].replace(b'"cotrail":"0"', f'"cotrail":"{version}"'.encode())
        found = verdict(zipped([head, *lines[1:]], sealed=True))
        assert found is not None
        assert [(each.table, each.column) for each in found.findings] == [("bundle", "cotrail")], version


def test_columns_in_another_order_are_refused(bundles: dict[str, Path], verdict: Verdict) -> None:
    lines = lines_of(bundles[PLAIN])
    for number in range(0, len(lines) - 1, 9):
        record = msgspec.json.decode(lines[number])
        record["row"] = dict(reversed(record["row"].items()))
        changed = [*lines[:number], msgspec.json.encode(record) + b"\n", *lines[number + 1 :]]
        assert verdict(zipped(changed, sealed=True)) is None, lines[number]


@fuzzing
@given(run=st.sampled_from(RUNS), data=st.data())
def test_a_forger_who_computes_every_digest_again_gets_a_verdict_and_another_digest(
    bundles: dict[str, Path], verdict: Verdict, run: str, data: st.DataObject
) -> None:
    lines = lines_of(bundles[run])
    number = data.draw(a_line(lines, SEALED), "line")
    try:
        forged = resealed([*lines[:number], changed_line(lines[number], data, AS_TEXT), *lines[number + 1 :]])
    except BundleError:
        reject()
    found, before = verdict(zipped(forged, sealed=True)), verify(read_bundle(bundles[run]), bundled=True)
    if is_accepted(found) and forged != lines:
        assert found is not None
        assert found.digest != before.digest
