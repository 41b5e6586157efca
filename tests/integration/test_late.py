"""Corpora of late interaction: found is what the rater of the same checkpoint scores highest among all paragraphs."""

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import Engine, select

import cotrail as api
from cotrail.api.app import application
from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import settings
from cotrail.core.actions.embed import Rate
from cotrail.core.actions.registry import KINDS
from cotrail.core.ports.encoders import Rater
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import FiledParagraph, Hit, ListPlace, Paragraph
from cotrail.engines.rating.raters import RATERS
from cotrail.engines.retrieval.elasticsearch.store import ElasticsearchStore
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.engines.retrieval.stores import FolderStore
from cotrail.errors import CorpusError, InputError, StepError, UnknownNameError
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import questions, steps
from cotrail.services.library.corpora import Indexed
from cotrail.services.runs import jobs, submission
from cotrail.services.runs.requests import make_request
from cotrail.systems.registry import find_system
from cotrail.tasks.runtime import Runtime
from cotrail.viewer.pages import corpora as viewed
from cotrail.workers.maintenance import JobRunner
from tests.conftest import Eventually, wait_until
from tests.homes import SCRIPTED
from tests.integration.asked_service import HERE, FromHere
from tests.integration.conftest import Cotrail, Query
from tests.integration.small_models import WORDS, colbert
from tests.integration.stepping import carry_out_all, close_runs, unsent
from tests.searching import search

pytest.importorskip("faiss", reason="faiss isn't installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers isn't installed")

from cotrail.engines.rating.late_interaction import LateInteractionRater  # behind the checks
from cotrail.engines.retrieval import embeddings, late

TABLE = '[raters.colbert]\nengine = "late-interaction"\npath = "checkpoint"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a checkpoint, and the file of models that names it."""
    colbert(tmp_path / "checkpoint")
    (tmp_path / "models.toml").write_text(TABLE)
    return tmp_path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the model reads."""
    seen: list[str] = []
    own = LateInteractionRater._read

    def watched(self: LateInteractionRater, batch: list[Any]) -> list[Any]:
        seen.extend(text for text, _ in batch)
        return own(self, batch)

    monkeypatch.setattr(LateInteractionRater, "_read", watched)
    return seen


def store_of(home: Path) -> FolderStore:
    return FolderStore(home / "corpora", home / "models.toml")


def built(home: Path, given: Sequence[Paragraph], name: str = "mine", **settings: Any) -> Corpus:
    store_of(home).build(name, given, NewIndex(settings={"late": "colbert", **settings}))
    return store_of(home).open(name)


def rater_of(home: Path) -> Rater:
    return RATERS.find(home / "models.toml", "colbert").open("deterministic")


def paragraphs(count: int, of: Sequence[str] = WORDS, words: int = 3, seed: int = 7) -> list[Paragraph]:
    """Of few words, so that many have the same text, and so the same score."""
    chance = random.Random(seed)
    ids = chance.sample(range(10**6), count)
    return [Paragraph(id=f"p{id_}", title="", text=" ".join(chance.choices(of, k=words))) for id_ in ids]


def by_hand(rater: Rater, given: Sequence[Paragraph], *queries: str) -> list[list[tuple[str, float]]]:
    """All for each query, by the rater's scores, equal ones by id."""
    asked = [Rate(by="relevance", text=query, paragraphs=tuple(given)) for query in queries]
    scored = (zip((each.id for each in given), rated.scores, strict=True) for rated in rater.rate(asked))
    return [sorted(each, key=lambda pair: (-pair[1], pair[0])) for each in scored]


def ranked(hits: Sequence[Hit]) -> list[tuple[str, float]]:
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [(hit.paragraph.id, hit.score) for hit in hits]


def test_it_finds_what_the_rater_scores_highest_of_ten_thousand(home: Path) -> None:
    given, rater = paragraphs(10_000, WORDS[:9]), rater_of(home)
    corpus = built(home, given)
    queries = ("the river flows", "old boats carry stone into a sea of salt " * 3, "unheard", "salt", "?")
    for query, expected in zip(queries, by_hand(rater, given, *queries), strict=True):
        assert len({score for _, score in expected}) > 100
        for count in (1, 3, 40, 20_000):
            assert ranked(search(corpus, query, count)) == expected[:count]


def test_nothing_depends_on_blocks_threads_or_the_order_of_insertion(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = pytest.importorskip("threadpoolctl", reason="threadpoolctl isn't installed").threadpool_limits
    given = paragraphs(700, words=12)
    corpus, queries = built(home, given), [" ".join(WORDS[n : n + 4]) for n in range(8)]
    expected = [ranked(search(corpus, query, 25)) for query in queries]
    assert expected == [each[:25] for each in by_hand(rater_of(home), given, *queries)]
    for threads in (1, 2):
        with limits(threads), ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda query: ranked(search(corpus, query, 25)), queries)) == expected
    shuffled = built(home, random.Random(1).sample(given, len(given)), "other")
    assert [ranked(search(shuffled, query, 25)) for query in queries] == expected
    for size in (1, 13, 10_000):
        monkeypatch.setattr(late, "AT_ONCE", size)
        assert [ranked(search(corpus, query, 25)) for query in queries] == expected


def test_titles_and_filters_restrict_and_scores_stay(home: Path) -> None:
    chance = random.Random(3)
    given = [
        FiledParagraph(
            id=f"{n:03}", title=f"T{n % 5}", text=" ".join(chance.choices(WORDS, k=4)), fields={"year": (n,)}
        )
        for n in range(200)
    ]
    corpus = built(home, given, fields={"year": "number"})
    [whole] = by_hand(rater_of(home), given, "the river")
    only = ranked(search(corpus, "the river", 200, ("T2",)))
    assert only == [each for each in whole if int(each[0]) % 5 == 2]
    after = ranked(search(corpus, "the river", 30, ("t2",), scope="after"))
    assert after == [each for each in whole[:30] if int(each[0]) % 5 == 2]
    late_years = ranked(search(corpus, "the river", 7, filter="year:>=150"))
    assert late_years == [each for each in whole if int(each[0]) >= 150][:7]
    both = ranked(search(corpus, "the river", 7, ("T1", "T2"), filter="year:>=150"))
    assert both == [each for each in whole if int(each[0]) >= 150 and int(each[0]) % 5 in (1, 2)][:7]
    assert search(corpus, "the river", 5, ("Nowhere",)) == search(corpus, "the river", 5, filter="year:>999") == ()


def test_equal_texts_count_once_where_that_is_asked(home: Path) -> None:
    corpus = built(home, paragraphs(400, words=2))
    texts = [hit.paragraph.text for hit in search(corpus, "river", 20, distinct=True)]
    assert len(set(texts)) == len(texts) == 20


@pytest.mark.parametrize("retriever", ["hybrid", {"bm25": 0.3, "late": 0.7}])
def test_it_is_fused_with_words_and_each_hit_has_its_places(retriever: Any, home: Path) -> None:
    corpus = built(home, paragraphs(300, words=6))
    lists = {way: search(corpus, "river stone", 100, retriever=way) for way in ("bm25", "late")}
    places = {
        way: {hit.paragraph.id: ListPlace(list=way, rank=hit.rank, score=hit.score) for hit in hits}
        for way, hits in lists.items()
    }
    found = search(corpus, "river stone", 30, retriever=retriever)
    for hit in found:
        assert list(hit.lists) == [of[hit.paragraph.id] for of in places.values() if hit.paragraph.id in of]
        if retriever == "hybrid":
            assert hit.score == pytest.approx(sum(1 / (60 + each.rank) for each in hit.lists))
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    alone = search(corpus, "river stone", 30, retriever={"late": 1.0})
    assert [hit.paragraph for hit in alone] == [hit.paragraph for hit in lists["late"][:30]]


@pytest.mark.parametrize("way", ["bm25", "late", "hybrid"])
def test_nothing_asked_or_nothing_there_finds_nothing(way: str, home: Path) -> None:
    assert search(built(home, [], retriever=way), "river", 5) == ()
    corpus = built(home, paragraphs(3), "three", retriever=way)
    assert search(corpus, " ", 5) == search(corpus, "river", 0) == ()
    assert [hit.paragraph.id for hit in search(corpus, "x", 5, field="title")] == []


def test_a_build_that_was_killed_embeds_only_the_rest(
    home: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [Paragraph(id=str(n), title="", text=" ".join(WORDS[int(digit)] for digit in str(n))) for n in range(600)]
    stopping = iter(given)

    def killed() -> Iterator[Paragraph]:
        for _ in range(500):
            yield next(stopping)
        raise OSError("killed")

    with pytest.raises(CorpusError, match="killed"):
        store_of(home).build("mine", killed(), NewIndex(settings={"late": "colbert"}))
    assert store_of(home).manifests() == {}
    assert len(read) == embeddings.AT_ONCE
    corpus = built(home, given)
    assert sorted(read) == sorted(each.text for each in given)
    assert ranked(search(corpus, "salt", 5)) == by_hand(rater_of(home), given, "salt")[0][:5]
    read.clear()
    grown = [*given, Paragraph(id="new", title="", text="old boats")]
    assert built(home, grown).revision != corpus.revision
    assert read == ["old boats"]
    assert built(home, given, "again").revision == corpus.revision


def test_long_and_empty_texts_are_indexed_and_the_long_ones_counted(home: Path) -> None:
    given = [
        Paragraph(id="long", title="", text="river " * 200),
        Paragraph(id="longer", title="", text="river " * 300),
        Paragraph(id="whole", title="", text="river " * 17),
        Paragraph(id="empty", title="", text=""),
        Paragraph(id="marks", title="", text="?! , ."),
    ]
    corpus = built(home, given)
    assert store_of(home).manifests()["mine"].built == {"cut": 2}
    found = search(corpus, "river", 9)
    assert ranked(found) == by_hand(rater_of(home), given, "river")[0]
    assert {hit.score for hit in found if hit.paragraph.id.startswith("long")} == {
        hit.score for hit in found if hit.paragraph.id == "longer"
    }


@pytest.mark.parametrize("more", [0, 1])
def test_punctuation_counts_only_where_the_checkpoint_says_so(more: int, home: Path) -> None:
    colbert(home / "checkpoint", mask_punctuation=not more)
    words = home / "checkpoint" / "tokenizer.json"
    words.write_text(words.read_text().replace('"boats"', '"!"'))
    rater = rater_of(home)
    assert isinstance(rater, LateInteractionRater)
    plain, marked = rater.embed(["the river", "the river!"], "text")
    assert (plain.shape, marked.shape) == ((5, 8), (5 + more, 8))
    given = [
        Paragraph(id=str(n), title="", text=text) for n, text in enumerate(["!", "river !", "the river", "! sea !"])
    ]
    assert ranked(search(built(home, given), "river !", 9)) == by_hand(rater, given, "river !")[0]


def test_a_model_that_changed_under_the_index_is_refused(home: Path) -> None:
    revision = built(home, paragraphs(20)).revision
    colbert(home / "checkpoint", query_maxlen=9)
    corpus = store_of(home).open("mine")
    with pytest.raises(CorpusError, match="isn't the one that the corpus was indexed with"):
        search(corpus, "river", 3)
    assert search(corpus, "river", 3, retriever="bm25")
    assert built(home, paragraphs(20)).revision != revision


@pytest.mark.parametrize("file", ["vectors.f32", "starts.i64", "ends.u64"])
def test_an_index_that_lacks_embeddings_is_not_searched(file: str, home: Path) -> None:
    built(home, paragraphs(20))
    [place] = (home / "corpora").glob(f"mine/*/{file}")
    place.write_bytes(place.read_bytes()[:-8])
    with pytest.raises(CorpusError, match=r"embeddings are missing.*build it again"):
        store_of(home).open("mine")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"late": "nobody"}, r"no rater 'nobody'.*\[raters.nobody\]"),
        ({"late": "all-minilm-l6-v2"}, r"one of the embedders, and no rater: `--dense` takes an embedder"),
        ({"late": "prompted"}, "the rater prompted embeds no tokens"),
        ({"late": "scripted"}, r"the rater scripted embeds no tokens.*engine = \"late-interaction\""),
        ({"model": "colbert"}, r"one of the raters, and no embedder: .*`--late` a table \[raters.NAME\]"),
        ({"late": "colbert", "retriever": "dense"}, "retriever"),
        ({"late": "colbert", "recall": 0.9}, "recall"),
        ({"late": "colbert", "model": "all-minilm-l6-v2"}, "model"),
        ({"late": "away"}, "is no checkpoint of ColBERT|there is no model"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: dict[str, Any], said: str, home: Path) -> None:
    away = TABLE.replace("colbert", "away").replace("checkpoint", "away")
    (home / "models.toml").write_text(f'{TABLE}{away}[raters.scripted]\nengine = "scripted"\npath = "s.json"\n')
    (home / "s.json").write_text("{}")
    with pytest.raises((InputError, UnknownNameError), match=said):
        store_of(home).build("mine", paragraphs(3), NewIndex(settings=settings))
    assert store_of(home).manifests() == {}


@pytest.mark.parametrize(("value", "said"), [(0.0, "isn't of length 1"), (float("nan"), "its weights are broken")])
def test_embeddings_that_are_zeros_or_no_numbers_are_refused(
    value: float, said: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    own = LateInteractionRater.__init__

    def spoiled(self: LateInteractionRater, *given: Any) -> None:
        own(self, *given)
        torch.nn.init.constant_(self._model.linear.weight, value)

    monkeypatch.setattr(LateInteractionRater, "__init__", spoiled)
    with pytest.raises((CorpusError, StepError), match=said):
        built(home, paragraphs(3))
    assert store_of(home).manifests() == {}


def test_a_way_that_the_corpus_lacks_is_refused_with_those_that_it_has(home: Path) -> None:
    corpus = built(home, paragraphs(3))
    for retriever in ("dense", {"dense": 1.0}, {"bm25": 1.0, "dense": 1.0}):
        for query in ("river", ""):
            with pytest.raises(StepError, match="isn't indexed for dense, but for bm25, late and hybrid"):
                search(corpus, query, 3, retriever=retriever)


def test_a_search_server_takes_none_and_says_what_to_do_instead(home: Path) -> None:
    store = ElasticsearchStore(SearchServer(urls=("http://127.0.0.1:9",)))
    with pytest.raises(InputError, match=r"`--engine late` for a corpus.*--rerank NAME --rerank-depth 1000"):
        store.build("mine", paragraphs(3), NewIndex(settings={"late": "colbert"}))


# A run, from the command line to the record.

CHAIN = ["The river flows into a sea.", "Old boats carry stone north. So the answer is: north."]
QUESTION = "Where do boats carry stone?"
LINES = [
    {"id": "a", "title": "River", "text": "the river flows into a sea of salt"},
    {"id": "b", "title": "Boats", "text": "old boats carry stone north"},
    {"id": "c", "title": "Salt", "text": "a sea of salt"},
    {"id": "d", "title": "Stone", "text": "where the river flows stone flows"},
]


@pytest.fixture
def asking(home: Path, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the command line, with a scripted model, a question, and a corpus without embeddings."""
    monkeypatch.setenv("COTRAIL_HOME", str(home))
    settings.cache_clear()
    (home / "models.toml").write_text(TABLE + SCRIPTED)
    script = {"name": "sample", "questions": {QUESTION: {"sentences": CHAIN, "answer": "north"}}}
    (home / "script.json").write_text(json.dumps(script))
    (home / "questions.jsonl").write_text(json.dumps({"id": "q", "question": QUESTION, "answers": ["north"]}))
    (home / "corpus.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    said = cotrail("index", home / "corpus.jsonl", "--name", "words")
    assert said.exit_code == 0, said.output
    return home


def request(home: Path, **changes: Any) -> dict[str, Any]:
    usual = {"system": "ircot", "dataset": "jsonl", "questions": str(home / "questions.jsonl"), "corpus": "mine"}
    return usual | {"model": "scripted", "retriever": "late", "retrieval_count": 2} | changes


@pytest.mark.usefixtures("verified")
def test_a_run_searches_so_verifies_and_replays_without_the_index(
    asking: Path,
    engine: Engine,
    here: Runtime,
    sent: list[Dispatch],
    query: Query,
    eventually: Eventually,
    cotrail: Cotrail,
) -> None:
    indexed = cotrail("index", "--add", "words", "--name", "mine", "--late", "colbert")
    assert indexed.exit_code == 0, indexed.output
    corpus = corpora_of(settings()).open("mine")
    run = submission.submit(engine, submission.prepare(make_request(request(asking))))
    for kind in KINDS:
        sent += unsent(engine, kind)
    ended = select(questions.c.status, questions.c.answer).where(questions.c.run_id == run)
    carry_out_all(sent, lambda: query(ended)[0]["status"] != "open", eventually)
    assert query(ended) == [{"status": "finished", "answer": "north"}]
    close_runs(engine)
    searches = query(select(steps.c.request, steps.c.result).where(steps.c.run_id == run, steps.c.kind == "retrieve"))
    assert len(searches) >= 2
    traced = json.loads(cotrail("trace", run, "1", "--json").output)
    retrieved = [step for step in traced["steps"] if step["kind"] == "retrieve"]
    for step in searches:
        assert step["request"]["options"] == {"retriever": "late"}
    for step in retrieved:
        found = search(corpus, step["query"], 2)
        assert [(hit["id"], hit["score"]) for hit in step["hits"]] == ranked(found)
    assert cotrail("corpora", "remove", "mine", "--yes").exit_code == 0
    for command in (("replay", run), ("audit", "verify", run)):
        said = cotrail(*command)
        assert said.exit_code == 0, said.output
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, run, find_system)] == [""]


def test_a_run_is_refused_where_the_corpus_is_indexed_otherwise(asking: Path, cotrail: Cotrail) -> None:
    for retriever in ("late", "bm25=0.3,late=0.7"):
        with pytest.raises(InputError, match=r"`--late MODEL` by late"):
            submission.prepare(make_request(request(asking, corpus="words", retriever=retriever)))
    said = cotrail("search", "words", "river", "--retriever", "late")
    assert (type(said.exception), "`--late MODEL` by late" in str(said.exception)) == (InputError, True)
    refused = cotrail("index", "--add", "words", "--late", "colbert", "--dense", "all-minilm-l6-v2")
    assert "one kind of embeddings" in str(refused.exception)


def test_the_command_line_and_the_viewer_explain_and_the_python_interface_indexes(
    asking: Path, cotrail: Cotrail
) -> None:
    made = api.index(LINES, "mine", late="colbert", retriever="hybrid")
    assert made.paragraphs == 4
    said = cotrail("search", "mine", "river", "--explain", "--json")
    assert said.exit_code == 0, said.output
    lists = json.loads(said.output)["lists"]
    assert list(lists) == ["bm25", "late"]
    assert len(lists["late"]["paragraphs"]) == 4
    shown = cotrail("search", "mine", "river", "--retriever", "bm25=0.3,late=0.7", "--explain")
    assert "by late" in " ".join(shown.output.split())
    ways = viewed.show("mine", "river").values["ways"]
    assert [(way.retriever, way.refused) for way in ways] == [("hybrid", ""), ("late", ""), ("bm25", ""), (None, "")]
    assert [len(way.found.paragraphs) for way in ways] == [4, 4, 2, 1]


def test_a_service_indexes_so_by_the_settings_of_a_request(asking: Path, engine: Engine, cotrail: Cotrail) -> None:
    content = (asking / "corpus.jsonl").read_bytes()
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    asked = {"name": "made", "files": [digest], "places": ["c.jsonl"], "settings": {"late": "colbert"}}
    runner = JobRunner(engine, lease=10, pause=0.1)
    runner.start()
    try:
        with TestClient(FromHere(application()), base_url=HERE) as client:
            client.put(f"/v1/files/{digest}", params={"name": "c.jsonl"}, content=content)
            job = client.post("/v1/corpora", json=asked).json()["job"]
            wait_until(lambda: not jobs.show_job(job).open, "the job has ended")
    finally:
        runner.stop()
    revision = built(asking, [Paragraph(**line) for line in LINES], "same").revision
    assert jobs.show_job(job).outcome(Indexed).revision == revision
