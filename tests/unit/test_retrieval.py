import math
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cotrail.core.ports.retriever import Corpus, Retriever
from cotrail.core.questions import Paragraph
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_questions
from cotrail.engines.retrieval import stores
from cotrail.engines.retrieval import tantivy as adapter
from cotrail.engines.retrieval.manifest import corpora, read_manifest
from cotrail.engines.retrieval.stores import FolderStore, build_index, open_index
from cotrail.engines.retrieval.tantivy import TantivyRetriever, english, plain
from cotrail.errors import CorpusError, InputError, UnknownNameError
from tests.cases import each_case
from tests.searching import search
from tests.unit.scored import paragraph_recall

DATA = Path(__file__).parents[2].parent / "shared" / "data"

Make = Callable[[Sequence[Paragraph]], Corpus]

PAPER = Paragraph(id="b", title="Paper", text="Paper is made of wood pulp.")
INK = Paragraph(id="a", title="Ink", text="Ink is a liquid that stains paper.")
PEN = Paragraph(id="c", title="Pen", text="A pen writes with ink.")


@pytest.fixture
def make_retriever(tmp_path: Path) -> Make:
    def make(paragraphs: Sequence[Paragraph]) -> Corpus:
        directory = tmp_path / f"corpus-{sum(1 for _ in tmp_path.iterdir())}"
        build_index(paragraphs, directory)
        return open_index(directory)

    return make


def found(retriever: Retriever, query: str, count: int = 10, titles: tuple[str, ...] = ()) -> list[str]:
    return [hit.paragraph.id for hit in search(retriever, query, count, titles)]


def tree(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_the_best_paragraphs_come_first_and_whole(make_retriever: Make) -> None:
    hits = search(make_retriever([PAPER, INK, PEN]), "ink", 2)
    assert [hit.paragraph for hit in hits] == [INK, PEN]
    assert [hit.rank for hit in hits] == [1, 2]
    assert hits[0].score > hits[1].score > 0


def test_inflections_possessives_and_case_do_not_matter(make_retriever: Make) -> None:
    retriever = make_retriever([Paragraph(id="x", title="O\u2019Neil\u2019s dogs", text="They're RUNNING.")])
    for query in ("o'neil", "O\u2019NEIL's", "dog", "the dog's", "dogs\u2019", "runs"):
        assert found(retriever, query) == ["x"], query
    assert found(retriever, "neil") == []


@each_case("text", ["it's", "It\u2019s", "THAT'S", "the of and"])
def test_stop_words_are_no_words_even_with_a_possessive(text: str) -> None:
    assert english().analyze(plain(text)) == []


@each_case(
    ("text", "words"),
    [
        ("15,140 km", ["15,140", "km"]),
        ("No.1", ["1"]),
        ("o'neil u.s.a. 3.5", ["o'neil", "u.s.a", "3.5"]),
        ("1.a a,b 5;6 5:6", ["1", "b", "5;6", "5", "6"]),
        ("snake_case x2", ["snake_cas", "x2"]),
        ("藤原", ["藤", "原"]),
        ("Musta‘lī", ["musta‘lī"]),  # noqa: RUF001
    ],
)
def test_words_are_cut_where_elasticsearch_cuts_them(text: str, words: list[str]) -> None:
    assert english().analyze(plain(text)) == words


@each_case("query", ["", "  ", "the of", "?!", "unheard"])
def test_a_query_without_known_words_finds_nothing(make_retriever: Make, query: str) -> None:
    assert found(make_retriever([PAPER, INK]), query) == []


@each_case("count", [0, -1])
def test_no_paragraphs_asked_for_are_none_found(make_retriever: Make, count: int) -> None:
    assert found(make_retriever([INK]), "ink", count) == []


@each_case(
    "query", ['"ink" AND (', "title:ink [a TO b] ^4 ~2 \\ ink*", "ink" * 4_000 + " ink", "ink " * 2_500, "x" * 100_000]
)
def test_a_query_is_plain_words_whatever_is_in_it(make_retriever: Make, query: str) -> None:
    expected = {"a", "c"} if re.search(r"\bink\b", query) else set()
    assert set(found(make_retriever([PAPER, INK, PEN]), query)) == expected


@pytest.fixture(scope="module")
def shared_retriever(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    directory = tmp_path_factory.mktemp("shared") / "corpus"
    build_index([PAPER, INK, PEN], directory)
    return open_index(directory)


@given(query=st.text(st.characters()), titles=st.lists(st.text(), max_size=3))
def test_no_query_raises(shared_retriever: Corpus, query: str, titles: list[str]) -> None:
    search(shared_retriever, query, 3, tuple(titles))
    search(shared_retriever, query + "\ud800\0 ink", 3)


def test_titles_restrict_the_search_and_leave_scores_as_they_are(make_retriever: Make) -> None:
    retriever = make_retriever([PAPER, INK, PEN])
    scores = {hit.paragraph.id: hit.score for hit in search(retriever, "ink paper", 3)}
    hits = search(retriever, "ink paper", 3, ("Pen", "Paper", "Nowhere"))
    assert [hit.paragraph.title for hit in hits] == ["Paper", "Pen"]
    assert {hit.paragraph.id: hit.score for hit in hits} == pytest.approx({id_: scores[id_] for id_ in ("b", "c")})
    assert found(retriever, "ink", 3, ("pen",)) == []
    assert found(retriever, "ink", 3, ("Paper",)) == []


def test_the_paragraphs_of_a_title_are_found_whatever_its_words(make_retriever: Make) -> None:
    it = [Paragraph(id=id_, title="It", text=f"It is {id_}.") for id_ in ("z", "y")]
    retriever = make_retriever([PAPER, *it, Paragraph(id="w", title="it", text="Another.")])
    assert retriever.titled("It") == (it[1], it[0])
    assert retriever.titled("Nothing") == ()


def test_a_search_of_titles_alone_ignores_what_stands_in_the_text(make_retriever: Make) -> None:
    retriever = make_retriever([PAPER, INK, PEN])
    assert [hit.paragraph.id for hit in search(retriever, "a pen for paper", 3, field="title")] == ["b", "c"]
    assert search(retriever, "liquid", 3, field="title") == ()


def test_titles_after_the_search_pick_from_its_best_and_add_to_the_score(make_retriever: Make) -> None:
    retriever = make_retriever([PAPER, INK, PEN])
    plain_scores = {hit.paragraph.id: hit.score for hit in search(retriever, "ink", 3)}
    assert found(retriever, "ink", 1) == ["a"]
    assert search(retriever, "ink", 1, ("Paper", "Pen"), scope="after")[0].paragraph == PEN
    (pen,) = search(retriever, "ink", 2, ("PEN ", "Nowhere"), scope="after")
    assert (pen.paragraph, pen.rank) == (PEN, 1)
    assert pen.score > plain_scores["c"]


def test_fewer_than_asked_for_come_back_where_others_rank_higher(make_retriever: Make) -> None:
    retriever = make_retriever([PAPER, INK, PEN, Paragraph(id="d", title="Stains", text="Paper, paper, ink and ink.")])
    assert search(retriever, "ink stains paper", 1, ("Pen", "Paper"), scope="after") == ()


TWINS = [
    ("d", "Ink well", "A well for ink."),
    ("e", "Well", " a well for INK. "),
    ("f", "Desk", "The well is full."),
    ("g", "Oil", "Oil burns."),
]
"""Of which the first two have the same text, for the released code of IRCoT."""


def test_of_equal_texts_the_lowest_of_the_best_counts_alone_before_the_cut(make_retriever: Make) -> None:
    retriever = make_retriever([Paragraph(id=id_, title=title, text=text) for id_, title, text in TWINS])
    every = search(retriever, "ink well", 3)
    assert [hit.paragraph.id for hit in every] == ["d", "e", "f"]
    hits = search(retriever, "ink well", 2, distinct=True)
    assert [(hit.paragraph.id, hit.rank) for hit in hits] == [("e", 1), ("f", 2)]
    assert [hit.score for hit in hits] == [hit.score for hit in every[1:]]
    picked = search(retriever, "ink well", 1, ("Ink well", "Well"), scope="after", distinct=True)
    assert [hit.paragraph.id for hit in picked] == ["e"]


def test_one_title_after_the_search_must_be_met(make_retriever: Make) -> None:
    retriever = make_retriever([PAPER, INK, PEN])
    assert [hit.paragraph for hit in search(retriever, "ink", 3, ("Ink",), scope="after")] == [INK]
    assert [hit.paragraph for hit in search(retriever, "wood", 3, ("Ink",), scope="after")] == [INK]


def test_paragraphs_are_found_by_their_ids(make_retriever: Make) -> None:
    retriever = make_retriever([PAPER, INK, PEN])
    assert retriever.paragraphs(["a", "nowhere", "b", "a"]) == {"a": INK, "b": PAPER}
    assert retriever.paragraphs([]) == {}


def test_many_threads_may_search_at_once(shared_retriever: Corpus) -> None:
    results: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: results.extend(found(shared_retriever, "ink") for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [["a", "c"]] * 200


# Ranking against BM25 written out. Words are their own stems, and fields shorter than 40 words have exact lengths.

WORDS = ("kiwi", "plum", "fig", "lemon", "mango", "melon")
words = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
small_corpora = st.lists(st.tuples(words, words), min_size=1, max_size=40)


def exact_bm25(query: list[str], fields: Sequence[Sequence[str]]) -> list[float]:
    """BM25 of each of the texts: Lucene's formula with the constant factor k1 + 1, which tantivy keeps."""
    k1, b = 1.2, 0.75
    mean = sum(map(len, fields)) / len(fields)
    scores = [0.0] * len(fields)
    for word in query:
        holding = sum(word in field for field in fields)
        idf = math.log(1 + (len(fields) - holding + 0.5) / (holding + 0.5))
        for i, field in enumerate(fields):
            if count := Counter(field)[word]:
                scores[i] += idf * count * (k1 + 1) / (count + k1 * (1 - b + b * len(field) / mean))
    return scores


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=small_corpora, query=words, count=st.integers(1, 15))
def test_ranking_is_exact_bm25_of_title_plus_text(
    tmp_path_factory: pytest.TempPathFactory, contents: list[tuple[str, str]], query: str, count: int
) -> None:
    paragraphs = [Paragraph(id=f"{i * 7 % 41:02}", title=title, text=text) for i, (title, text) in enumerate(contents)]
    directory = tmp_path_factory.mktemp("bm25")
    build_index(paragraphs, directory)
    hits = search(open_index(directory), query, count)

    titles, texts = ([field.split() for field in column] for column in zip(*contents, strict=True))
    sums = map(sum, zip(exact_bm25(query.split(), titles), exact_bm25(query.split(), texts), strict=True))
    exact = {paragraph.id: score for paragraph, score in zip(paragraphs, sums, strict=True)}
    best = sorted((score for score in exact.values() if score > 0), reverse=True)[:count]
    assert [hit.score for hit in hits] == pytest.approx(best, rel=1e-4)
    assert [exact[hit.paragraph.id] for hit in hits] == pytest.approx(best, rel=1e-4)
    assert [(-hit.score, hit.paragraph.id) for hit in hits] == sorted((-hit.score, hit.paragraph.id) for hit in hits)


@pytest.mark.parametrize("heap", [adapter.HEAP_BYTES, 15_000_000])
def test_equal_scores_are_ordered_by_id_also_at_the_cut(
    make_retriever: Make, monkeypatch: pytest.MonkeyPatch, heap: int
) -> None:
    monkeypatch.setattr(adapter, "HEAP_BYTES", heap)
    ids = [f"{i * 7919 % 6_000:04}" for i in range(6_000)]
    # Words that no other paragraph has fill the writer's memory soon.
    own = {id_: " ".join(f"{id_}x{number}" for number in range(20)) for id_ in ids}
    retriever = make_retriever([Paragraph(id=id_, title="Plum", text=f"plum fig {own[id_]}") for id_ in ids])
    assert isinstance(retriever, TantivyRetriever)
    assert (retriever._searcher.num_segments > 1) == (heap == 15_000_000)
    for count in (1, 7, 100):
        assert found(retriever, "plum fig", count) == sorted(ids)[:count]
    assert found(retriever, "fig", 10_000) == sorted(ids)


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data isn't beside the repository")
def test_the_gold_paragraphs_of_real_questions_are_found_as_often_as_measured_before(make_retriever: Make) -> None:
    names = ("hotpotqa", "musique", "2wikimultihopqa")
    retriever = make_retriever(list(read_corpus([DATA / name / "corpus.jsonl" for name in names])))
    questions = load_questions("hotpotqa", DATA / "hotpotqa" / "questions.json")
    for count, expected in ((5, 0.760), (7, 0.810), (9, 0.845), (11, 0.860), (15, 0.875)):
        found_here = [[hit.paragraph for hit in search(retriever, question.text, count)] for question in questions]
        recalls = [
            paragraph_recall(each, question.gold) or 0 for each, question in zip(found_here, questions, strict=True)
        ]
        assert sum(recalls) / len(recalls) == pytest.approx(expected, abs=0.02)


# Building.


def test_the_revision_names_content_ids_and_order(tmp_path: Path) -> None:
    corpora = [[PAPER, INK], [PAPER, INK, PEN], [INK, PAPER], [PAPER, Paragraph(id="z", title="Ink", text=INK.text)]]
    revisions = [build_index(paragraphs, tmp_path / f"{i}").revision for i, paragraphs in enumerate(corpora)]
    assert len(set(revisions)) == len(corpora)
    assert build_index([PAPER, INK], tmp_path / "again").revision == revisions[0]
    assert open_index(tmp_path / "0").revision == revisions[0]


def test_progress_is_told_up_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "PROGRESS_EVERY", 2)
    told: list[int] = []
    manifest = build_index([PAPER, INK, PEN], tmp_path / "corpus", told.append)
    assert told == [2, 3]
    assert manifest.paragraphs == 3


def interrupted(error: BaseException) -> Iterator[Paragraph]:
    yield PAPER
    raise error


@pytest.mark.parametrize("error", [CorpusError("line 2"), KeyboardInterrupt()])
def test_a_build_that_fails_leaves_the_former_index_as_it_was(tmp_path: Path, error: BaseException) -> None:
    build_index([INK], tmp_path / "corpus")
    before = tree(tmp_path)
    with pytest.raises(type(error)):
        build_index(interrupted(error), tmp_path / "corpus")
    assert tree(tmp_path) == before
    assert found(open_index(tmp_path / "corpus"), "ink") == ["a"]


def test_a_first_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="line 2"):
        build_index(interrupted(CorpusError("line 2")), tmp_path / "corpus")
    assert list(tmp_path.iterdir()) == []


def test_a_build_on_a_full_disk_says_so(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"No space left on device.*its disk"):
        build_index(interrupted(OSError(28, "No space left on device")), tmp_path / "corpus")


def test_a_build_where_no_folder_can_be_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CorpusError, match="check the folder"):
        build_index([INK], tmp_path / "file" / "corpus")


def test_a_killed_build_leaves_the_former_index_and_the_next_one_clears_up(tmp_path: Path) -> None:
    directory = tmp_path / "corpus"
    build_index([INK], directory)
    script = (
        "import os, pathlib, signal, sys\n"
        "from cotrail.core.questions import Paragraph\n"
        "from cotrail.engines.retrieval.stores import build_index\n"
        "def paragraphs():\n"
        "    yield Paragraph(id='x', title='X', text='x')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "build_index(paragraphs(), pathlib.Path(sys.argv[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(directory)]).returncode == -9
    assert found(open_index(directory), "ink") == ["a"]
    assert len(list(directory.glob("index-*"))) == 2
    manifest = build_index([PEN], directory)
    assert [folder.name for folder in directory.glob("index-*")] == [manifest.folder]


def test_a_retriever_goes_on_with_its_index_when_a_new_one_takes_its_place(tmp_path: Path) -> None:
    directory = tmp_path / "corpus"
    build_index([INK, PAPER], directory)
    before = open_index(directory)
    build_index([PEN], directory)
    assert found(before, "ink paper") == ["a", "b"]
    assert found(open_index(directory), "ink paper") == ["c"]


def test_two_builds_of_one_index_do_not_meet(tmp_path: Path) -> None:
    def nested() -> Iterator[Paragraph]:
        with pytest.raises(CorpusError, match="another process"):
            build_index([PEN], tmp_path / "corpus")
        yield INK

    build_index(nested(), tmp_path / "corpus")
    assert found(open_index(tmp_path / "corpus"), "ink") == ["a"]


# Opening.


def remove_manifest(directory: Path) -> None:
    (directory / "manifest.json").unlink()


def spoil_manifest(directory: Path) -> None:
    (directory / "manifest.json").write_text('{"revision": 1}')


def remove_folder(directory: Path) -> None:
    folder = directory / read_manifest(directory).folder
    folder.rename(directory / "elsewhere")


def spoil_meta(directory: Path) -> None:
    (directory / read_manifest(directory).folder / "meta.json").write_text("{")


def truncate_terms(directory: Path) -> None:
    (terms,) = directory.glob("index-*/*.term")
    terms.write_bytes(terms.read_bytes()[:10])


def remove_store(directory: Path) -> None:
    (store,) = directory.glob("index-*/*.store")
    store.unlink()


def change_analyzer(directory: Path) -> None:
    manifest = directory / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"analyzer": "2:', '"analyzer": "0:'))


@pytest.mark.parametrize(
    "spoil", [remove_manifest, spoil_manifest, remove_folder, spoil_meta, truncate_terms, remove_store, change_analyzer]
)
def test_an_index_that_is_missing_or_spoilt_asks_for_a_new_one(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    build_index([INK, PAPER], tmp_path / "corpus")
    spoil(tmp_path / "corpus")
    with pytest.raises(CorpusError, match="cotrail index"):
        open_index(tmp_path / "corpus")


def test_corpora_are_opened_and_listed_by_name(tmp_path: Path) -> None:
    manifests = {name: build_index([PAPER], tmp_path / name) for name in ("wiki-2.0", "my_notes")}
    (tmp_path / "no-index").mkdir()
    assert FolderStore(tmp_path).open("my_notes").revision == manifests["my_notes"].revision
    assert corpora(tmp_path) == manifests
    assert list(corpora(tmp_path)) == ["my_notes", "wiki-2.0"]
    with pytest.raises(UnknownNameError, match=r"no corpus 'other'; there are: my_notes, wiki-2\.0; "):
        FolderStore(tmp_path).open("other")


def test_no_corpora_yet_are_said_to_be_none(tmp_path: Path) -> None:
    assert corpora(tmp_path / "nowhere") == {}
    with pytest.raises(UnknownNameError, match="none yet"):
        FolderStore(tmp_path / "nowhere").open("wiki")


@each_case("name", ["", "..", ".hidden", "a/b", "a b", "ä", "wiki\n"])
def test_a_name_that_can_not_be_a_folders_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="can't be named"):
        FolderStore(tmp_path).open(name)
