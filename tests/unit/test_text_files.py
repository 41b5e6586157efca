"""Text from Windows' programs: a byte order mark is read past, and another encoding than UTF-8 is named."""

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from cotrail.common.toml_files import read_toml
from cotrail.data.corpora.building import build_corpus
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_questions
from cotrail.data.demonstrations.building import read_chains
from cotrail.data.demonstrations.self_written import read_prompts
from cotrail.data.demonstrations.sets import read_demonstrations, read_sets
from cotrail.engines.knowledge.database import lines
from cotrail.engines.language_models.scripted import Script
from cotrail.engines.models_file import listed
from cotrail.engines.retrieval.search_server import read_search_file
from cotrail.engines.script_files import read_script
from cotrail.errors import InputError
from cotrail.faithfulness.recorded import read_recorded
from cotrail.services.runs.experiments import read_experiment_file
from cotrail.services.runs.requests import read_run_file
from tests.cases import each_case

HOTPOT = {"_id": "1", "question": "Who?", "context": [["Ink", ["It stains."]]], "level": "easy"}
MUSIQUE: dict[str, object] = {"id": "1", "question": "Who?", "answer": "x", "paragraphs": []}
MUSIQUE["paragraphs"] = [{"idx": 0, "title": "Ink", "paragraph_text": "It stains.", "is_supporting": True}]
DEMONSTRATION = '# METADATA: {"qid": "d"}\nQ: Who?\nA: X.\n'


class Kind(NamedTuple):
    """A kind of file: its content, and what reads it."""

    content: str
    read: Callable[[Path], object]
    suffix: str = ".txt"
    packed: Callable[[bytes], bytes] = bytes


KINDS = {
    "corpus lines": Kind('{"id": "1", "title": "T", "text": "x"}\n', lambda path: list(read_corpus([path]))),
    "corpus list": Kind('[{"id": "1", "text": "x"}]', lambda path: list(read_corpus([path]))),
    "corpus table": Kind("id\ttext\ttitle\n1\tx\tT\n", lambda path: list(read_corpus([path]))),
    "contexts": Kind(json.dumps([HOTPOT]), lambda path: list(read_corpus([path]))),
    "own questions": Kind('{"id": "1", "question": "Who?"}', lambda path: load_questions("jsonl", path)),
    "hotpotqa": Kind(json.dumps([HOTPOT]), lambda path: load_questions("hotpotqa", path)),
    "musique": Kind(json.dumps(MUSIQUE), lambda path: load_questions("musique", path)),
    "fever": Kind('{"id": 1, "claim": "X.", "label": "SUPPORTS"}', lambda path: load_questions("fever", path)),
    "built": Kind(json.dumps(MUSIQUE), lambda path: build_corpus("musique", [path], path.with_suffix(".out"))),
    "demonstrations": Kind(DEMONSTRATION, read_demonstrations),
    "prompt": Kind("Answer {question}", lambda path: read_prompts(path, {"prompt": "{question}"}, {})),
    "sets": Kind('[["a"]]', read_sets),
    "annotated chains": Kind('{"id": "1", "chain": ["So the answer is: X."]}', read_chains),
    "recorded chains": Kind('{"id": "1", "chains": []}', lambda path: read_recorded(path, "commonsense")),
    "script": Kind("{}", lambda path: read_script(path, Script)),
    "TOML": Kind("a = 1", read_toml),
    "run file": Kind('system = "ircot"', read_run_file),
    "experiment": Kind('name = "x"', read_experiment_file, ".toml"),
    "models": Kind("[models]", lambda path: listed(path, "model", object, ())),
    "search settings": Kind("[index]", read_search_file),
    "knowledge": Kind("a\tb\n", lambda path: [line for _, _, line in lines([path])]),
    "packed knowledge": Kind("a\tb\n", lambda path: [line for _, _, line in lines([path])], ".gz", gzip.compress),
    "bz2 knowledge": Kind("a\tb\n", lambda path: [line for _, _, line in lines([path])], ".bz2", bz2.compress),
}


def outcome(kind: Kind, content: bytes, tmp_path: Path) -> object:
    """What is read from a file of that content, alone in a folder, or how it is refused."""
    folder = Path(mkdtemp(dir=tmp_path))
    path = folder / f"file{kind.suffix}"
    path.write_bytes(kind.packed(content))
    try:
        return repr(kind.read(path)).replace(str(folder), "")
    except InputError as error:
        return str(error).replace(str(folder), "")


@each_case("kind", KINDS.values(), ids=KINDS)
def test_a_byte_order_mark_changes_nothing(kind: Kind, tmp_path: Path) -> None:
    plain = outcome(kind, kind.content.encode(), tmp_path)
    assert outcome(kind, kind.content.encode("utf-8-sig"), tmp_path) == plain


@each_case("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@each_case("kind", KINDS.values(), ids=KINDS)
def test_another_encoding_is_named_with_the_way_out(kind: Kind, encoding: str, tmp_path: Path) -> None:
    said = str(outcome(kind, kind.content.encode(encoding), tmp_path))
    assert "convert it to UTF-8: iconv" in said
    assert encoding[:6].upper() in said
