"""Markdown and text files, and folders of them, become passages by the rules that docs/data.md states."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.questions import Paragraph
from cotrail.data.corpora.documents import MOST_WORDS, look_into, passages
from cotrail.data.corpora.files import read_corpus
from cotrail.errors import CorpusError
from tests.cases import each_case

MARKDOWN = """---
title: left out
---
Before any heading.

# Manual

First.

Second
of two lines.

***

## Installation

```console
# no heading

    indented
```

- one

  more
- two

Linux
-----

> # quoted, no heading

| a | b |
| --- | --- |
| 1 | 2 |

[link]: http://host

# Other
"""


def read(*paths: Path) -> list[Paragraph]:
    return list(read_corpus(paths))


def parts(*paths: Path) -> list[tuple[str, str, str]]:
    return [(each.id, each.title, each.text) for each in read(*paths)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    for name, text in {
        "b.md": "B.",
        "a/x.txt": "one\n\ntwo",
        "a.MARKDOWN": "# A\n\nA.",
        "a/.hidden.md": "hidden",
        ".git/c.md": "hidden",
        "a/data.jsonl": "{}",
        "picture.png": "x",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_markdown_is_cut_at_headings_and_packed(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text(MARKDOWN)
    assert parts(tmp_path / "guide.md") == [
        ("guide.md#1", "guide", "Before any heading."),
        ("guide.md#2", "Manual", "First.\n\nSecond\nof two lines."),
        (
            "guide.md#3",
            "Manual > Installation",
            "```console\n# no heading\n\n    indented\n```\n\n- one\n\n  more\n- two",
        ),
        (
            "guide.md#4",
            "Manual > Linux",
            "> # quoted, no heading\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n[link]: http://host",
        ),
    ]


def test_a_folder_is_read_in_the_order_of_its_paths(folder: Path) -> None:
    assert parts(folder) == [("a/x.txt#1", "x", "one\n\ntwo"), ("a.MARKDOWN#1", "A", "A."), ("b.md#1", "b", "B.")]
    assert len(look_into(folder).others) == 2
    assert [each[0] for each in parts(folder / "b.md", folder / "a")] == ["b.md#1", "a/x.txt#1"]


def test_ids_do_not_depend_on_where_the_command_is_given(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(folder)
    monkeypatch.chdir(folder / "a")
    assert read(Path("..")) == read(Path("../../notes")) == whole


def test_links_to_folders_are_not_followed(folder: Path) -> None:
    (folder / "loop").symlink_to(folder)
    assert len(read(folder)) == 3


def test_text_that_comes_twice_is_kept_once(folder: Path) -> None:
    (folder / "c.md").write_text("# A\n\nA.\n\n# Later\n\nA.")
    assert [each[0] for each in parts(folder)][-1] == "c.md#2"


@pytest.mark.parametrize(
    "front", ["---\nx: 1\n...\n", "+++\nx = 1\n+++\n", "---\r\nx: 1\r\n---\r\n", "\ufeff---\n---\n"]
)
def test_front_matter_is_left_out(front: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(f"{front}Text.\r\nMore.".encode())
    assert [each.text for each in read(tmp_path / "a.md")] == ["Text.\nMore."]


def test_a_rule_at_the_beginning_begins_no_front_matter_that_never_ends(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nText.")
    assert [each.text for each in read(tmp_path / "a.md")] == ["Text."]


def words(count: int, last: str = "w") -> str:
    return " ".join([*["w"] * (count - 1), last])


def test_blocks_are_packed_and_only_longer_ones_cut() -> None:
    assert list(passages([words(60), words(40), words(1)])) == [f"{words(60)}\n\n{words(40)}", "w"]
    assert list(passages([words(60), words(41)])) == [words(60), words(41)]
    sentences = f"{words(70, 'end.')} {words(20, 'quoted.”')}"
    assert list(passages([f"{sentences} {words(20)}"])) == [sentences, words(20)]
    assert list(passages([f"{words(70)}\n  {words(70)}"])) == [words(70), f"  {words(70)}"]
    assert list(passages([words(250)])) == [words(100), words(100), words(50)]
    assert list(passages(["", "  \n "])) == []


@given(st.lists(st.text("ab. \n", max_size=600)))
def test_no_word_is_lost_or_repeated(blocks: list[str]) -> None:
    made = list(passages(blocks))
    assert " ".join(made).split() == " ".join(blocks).split()
    assert all(len(each.split()) <= MOST_WORDS for each in made)


@given(st.text("#=-`>*+\n a[]:<!", max_size=200))
def test_any_markdown_is_read(text: str) -> None:
    from cotrail.data.corpora.documents import of_text

    lines = {line.rstrip() for line in text.split("\n")}
    for section in of_text(text):
        assert all(line.rstrip() in lines for block in section.blocks for line in block.split("\n"))


@each_case("atom", ["a\n\n", "# a\n", "> ", "- ", "[", "```\n", "<!--\n", "a\n=\n", "1. a\n", "w ", "w. ", " "])
def test_a_large_document_is_read(atom: str, tmp_path: Path) -> None:
    for name in ("a.md", "b.txt"):
        (tmp_path / name).write_text(atom * (50_000 // len(atom)) + f"\n\nend of {name}")
    assert read(tmp_path)[-1].text.endswith("end of b.txt")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.md", b"caf\xe9", r"a\.md, line 1: not UTF-8 text; save the file as UTF-8"),
        ("a.txt", b"\n\0", r"a\.txt, line 2: a NUL byte"),
        ("a.md", "text".encode("utf-16"), "is text in UTF-16; convert it to UTF-8: iconv"),
        ("a.md", b"a" * (4 * 2**20 + 1), "is larger than 4 MiB; divide it"),
        ("a.md", b"# Title alone\n", r"no paragraphs in .*notes"),
        ("a.png", b"PNG", r"is a folder without a document \(.*\) or a file of records \(\.jsonl, .*name another"),
        ("a\n.md", b"text", r"the id \"a\\n\.md#1\" holds a line break"),
        ("a.md", b"w" * 1_000_001, r"a\.md, passage 1: the paragraph has 1,000,0\d\d characters"),
    ],
)
def test_what_can_not_be_read_is_refused(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / name).write_bytes(content)
    with pytest.raises(CorpusError, match=said):
        read(tmp_path / "notes")


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.md")).write_text("x")
    with pytest.raises(CorpusError, match="the file's name isn't UTF-8; rename it"):
        read(tmp_path)


@pytest.mark.parametrize("content", ['{"id": "1", "text": "x"}\n', '[{"id": "1", "text": "x"}]', "id\ttext\n1\tx\n"])
def test_paragraphs_in_a_text_file_are_paragraphs(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(content)
    assert parts(tmp_path / "a.txt") == [("1", "", "x")]
