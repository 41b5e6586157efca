"""The documentation's blocks are carried out: commands in a shell, Python, SQL, and files by what reads them.

Each page is followed in a folder with the files that it names, on one stack with scripted models, corpora and runs
that have ended (`doc_world`). What can't be run here is in a table with its reason, as is what stands for something of
the reader's own (`doc_pages.toml`).
"""

import shutil
from collections.abc import Iterator

import pytest

from tests.integration.doc_pages import (
    DATA,
    PAGES,
    ROOT,
    SHELL,
    SHOWN,
    Command,
    as_script,
    blocks,
    commands,
    is_elsewhere,
    runnable,
    tables,
)
from tests.integration.doc_world import World, world

LANGUAGES = {*SHELL, *DATA, *SHOWN, "python", "sql"}
FOLLOWED = [page for page in PAGES if runnable(page, *SHELL, *DATA, "python", "sql")]


@pytest.fixture(scope="module")
def reader() -> Iterator[World]:
    for program in ("curl", "jq"):  # which pages call
        if shutil.which(program) is None:
            pytest.skip(f"{program} isn't installed")
    with world() as made:
        yield made


@pytest.mark.parametrize("page", FOLLOWED)
def test_every_block_of_a_page_runs(reader: World, page: str) -> None:
    done = reader.page(page)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


def test_a_command_that_fails_is_named_by_its_line(reader: World) -> None:
    failing, following = Command(place="a.md:7", text="cotrail show nothing"), Command(place="a.md:8", text="true")
    done = reader.run(as_script([failing, following]))
    assert done.returncode == 1
    assert "FAILED at a.md:7: exit code 2" in done.stderr
    assert "a.md:8" not in done.stderr


def test_each_block_says_its_language() -> None:
    strange = [each.place for page in PAGES for each in blocks(page) if each.language not in LANGUAGES]
    assert strange == []


def test_each_entry_of_the_tables_is_about_a_block() -> None:
    texts = {page: [each.text for each in blocks(page)] for page in PAGES}
    lines = {
        page: [
            text
            for block in blocks(page)
            for text in ([each.text for each in commands(block)] if block.language in SHELL else [block.text])
        ]
        for page in PAGES
    }
    wrong = [f"left: {each.has}" for each in tables().left if not any(each.has in text for text in lines[each.page])]
    wrong += [f"files: {each.has}" for each in tables().files if not any(each.has in text for text in texts[each.page])]
    for each in tables().named:
        pages = [each.page] if each.page else PAGES
        if not any(each.shown in text for page in pages for text in texts[page]):
            wrong.append(f"named: {each.shown}")
    for page, other in tables().elsewhere.items():
        if (
            not any(is_elsewhere(each) for each in blocks(page))
            or page.split("/")[-1] not in (ROOT / other.test).read_text()
        ):
            wrong.append(f"elsewhere: {page}")
    assert wrong == []
