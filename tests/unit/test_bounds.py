"""Files made to take all memory, or to end a process otherwise, are refused with their place wherever they are read."""

import bz2
import gzip
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cotrail.cli.commands.errors import read_rows
from cotrail.common import json_files, text_files
from cotrail.common.text_files import (
    MAX_DEPTH,
    MAX_PARAGRAPH_CHARACTERS,
    MAX_RECORD_BYTES,
    MIB,
    numbered_lines,
    read_whole,
)
from cotrail.common.toml_files import MAX_TOML_BYTES, MAX_TOML_LINE
from cotrail.data.corpora.building import build_corpus
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets import infotabs
from cotrail.data.datasets.loading import load_questions
from cotrail.data.datasets.registry import DATASETS, RECIPES
from cotrail.data.demonstrations.building import read_chains
from cotrail.data.demonstrations.sets import read_demonstrations
from cotrail.engines.knowledge.conceptnet import build_conceptnet
from cotrail.engines.knowledge.wikidata.building import build_wikidata
from cotrail.engines.language_models.scripted import Script
from cotrail.engines.models_file import listed
from cotrail.engines.script_files import read_script
from cotrail.errors import CorpusError, InputError
from cotrail.faithfulness.recorded import read_recorded
from cotrail.services.results.annotations import SentenceRow
from cotrail.services.runs.experiments import read_experiment_file
from cotrail.services.runs.requests import read_run_file
from tests.cases import each_case

Read = Callable[[Path], object]

DEEP = b"[" * 100_000 + b"]" * 100_000
OBJECTS = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
MOST = MIB
"""Bytes of a record, here: the real bound would take long to try so often."""

LONG = b'{"id": "' + b"x" * MOST + b'"}'


class Reader(NamedTuple):
    """What reads files of a kind."""

    name: str
    read: Read
    packed: Callable[[bytes], bytes] = bytes
    suffix: str = ".json"


def questions(dataset: str) -> Reader:
    return Reader(dataset, lambda path: load_questions(dataset, path))


def recipe(dataset: str) -> Reader:
    packed = bz2.compress if dataset == "hotpotqa" else bytes
    return Reader(f"corpus-{dataset}", lambda path: build_corpus(dataset, [path], path.with_suffix(".corpus")), packed)


READERS = (
    *map(questions, DATASETS),
    *map(recipe, RECIPES),
    Reader("corpus", lambda path: list(read_corpus([path]))),
    Reader("recorded", lambda path: read_recorded(path, "commonsense")),
    Reader("chains", read_chains),
    Reader("annotations", partial(read_rows, form=SentenceRow)),
    Reader("script", lambda path: read_script(path, Script)),
    Reader("demonstrations", read_demonstrations),
    Reader("conceptnet", lambda path: build_conceptnet([path], path.parent / "c"), gzip.compress, ".csv.gz"),
    Reader("wikidata", lambda path: build_wikidata([path], path.parent / "w"), gzip.compress, ".json.gz"),
    Reader("run file", read_run_file, suffix=".toml"),
    Reader("experiment", read_experiment_file, suffix=".toml"),
    Reader("models", lambda path: listed(path, "model", object, ()), suffix=".toml"),
)

HOSTILE = {
    "nested lists": DEEP,
    "nested objects": OBJECTS,
    "a list of nested lists": b"[" + DEEP + b"]",
    "nested lists in an object": b'{"id": ' + DEEP + b"}",
    "nested lists in a list's object": b'[{"_id": ' + DEEP + b"}]",
    "brackets that aren't closed": b"[" * 200_000,
    "objects that aren't closed": b'{"a":' * 100_000,
    "a long line": LONG,
    "a long text in a list": b"[" + LONG + b"]",
    "a long key with much behind it": b'{"' + b"k" * 100_000 + b'": [' + b"[]," * 40_000 + b"[]]}",
    "a line without an end": b"x" * (MOST + 2),
    "lists in TOML": b"a = " + b"[" * 5_000,
    "tables in TOML": b"a." * 2_000 + b"a = 1",
    "many keys": b"{" + b",".join(b'"k%d": 1' % number for number in range(20_000)) + b"}",
    "a read_whole number of many digits": b'{"id": ' + b"9" * 100_000 + b"}",
    "a read_whole number of many digits in TOML": b"limit = " + b"9" * 5_000,
    "a large exponent": b'[{"id": 1e999999, "x": -1e99999999999999999999}]',
    "a NUL byte": b'{"id": "\x00"}',
    "a NUL escape": b'{"id": "\\u0000"}',
    "a NUL in TOML": b'system = "\\u0000"',
    "no UTF-8": b'{"id": "\xff\xfe"}',
    "surrogates in UTF-8": b'{"id": "\xed\xa0\x80"}',
    "a lone surrogate": b'{"id": "\\ud800", "question": "x", "title": "\\udfff", "text": "\\ud800"}',
    "a lone surrogate in a list": b'[{"_id": "\\ud800"}]',
    "nothing": b"",
    "blank lines": b"\n" * 100_000,
}


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smaller bound of records than the real one."""
    for module in (text_files, json_files, infotabs):
        monkeypatch.setattr(module, "MAX_RECORD_BYTES", MOST)


def refused(reader: Reader, path: Path) -> str | None:
    """How the file is refused; None where it is read."""
    try:
        reader.read(path)
    except InputError as error:
        return str(error)
    return None


def written(reader: Reader, content: bytes, tmp_path: Path) -> Path:
    """A file of its own kind, in a folder of its own."""
    path = Path(mkdtemp(dir=tmp_path)) / f"file{reader.suffix}"
    path.write_bytes(reader.packed(content))
    return path


@pytest.mark.usefixtures("bounded")
@each_case("reader", READERS, ids=lambda reader: reader.name)
@each_case("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_by_its_name(content: bytes, reader: Reader, tmp_path: Path) -> None:
    path = written(reader, content, tmp_path)
    said = refused(reader, path)
    assert said is None or str(path) in said or "no paragraphs" in said


@pytest.mark.usefixtures("bounded")
@each_case(
    ("name", "content", "said"),
    [
        ("jsonl", b'{"id": "1", "question": "x"}\n' + DEEP, "line 2: lists or objects stand more than 100 deep"),
        ("jsonl", b'{"id": "1", "question": "x"}\n\n' + LONG, "line 3: the line is longer than 1 MiB"),
        ("musique", b'{"id": "1", "question": "x", "paragraphs": []}\n' + OBJECTS, "line 2: lists or objects"),
        ("hotpotqa", b'[{"_id": "1", "question": "x", "context": []},' + DEEP + b"]", "entry 2: lists or objects"),
        (
            "hotpotqa",
            b'[{"_id": "1", "question": "x", "context": []},' + LONG + b"]",
            "entry 2: it is larger than 1 MiB",
        ),
        ("corpus", b'{"id": "1", "title": "x", "text": "y"}\n' + LONG, "line 2: the line is longer than 1 MiB"),
        ("corpus", b'[{"_id": "1", "context": []},' + DEEP + b"]", "entry 2: lists or objects stand more than"),
        ("corpus", b'[{"_id": "1", "context": []},[' + b",".join([LONG] * 5) + b"]]", "entry 2: it is larger than 1"),
        ("corpus-musique", b'{"id": "1", "question": "x", "paragraphs": []}\n' + LONG, "line 2: the line is longer"),
        ("recorded", b'{"id": "1", "question": "x", "chains": []}\n' + LONG, "line 2: the line is longer than"),
        ("annotations", b"\n" + LONG, "line 2: the line is longer than 1 MiB"),
        ("annotations", b"\n" + DEEP, "file.json:2: lists or objects stand more than 100 deep"),
        ("demonstrations", b'\n# METADATA: {"x": ' + DEEP + b"}", "line 2: .*recursion"),
        ("wikidata", b'[\n{"x": ' + DEEP + b"}", "line 2: lists or objects stand"),
        ("conceptnet", b"/a/1\t/r/IsA\t/c/en/a\t/c/en/b\t" + DEEP, "line 1: not an assertion"),
        ("run file", b'system = "ircot"\n' + b"a." * MAX_TOML_LINE + b"a = 1", "line 2: the line is longer"),
        ("run file", b"a." * 2_000 + b"a = 1", "more than 100 deep"),
        ("run file", b'system = "\\u0000"', "NUL"),
        ("models", b"a = " + b"[" * 5_000, "the list of models .* more than 100 deep"),
        ("experiment", b"# " + b"x\n" * MAX_TOML_BYTES, "larger than 256 KiB"),
    ],
)
def test_the_message_names_the_line_or_the_entry(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    reader = next(each for each in READERS if each.name == name)
    path = written(reader, content, tmp_path)
    with pytest.raises(InputError, match=re.compile(f"{said}", re.DOTALL)):
        reader.read(path)


def test_a_paragraph_that_is_too_long_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    most = MAX_PARAGRAPH_CHARACTERS - len("2") - len("title")
    lines = '{"id": "1", "title": "t", "text": "x"}\n{"id": "2", "title": "TITLE", "text": "' + "é" * most + '"}\n'
    path.write_text(lines)
    assert len(list(read_corpus([path]))) == 2
    path.write_text(lines.replace("TITLE", "TITLES"))
    with pytest.raises(CorpusError, match=r"corpus.jsonl, line 2: the paragraph has 1,000,001 characters"):
        list(read_corpus([path]))


def test_what_is_held_in_memory_has_a_bound_in_all() -> None:
    file = io.BytesIO(b"12345\n" * 10)
    with pytest.raises(InputError, match=r"f, line 5: the file is larger than 0 KiB"):
        list(numbered_lines(file, "f", InputError, total=24))
    assert read_whole(io.BytesIO(b"1234"), "f", InputError, 4) == b"1234"
    with pytest.raises(InputError, match="f is larger than"):
        read_whole(io.BytesIO(b"12345"), "f", InputError, 4)


def test_a_line_may_be_as_long_as_is_said_and_no_byte_longer() -> None:
    longest = b"x" * (MAX_RECORD_BYTES - 1) + b"\n"
    assert list(numbered_lines(io.BytesIO(longest + b"y"), "f", InputError)) == [(1, longest), (2, b"y")]
    with pytest.raises(InputError, match=r"f, line 1: the line is longer than 16 MiB"):
        list(numbered_lines(io.BytesIO(b"x" + longest), "f", InputError))


def test_depth_is_allowed_up_to_its_bound() -> None:
    def nested(depth: int) -> io.BytesIO:
        return io.BytesIO(b"[" * depth + b"]" * depth)

    assert len(list(json_files.elements(nested(MAX_DEPTH)))) == 1
    with pytest.raises(json_files.OversizeError):
        list(json_files.elements(nested(MAX_DEPTH + 1)))


@given(
    st.recursive(st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5), st.lists, max_leaves=9)
)
def test_the_parts_of_a_file_are_those_that_json_has(value: object) -> None:
    keyed = {"a": value, "": [value], "item": {"item": value}}
    assert list(json_files.elements(io.BytesIO(json.dumps([value, keyed]).encode()))) == [value, keyed]
    assert list(json_files.members(io.BytesIO(json.dumps(keyed).encode()))) == list(keyed.items())
    assert list(json_files.members(io.BytesIO(json.dumps([value]).encode()))) == []


PIECES = (
    *rb"""[ ] { } , : " \ \u0000 \ud800 null true -1 1e999 "id": "_id": "question": "title": "text": "context": "x" []
    "paragraphs": Q: A: = a.b /r/IsA /c/en/a""".split(),
    *(b"\n", b"\t", b" ", b"\x00", b"\xff", b"9" * 5_000, b"# METADATA:"),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join))
def test_whatever_a_file_holds_it_is_read_or_refused(content: bytes, tmp_path: Path) -> None:
    for reader in READERS:
        assert refused(reader, written(reader, content, tmp_path)) != "", reader.name


def test_a_small_file_of_nested_brackets_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b'{"id": "1", "question": "x"}\n' + DEEP)
    program = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
from pathlib import Path
from cotrail.data.datasets.loading import load_questions
from cotrail.errors import DatasetError
try:
    load_questions("jsonl", Path({str(path)!r}))
except DatasetError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "questions.jsonl, line 2: " in ended.stdout
