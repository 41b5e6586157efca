"""The paragraphs that a process keeps in mind."""

import pytest
from sqlalchemy import Engine

from cotrail.core.questions import Paragraph
from cotrail.models.records.contents import ParagraphCache, save_paragraphs

STORED = {each.digest: each for each in (Paragraph(id="", title=f"T{n}", text="Text.") for n in range(10))}


@pytest.fixture
def kept(engine: Engine) -> ParagraphCache:
    """Those of a process that keeps four at most."""
    with engine.begin() as connection:
        save_paragraphs(connection, STORED)
    return ParagraphCache(most=4)


def test_only_so_many_are_kept_and_these_are_the_latest(engine: Engine, kept: ParagraphCache) -> None:
    *most, last = STORED
    with engine.begin() as connection:
        for digest in most:
            kept.read(connection, [digest])
        found = kept.read(connection, [last])
    assert found[last].title == STORED[last].title
    assert len(kept.known) <= 5
    assert set(kept.known) >= {last, most[-1]}


def test_all_that_are_needed_at_once_are_there(engine: Engine, kept: ParagraphCache) -> None:
    with engine.begin() as connection:
        kept.read(connection, STORED)
        found = kept.read(connection, STORED)
    assert {digest: paragraph.text for digest, paragraph in found.items()} == dict.fromkeys(STORED, "Text.")


def test_what_the_process_stored_itself_is_not_read(engine: Engine) -> None:
    known, (digest, paragraph) = ParagraphCache(), next(iter(STORED.items()))
    known.add({digest: paragraph})
    with engine.begin() as connection:
        assert known.read(connection, [digest])[digest].title == paragraph.title
