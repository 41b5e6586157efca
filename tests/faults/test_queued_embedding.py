"""`cotrail index --queued`: workers embed, whatever is killed meanwhile, and nothing that was kept is embedded twice.

One real stack; the embedder is behind a server that the test holds, so that kills come in the middle.
"""

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from cotrail.audit.verification import verify
from cotrail.configuration.settings import Settings
from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.stores import FolderStore
from cotrail.errors import UnknownNameError
from cotrail.models.queries.runs import resolve_run
from cotrail.models.records.trail import read_trail
from cotrail.services.runs.indexing import PER_STEP
from tests.conftest import Eventually, wait_until
from tests.faults.stacked import COTRAIL, ROOT, Cotrail, environment_of, process
from tests.homes import SCRIPTED, answering, home_of
from tests.integration.served import Served, answer, computed, held
from tests.integration.text_servers import openai_embeddings, similarity_of
from tests.searching import search

pytest.importorskip("faiss", reason="faiss isn't installed")
pytest.importorskip("httpx2", reason="httpx2 isn't installed")

STEPS = 7
Begin = Callable[..., "subprocess.Popen[str]"]
GIVEN = [
    Paragraph(id=f"p{n:03}", title="" if n % 3 else f"Page {n}", text=f"the lamp of tower {n} {'river ' * (n % 5)}")
    for n in range(STEPS * PER_STEP - 5)
]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


@pytest.fixture(scope="module")
def home(server: Served) -> Iterator[Path]:
    table = f'[embedders.letters]\nengine = "server"\nurl = "{server.url}"\nmodel = "letters"\n'
    lines: Any = [{"id": each.id, "title": each.title, "text": each.text} for each in GIVEN]
    scripted = {"models.toml": SCRIPTED + table, "script.json": answering("nothing")}
    with home_of({**scripted, "texts.jsonl": lines, "more.jsonl": [*lines, {"id": "new", "text": "a pen"}]}) as made:
        yield made


@pytest.fixture
def begin(home: Path) -> Iterator[Begin]:
    """Starts the command."""
    begun: list[subprocess.Popen[str]] = []

    def start(file: str, name: str = "mine") -> "subprocess.Popen[str]":
        command = (*COTRAIL, "index", str(home / file), "--name", name, "--dense", "letters", "--queued")
        environment = environment_of(home)
        begun.append(subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=-2))
        return begun[-1]

    yield start
    for each in begun:
        with each:
            each.kill()


def asked(server: Served) -> Counter[str]:
    """How often each text was embedded."""
    return Counter(each for request in server.asked for each in request.body["input"])


def runs(engine: Engine) -> list[str]:
    with engine.begin() as connection:
        return list(connection.execute(text("SELECT id FROM runs WHERE system = 'embedding'")).scalars())


def is_indexed(home: Path, given: list[Paragraph]) -> None:
    """The corpus is searched as a comparison of every pair finds it."""
    corpus = FolderStore(Settings(home=home).corpora_path, home / "models.toml").open("mine")
    for query in ("lamp", "a river in the north"):
        scored = sorted((-similarity_of(query, each.statement), each.id) for each in given)[:12]
        hits = search(corpus, query, 12, retriever="dense")
        assert [-score for score, _ in scored] == [pytest.approx(hit.score, abs=2e-6) for hit in hits]


@pytest.mark.timeout(600)
def test_a_killed_command_and_a_killed_worker_lose_nothing(
    home: Path, server: Served, cotrail: Cotrail, engine: Engine, begin: Begin, eventually: Eventually
) -> None:
    released = threading.Event()
    server.replies = [*[computed(openai_embeddings)] * 2, held(released, computed(openai_embeddings))]
    first = begin("texts.jsonl")
    eventually(lambda: len(server.asked) > 2, "it embeds", 120)
    [run] = runs(engine)
    first.kill()
    first.wait()
    worker = process(cotrail, "evidence")
    worker.kill()
    worker.wait(10)
    released.set()
    cotrail("up")
    second = begin("texts.jsonl")
    shown, _ = second.communicate()
    assert second.returncode == 0, shown
    assert f"Indexed {len(GIVEN)} paragraphs as mine" in shown
    assert runs(engine) == []
    embedded = asked(server)
    assert embedded.keys() == {each.statement for each in GIVEN}
    # What the two first requests brought was kept before the worker died; what was under way is asked for again.
    assert max(embedded.values()) <= 2
    is_indexed(home, GIVEN)
    server.asked.clear()
    third = begin("more.jsonl")
    shown, _ = third.communicate()
    assert third.returncode == 0, shown
    assert asked(server).total() <= PER_STEP
    is_indexed(home, [*GIVEN, Paragraph(id="new", title="", text="a pen")])
    assert run not in cotrail("runs", "--json")


@pytest.mark.timeout(600)
def test_what_cannot_be_embedded_is_refused_with_the_reason(
    home: Path, server: Served, cotrail: Cotrail, engine: Engine, begin: Begin
) -> None:
    (home / "bad.jsonl").write_text(json.dumps({"id": "bad", "text": "of no direction"}))
    zeros = {"data": [{"index": 0, "embedding": [0.0] * 32}]}
    server.replies = [answer(200, zeros)]
    refused = begin("bad.jsonl")
    shown, _ = refused.communicate()
    assert refused.returncode == 2
    assert "an embedding of zeros" in shown
    assert "index again" in shown
    [run] = runs(engine)
    assert "an embedding of zeros" in cotrail("show", run)
    with engine.connect() as connection, pytest.raises(UnknownNameError, match="no run yet"):
        resolve_run(connection, "latest")  # which is somebody's own
    server.replies = [computed(openai_embeddings)]
    again = begin("bad.jsonl")
    shown, _ = again.communicate()
    assert again.returncode == 0, shown
    assert runs(engine) == []


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("cotrail")
def test_two_commands_that_embed_the_same_share_its_run(
    home: Path, server: Served, engine: Engine, begin: Begin
) -> None:
    released = threading.Event()
    (home / "shared.jsonl").write_text(json.dumps({"id": "shared", "text": "a shared text"}))
    server.replies = [held(released, computed(openai_embeddings))]
    server.asked.clear()
    one, other = begin("shared.jsonl", "one"), begin("shared.jsonl", "other")
    wait_until(lambda: bool(server.asked), "it is embedded")
    released.set()
    for each in (one, other):
        shown, _ = each.communicate()
        assert each.returncode == 0, shown
    assert runs(engine) == []


@pytest.mark.timeout(600)
def test_a_run_that_somebody_cancels_ends_the_command(
    home: Path, server: Served, cotrail: Cotrail, engine: Engine, begin: Begin
) -> None:
    released = threading.Event()
    server.replies = [held(released, computed(openai_embeddings))]
    (home / "other.jsonl").write_text(json.dumps({"id": "other", "text": "another text"}))
    under_way = begin("other.jsonl")
    wait_until(lambda: bool(runs(engine)), "its run is there")
    [run] = runs(engine)
    cotrail("cancel", run)
    released.set()
    shown, _ = under_way.communicate()
    assert under_way.returncode == 2
    assert f"the run {run}" in shown
    assert "cancelled" in shown


def test_words_need_no_worker(home: Path, cotrail: Cotrail) -> None:
    done = subprocess.run(
        [*COTRAIL, "index", str(home / "texts.jsonl"), "--name", "words", "--queued"],
        env=environment_of(home),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "--dense MODEL" in done.stderr


def lines(folder: Path, name: str, records: Sequence[dict[str, Any]]) -> str:
    (folder / name).write_text("".join(f"{json.dumps(each)}\n" for each in records))
    return str(folder / name)


@pytest.mark.timeout(600)
def test_each_question_of_a_run_is_searched_as_of_its_own_date(home: Path, cotrail: Cotrail, engine: Engine) -> None:
    news = [{"text": f"Ada was the mayor in {year}.", "date": f"{year}-06-01"} for year in range(2000, 2010)]
    asked = [
        {"id": date, "question": "Who was the mayor?", "kinds": {"asked": date}}
        for date in ("2001-01-01", "2004-01-01")
    ]
    cotrail("index", lines(home, "news.jsonl", news), "--name", "news", "--field", "date")
    questions = lines(home, "asked.jsonl", asked)
    shots = ROOT / "cotrail" / "sample" / "demonstrations.txt"
    given = f"--dataset jsonl --corpus news --retrieval-count 20 --questions {questions} --demonstrations {shots}"
    submitted = cotrail("submit", "--system", "one-step", *given.split(), "--filter", "date:<{asked}", "--json")
    run = json.loads(submitted.splitlines()[-1])["run"]
    forked = json.loads(cotrail("fork", run, "--set", "filter=date:>{asked}", "--json"))["run"]
    for name, counts in ((run, [1, 4]), (forked, [9, 6])):
        cotrail("watch", name)
        found = [json.loads(cotrail("trace", name, number, "--json"))["steps"][0]["hits"] for number in ("1", "2")]
        assert [len(each) for each in found] == counts
        cotrail("replay", name)
        with engine.connect() as connection:
            assert verify(read_trail(connection, name)).findings == ()
