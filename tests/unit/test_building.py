"""Corpora, built and interrupted. What a killed process leaves behind is what these tests lay down as copies."""

import bz2
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.questions import Paragraph
from cotrail.data.corpora.building import BuildProgress, build_corpus, checkpoint_path, draft_path, read_checkpoint
from cotrail.data.corpora.files import read_corpus
from cotrail.data.corpora.paragraph_ids import DigestSet
from cotrail.data.datasets.iirc import text_of
from cotrail.data.datasets.registry import RECIPES
from cotrail.errors import CorpusError, UnknownNameError
from tests.cases import each_case

Make = Callable[[Path], list[Path]]

FILES, RECORDS = 3, 40


def text(number: int) -> str:
    return f"Paragraph {number} tells how the mill on the river came to have its wheel number {number}."


def page(number: int) -> dict[str, Any]:
    sentences = [f"Paragraph {number} tells of the mill. ", "", " It is short."]
    return {"id": str(number), "url": "u", "title": f"Mill {number}", "text": sentences, "text_with_links": sentences}


def abstracts(folder: Path) -> list[Path]:
    dump = folder / "dump"
    for file in range(FILES):
        path = dump / f"A{file % 2}" / f"wiki_{file:02}.bz2"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(page(number)) for number in range(file * RECORDS, (file + 1) * RECORDS)]
        path.write_bytes(bz2.compress("\n".join(lines).encode()))
    return [dump]


def contexts(folder: Path) -> list[Path]:
    """Questions whose paragraphs are partly those of the questions before."""
    paths = [folder / f"{name}.json" for name in ("train", "dev", "test")]
    for file, path in enumerate(paths):
        numbers = range(file * RECORDS, (file + 1) * RECORDS)
        context = {
            number: [[f"Mill {n}", [text(n), "It turns."]] for n in range(number - 2, number)] for number in numbers
        }
        path.write_text(
            json.dumps(
                [{"_id": f"q{n}", "question": "Who?", "context": context[n], "evidences": []} for n in numbers],
                indent=1,
            )
        )
    return paths


def questions(folder: Path) -> list[Path]:
    paths = [folder / f"musique_{name}_v1.0_dev.jsonl" for name in ("ans", "full")]
    for path in paths:
        lines = [{"id": f"q{n}", "question": "?", "paragraphs": mills(range(n, n + 5))} for n in range(FILES * RECORDS)]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return paths


def mills(numbers: Sequence[int]) -> list[dict[str, Any]]:
    return [{"idx": 0, "title": f"Mill {n}", "paragraph_text": text(n), "is_supporting": True} for n in numbers]


def articles(folder: Path) -> list[Path]:
    path = folder / "context_articles.json"
    pages = {
        f"mill {n}": f"<b>Mill {n}</b>\nToo short.\n"
        + "\n".join(f'<a href="x">{text(n)}</a> Line {m}.' for m in range(6))
        for n in range(FILES * RECORDS)
    }
    path.write_text(json.dumps(pages))
    return [path]


MAKERS: dict[str, Make] = {"hotpotqa": abstracts, "2wikimultihopqa": contexts, "musique": questions, "iirc": articles}

every_dataset = pytest.mark.parametrize("dataset", RECIPES)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Each dataset's corpus as it comes out when nothing happens."""
    built = {}
    for dataset, make in MAKERS.items():
        folder = tmp_path_factory.mktemp(dataset)
        build_corpus(dataset, make(folder), folder / "corpus.jsonl")
        built[dataset] = (folder / "corpus.jsonl").read_bytes()
    return built


@every_dataset
def test_a_corpus_is_paragraphs_with_ids_of_their_own_each_content_once(
    dataset: str, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(undisturbed[dataset])
    lines = [msgspec.json.decode(line, type=Paragraph) for line in path.read_bytes().splitlines()]
    assert len({line.id for line in lines}) == len({(line.title, line.text) for line in lines}) == len(lines)
    assert list(read_corpus([path])) == lines


def test_hotpotqas_corpus_has_a_paragraph_for_each_abstract(undisturbed: dict[str, bytes]) -> None:
    lines = [msgspec.json.decode(line, type=Paragraph) for line in undisturbed["hotpotqa"].splitlines()]
    assert {(line.title, line.text) for line in lines} == {
        (f"Mill {n}", f"Paragraph {n} tells of the mill. It is short.") for n in range(FILES * RECORDS)
    }


def test_pages_given_as_paragraphs_give_each_paragraph(tmp_path: Path) -> None:
    line = page(1) | {"text": [["Mill 1"], ["It has", " a wheel."], [], ["It turns."]]}
    path = tmp_path / "wiki_00.bz2"
    path.write_bytes(bz2.compress(json.dumps(line).encode()))
    build_corpus("hotpotqa", [path], tmp_path / "corpus.jsonl")
    assert [paragraph.text for paragraph in read_corpus([tmp_path / "corpus.jsonl"])] == [
        "Mill 1",
        "It has a wheel.",
        "It turns.",
    ]


def test_an_iirc_page_gives_its_long_lines_without_tags_in_an_order_made_by_title_and_seed(tmp_path: Path) -> None:
    files = articles(tmp_path)
    orders: list[tuple[str, ...]] = []
    for seed in (1, 1, 2):
        output = tmp_path / f"{len(orders)}.jsonl"
        build_corpus("iirc", files, output, seed=seed)
        found = [paragraph for paragraph in read_corpus([output]) if paragraph.title in ("mill 7", "mill 8")]
        orders.append(tuple(paragraph.text for paragraph in found))
        assert set(orders[-1]) == {f"{text(n)} Line {m}." for n in (7, 8) for m in range(6)}
    assert orders[0] == orders[1] != orders[2]
    positions = [[order.index(f"{text(n)} Line {m}.") % 6 for m in range(6)] for n in (7, 8) for order in orders[:1]]
    assert positions[0] != positions[1]


@each_case(
    ("html", "expected"),
    [
        ("<p>One\nTwo", "One\nTwo"),
        ("AT&amp;T &lt;3 &#39;x&#39; AT&T", "AT&T <3 'x' AT&T"),
        ("a < b and c > d", "a < b and c > d"),
        ('<a href="A%20B">A <b>B</b></a>, c<br/>d', "A B, cd"),
        ("<!-- no -->yes", "yes"),
        ("", ""),
    ],
)
def test_html_loses_its_tags_and_its_entities(html: str, expected: str) -> None:
    assert text_of(html) == expected


class StopError(Exception):
    """Stands for whatever ends a process."""


def stop_after(reports: int, before: Callable[[], None] = lambda: None) -> Callable[[BuildProgress], None]:
    left = iter(range(reports))

    def stopping(_: BuildProgress) -> None:
        if next(left, None) is None:
            before()
            raise StopError

    return stopping


@every_dataset
def test_an_interrupted_build_gives_the_same_bytes(
    dataset: str, undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotrail.data.corpora.building.PROGRESS_EVERY", 7)
    files, output = MAKERS[dataset](tmp_path), tmp_path / "corpus.jsonl"
    stops = 0
    while True:
        try:
            built = build_corpus(dataset, files, output, progress=stop_after(3 * (stops + 1)))
        except StopError:
            stops += 1
            assert not output.exists()
            continue
        break
    assert stops > 2
    assert output.read_bytes() == undisturbed[dataset]
    assert built.resumed > 0
    assert built.paragraphs == undisturbed[dataset].count(b"\n")
    assert not draft_path(output).exists()


@every_dataset
@pytest.mark.parametrize("reports", [1, 4, 9, 15])
@pytest.mark.parametrize("torn", [b"", b'{"id":"00', b"\0" * 4096])
def test_a_killed_build_gives_the_same_bytes(
    dataset: str,
    reports: int,
    torn: bytes,
    undisturbed: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cotrail.data.corpora.building.PROGRESS_EVERY", 7)
    files = MAKERS[dataset](tmp_path)
    output, left = tmp_path / "corpus.jsonl", tmp_path / "left" / "corpus.jsonl"
    left.parent.mkdir()

    def killed() -> None:
        for path in (draft_path(output), checkpoint_path(output)):
            if path.exists():
                shutil.copy(path, left.parent)

    with pytest.raises(StopError):
        build_corpus(dataset, files, output, progress=stop_after(reports, killed), checkpoint_every=25)
    with draft_path(left).open("ab") as file:
        file.write(torn)
    build_corpus(dataset, files, left)
    assert left.read_bytes() == undisturbed[dataset]


def test_a_build_killed_between_its_last_two_moves_is_finished(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    files, output = questions(tmp_path), tmp_path / "corpus.jsonl"
    build_corpus("musique", files, output)
    output.rename(draft_path(output))
    build_corpus("musique", files, output)
    assert output.read_bytes() == undisturbed["musique"]


@every_dataset
def test_a_finished_build_is_left_alone(dataset: str, tmp_path: Path) -> None:
    files, output = MAKERS[dataset](tmp_path), tmp_path / "corpus.jsonl"
    first = build_corpus(dataset, files, output)
    stamp = output.stat()
    again = build_corpus(dataset, files, output)
    assert output.stat() == stamp
    assert (first.is_new, again.is_new) == (True, False)
    assert (first.paragraphs, first.duplicates) == (again.paragraphs, again.duplicates)


def test_a_corpus_that_was_removed_is_built_again(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    files, output = questions(tmp_path), tmp_path / "corpus.jsonl"
    build_corpus("musique", files, output)
    output.unlink()
    assert build_corpus("musique", files, output).is_new
    assert output.read_bytes() == undisturbed["musique"]


def test_the_seed_matters_only_where_something_is_shuffled(tmp_path: Path) -> None:
    files, output = questions(tmp_path), tmp_path / "corpus.jsonl"
    build_corpus("musique", files, output, seed=1)
    assert not build_corpus("musique", files, output, seed=2).is_new


def interrupted(dataset: str, files: list[Path], output: Path, seed: int = 0) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cotrail.data.corpora.building.PROGRESS_EVERY", 7)
        with pytest.raises(StopError):
            build_corpus(dataset, files, output, seed=seed, progress=stop_after(4))
    assert (state := read_checkpoint(output)) is not None
    assert state.records


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("dataset", "seed", "reason"),
    [("musique", 0, "begun for iirc with the seed 5"), ("iirc", 6, "begun for iirc with the seed 5")],
)
def test_another_dataset_or_seed_is_refused(
    dataset: str,
    seed: int,
    reason: str,
    finished: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    files, output = articles(tmp_path), tmp_path / "corpus.jsonl"
    build_corpus("iirc", files, output, seed=5) if finished else interrupted("iirc", files, output, seed=5)
    with pytest.raises(CorpusError, match=f"{reason}; .* or remove .*corpus.jsonl.* to start over"):
        build_corpus(dataset, MAKERS[dataset](tmp_path), output, seed=seed)


@every_dataset
def test_other_input_than_an_interrupted_build_has_read_is_refused(dataset: str, tmp_path: Path) -> None:
    named, output = MAKERS[dataset](tmp_path), tmp_path / "corpus.jsonl"
    interrupted(dataset, named, output)
    first = RECIPES[dataset].files(named)[0]
    content = bz2.decompress(first.read_bytes()) if first.suffix == ".bz2" else first.read_bytes()
    changed = content.replace(b"number 1.", b"number I.").replace(b"Paragraph 1 ", b"Paragraph I ")
    first.write_bytes(bz2.compress(changed) if first.suffix == ".bz2" else changed)
    with pytest.raises(CorpusError, match=r"was begun with (other files|another)"):
        build_corpus(dataset, named, output)


def test_a_finished_build_of_other_files_is_refused(tmp_path: Path) -> None:
    files, output = questions(tmp_path), tmp_path / "corpus.jsonl"
    build_corpus("musique", files, output)
    with pytest.raises(CorpusError, match="was built from other files"):
        build_corpus("musique", files[:1], output)


def test_a_corpus_that_was_changed_is_not_taken_for_the_one_built(tmp_path: Path) -> None:
    files, output = questions(tmp_path), tmp_path / "corpus.jsonl"
    build_corpus("musique", files, output)
    output.write_bytes(b"")
    with pytest.raises(CorpusError, match="was changed after it was built"):
        build_corpus("musique", files, output)


def test_a_file_that_is_not_from_a_build_is_not_overwritten(tmp_path: Path) -> None:
    output = tmp_path / "corpus.jsonl"
    output.write_text("mine")
    with pytest.raises(CorpusError, match="not from this command"):
        build_corpus("musique", questions(tmp_path), output)
    assert output.read_text() == "mine"


@every_dataset
def test_truncated_input_is_an_error_with_its_place_and_what_was_done_is_kept(
    dataset: str, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    named, output = MAKERS[dataset](tmp_path), tmp_path / "corpus.jsonl"
    broken = RECIPES[dataset].files(named)[-1]
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-50])
    with pytest.raises(CorpusError, match=rf"{broken.name}, (line|entry|member) \d+: "):
        build_corpus(dataset, named, output)
    assert (state := read_checkpoint(output)) is not None
    assert state.paragraphs > 50
    broken.write_bytes(whole)
    assert build_corpus(dataset, named, output).resumed == state.paragraphs
    assert output.read_bytes() == undisturbed[dataset]


@pytest.mark.parametrize(
    ("dataset", "record", "complaint"),
    [
        ("hotpotqa", '{"title": "T"}', "line 2: .*`text`"),
        ("hotpotqa", "{", "line 2: .*valid JSON"),
        ("2wikimultihopqa", '{"_id": "q"}', "entry 2: .*`context`"),
        ("2wikimultihopqa", '{"context": [["T", ["a\\u0000b"]]]}', "entry 2: .*NUL"),
        ("2wikimultihopqa", '{"context": ]', "entry 2: .*valid JSON"),
        ("musique", '{"id": "q"}', "line 2: .*`paragraphs`"),
        ("iirc", "7", r"member 2: .*must be text in quotation marks"),
        ("iirc", '"a" "b"', "member 2: .*valid JSON"),
    ],
)
def test_a_record_that_can_not_be_used_is_named(dataset: str, record: str, complaint: str, tmp_path: Path) -> None:
    path, output = tmp_path / "file", tmp_path / "corpus.jsonl"
    content = {
        "hotpotqa": f"{json.dumps(page(1))}\n{record}\n",
        "2wikimultihopqa": f'[{{"context": [["T", ["{text(1)}"]]]}}, {record}]',
        "musique": f"{json.dumps({'id': 'q', 'question': '?', 'paragraphs': mills([1])})}\n{record}\n",
        "iirc": f'{{"a": "{text(1)}", "b": {record}}}',
    }[dataset].encode()
    path.write_bytes(bz2.compress(content) if dataset == "hotpotqa" else content)
    with pytest.raises(CorpusError, match=f"file, {complaint}"):
        build_corpus(dataset, [path], output)
    assert draft_path(output).read_bytes().count(b"\n") == 1


@pytest.mark.parametrize("asked", RECIPES)
@pytest.mark.parametrize("given_", RECIPES)
def test_files_of_another_dataset_are_refused_before_anything_is_written(
    asked: str, given_: str, tmp_path: Path
) -> None:
    if asked == given_:
        return
    files, output = RECIPES[given_].files(MAKERS[given_](tmp_path)), tmp_path / "corpus.jsonl"
    with pytest.raises(CorpusError, match=r"seems to (hold|be) .*; name "):
        build_corpus(asked, files, output)
    assert not list(tmp_path.glob("corpus.jsonl*"))


def test_a_folder_without_abstracts_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"holds no wiki_\*\.bz2"):
        build_corpus("hotpotqa", [tmp_path], tmp_path / "corpus.jsonl")


def test_a_dump_that_is_still_packed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="is still packed; unpack it"):
        build_corpus("hotpotqa", [tmp_path / "abstracts.tar.bz2"], tmp_path / "corpus.jsonl")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nowhere.jsonl isn't a file"):
        build_corpus("musique", [tmp_path / "nowhere.jsonl"], tmp_path / "corpus.jsonl")


@pytest.mark.parametrize(("dataset", "content"), [("musique", ""), ("2wikimultihopqa", "[]"), ("iirc", "{}")])
def test_files_without_paragraphs_are_an_error(dataset: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(CorpusError, match="there are no paragraphs"):
        build_corpus(dataset, [path], tmp_path / "corpus.jsonl")


def test_an_unknown_dataset_is_an_error_that_lists_them(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="hotpotqa, 2wikimultihopqa, musique, iirc"):
        build_corpus("squad", [], tmp_path / "corpus.jsonl")


def test_two_processes_do_not_build_the_same_corpus(tmp_path: Path) -> None:
    files, output = questions(tmp_path), tmp_path / "corpus.jsonl"

    def second(_: BuildProgress) -> None:
        with pytest.raises(CorpusError, match="another process is building"):
            build_corpus("musique", files, output)

    assert build_corpus("musique", files, output, progress=second).is_new


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    told: list[BuildProgress] = []
    built = build_corpus("hotpotqa", abstracts(tmp_path), tmp_path / "corpus.jsonl", progress=told.append)
    assert told[-1].done == told[-1].total
    assert told[-1].paragraphs == built.paragraphs
    assert [each.done for each in told] == sorted(each.done for each in told)


@given(st.lists(st.binary(min_size=16, max_size=16) | st.sampled_from([b"\0" * 16, b"\0" * 15 + b"\1"])))
def test_a_digest_set_is_a_set(digests: list[bytes]) -> None:
    compact, plain = DigestSet(), set()
    for digest in digests:
        assert compact.add(digest) == (digest not in plain)
        plain.add(digest)
    assert all(digest in compact for digest in digests)
    assert (b"\2" * 16 in compact) == (b"\2" * 16 in plain)


@given(st.lists(st.binary(min_size=14, max_size=14).map(lambda tail: bytes(b % 2 for b in tail)), max_size=300))
def test_a_digest_that_lies_across_two_others_is_not_taken_for_one(tails: list[bytes]) -> None:
    compact, plain = DigestSet(), set()
    for digest in (b"xx" + tail for tail in tails):
        assert compact.add(digest) == (digest not in plain)
        plain.add(digest)
