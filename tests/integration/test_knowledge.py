"""Knowledge sources as processes use them: built while others read, killed, asked by many at once; and by command."""

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cotrail.cli.commands.knowledge import knowledge
from cotrail.configuration.settings import settings
from cotrail.core.ports.retriever import Knowledge
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.errors import InputError, UnknownNameError
from tests.unit.made_knowledge import animals, assertion, dump, minnesota

ASK = """
import sys
from pathlib import Path
from cotrail.common.structs import canonical
from cotrail.core.results import Retrieved
from cotrail.engines.knowledge.store import KnowledgeStore

store = KnowledgeStore(Path(sys.argv[1]))
for source, text, other in (line.rstrip("\\n").split("|") for line in sys.stdin):
    opened = store.open(source)
    print(opened.revision, canonical(Retrieved(hits=opened.lookup(text, other))).decode())
"""
BUILD = """
import sys
from pathlib import Path
from cotrail.engines.knowledge.store import KnowledgeStore

def tell(progress):
    if progress.done < progress.total:
        print("half", flush=True)
        sys.stdin.read()

KnowledgeStore(Path(sys.argv[1])).build("conceptnet", [Path(sys.argv[2])], tell)
print("whole", flush=True)
"""
QUESTIONS = (
    "wikidata|Tim Pawlenty was governor of Minnesota when Shanghai Noon was released.|\n"
    "wordnet|A collie and a cat, hot dogs|animals, cold Golden Retrievers, a beast\n"
    "conceptnet|word1 word2 word3 word4|other1 other2 other3 other4\n"
    "table|The A of B are C. The D of B are E.|\n"
)


def assertions(path: Path, count: int, weight: float = 1.0) -> Path:
    lines = (assertion("RelatedTo", f"word{number}", f"other{number % 97}", weight) for number in range(count))
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), 1))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("knowledge")
    store = KnowledgeStore(made / "store")
    (made / "dump.json").write_text(dump(minnesota()))
    store.build("wikidata", [made / "dump.json"])
    store.build("wordnet", [animals(made / "wordnet")])
    store.build("conceptnet", [assertions(made / "assertions.csv.gz", 200)])
    return made / "store"


def asking(folder: Path, seed: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ASK, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": str(seed)},
    )


def test_processes_and_threads_find_the_same_at_once_whatever_their_hash_seeds(folder: Path) -> None:
    questions = QUESTIONS.splitlines() * 5
    with ThreadPoolExecutor(2) as pool:
        answers = list(
            pool.map(
                lambda process: process.communicate("\n".join(questions))[0], [asking(folder, 1), asking(folder, 2)]
            )
        )
    assert answers[0] == answers[1]
    assert len(answers[0].splitlines()) == len(questions)
    assert all('"rank":1' in line for line in answers[0].splitlines())

    sources: dict[str, Knowledge] = {name: KnowledgeStore(folder).open(name) for name in KnowledgeStore(folder).names()}
    asked = [question.split("|") for question in questions] * 10
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda each: sources[each[0]].lookup(each[1], each[2]), asked))
    assert found == found[: len(questions)] * 10
    assert found[:4] == [sources[source].lookup(text, other) for source, text, other in asked[:4]]


def test_a_build_that_is_killed_leaves_the_former_source(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path / "store")
    store.build("conceptnet", [assertions(tmp_path / "former.csv.gz", 200)])
    revision = store.revision("conceptnet")
    newer = assertions(tmp_path / "newer.csv.gz", 30_000, 2.0)
    building = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(tmp_path / "store"), str(newer)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert building.stdout is not None
    assert building.stdout.readline() == "half\n"
    assert store.open("conceptnet").lookup("word3", "other3")[0].score == 1.0
    with pytest.raises(InputError, match="another process is building"):
        store.build("conceptnet", [newer])
    building.send_signal(signal.SIGKILL)
    building.communicate()

    assert store.revision("conceptnet") == revision
    store.build("conceptnet", [newer])
    assert store.open("conceptnet").lookup("word3", "other3")[0].score == 2.0
    assert [path.name for path in (tmp_path / "store" / "conceptnet").iterdir()] == ["knowledge.sqlite"]


# The commands.

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    settings.cache_clear()

    def run(*arguments: str) -> str:
        return CliRunner().invoke(knowledge, arguments, catch_exceptions=False).output

    yield run
    settings.cache_clear()


def test_a_source_is_built_listed_and_asked(tmp_path: Path, run: Run) -> None:
    assert "not built" in run("list")
    with pytest.raises(UnknownNameError, match="cotrail knowledge build wordnet"):
        run("ask", "wordnet", "collie", "dog")
    built = json.loads(run("build", "wordnet", str(animals(tmp_path / "files")), "--json"))
    assert built["counts"] == {"synsets": 11}
    listed = {each["source"]: each["revision"] for each in json.loads(run("list", "--json"))}
    assert listed["wordnet"] == built["revision"]
    assert listed["conceptnet"] is None
    assert "Collie is a hyponym of dog." in run("ask", "wordnet", "collie", "dog")
    assert json.loads(run("ask", "wordnet", "collie", "dog", "--json"))[0]["paragraph"]["title"] == ""
    assert "knows nothing" in run("ask", "wordnet", "collie")


def test_the_commands_tell_what_was_built(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "conceptnet.csv"
    path.write_text(assertion("IsA", "a", "b") + "\n" + assertion("IsA", "a", "b", language="fr") + "\n")
    assert "assertions: 1, skipped in other languages: 1, skipped of other relations: 0" in run(
        "build", "conceptnet", str(path)
    )
    assert "The Region of Curitiba are South." in run("ask", "table", "The Region of Curitiba are South.")
    with pytest.raises(UnknownNameError, match="wikidata, wordnet, conceptnet, table"):
        run("ask", "dbpedia", "x")
