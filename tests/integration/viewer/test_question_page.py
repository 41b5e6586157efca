"""The page on a question, and those of its steps."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, func, select, text

from cotrail.configuration.settings import Settings, settings
from cotrail.core.questions import Question
from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import questions, steps
from cotrail.viewer.links import link
from tests.integration import judged
from tests.integration.asked_service import bearer, service
from tests.integration.ended import end_run
from tests.integration.viewer import turned
from tests.integration.viewer.shown_page import Page, text_of
from tests.unit.made_trees import mark, tree
from tests.unit.test_rethinking_tables import weighing

Read = Callable[..., Page]

MOST_ELEMENTS = 3000


@pytest.fixture
def read(engine: Engine, database: str, servers: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Read]:
    """Reads a page of the service in this process."""
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database.replace("+psycopg", ""))
    monkeypatch.setenv("COTRAIL_BROKER_URL", servers.broker)
    settings.cache_clear()
    with service() as client:

        def read(address: str, *, status: int = 200) -> Page:
            answer = client.get(address, headers={"Accept": "text/html"})
            assert answer.status_code == status, answer.text
            return Page(answer.text)

        yield read


def address(run: str, question: str, **query: Any) -> str:
    return link("runs", run, "questions", question, **query)


def key(number: int) -> str:
    return f"q {number}/{turned.HOSTILE}"


def test_the_answer_stands_beside_the_gold_one_with_what_went_wrong(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 4)
    page = read(address(run, "2"))
    head = text_of(page.named("asked"))
    assert "question 2 of 3" in head
    assert "Answer Marlow ✗ wrong" in head
    assert "Gold Grayle" in head
    assert "EM 0" in head
    assert "paragraph recall 0.67" in head
    assert "gold never found" in head
    assert page.linked("up") == f"/runs/{run}"
    assert page.linked("prev") == address(run, key(0))
    assert page.linked("next") == address(run, key(2))


def test_a_line_says_in_which_turns_the_gold_paragraphs_were_found(engine: Engine, read: Read) -> None:
    page = read(address(turned.answer(engine, 4), "1"))
    [drawing] = [each for each in page.of("svg") if each.attrib.get("aria-label", "").startswith("Gold found")]
    assert drawing.attrib["aria-label"] == "Gold found: 1 of 3 at turn 1, 2 of 3 at turn 3"
    assert len(list(drawing.iter("circle"))) == 2
    golds = [text_of(each) for each in page.named("asked").iter("li") if each.attrib.get("class") in ("got", "missed")]
    assert ["found in turn 1, rank 2" in golds[0], "found in turn 3, rank 2" in golds[1]] == [True, True]
    assert "not found" in golds[2]


def test_a_card_has_a_search_with_what_it_found_and_the_sentence_written_from_it(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 4)
    page = read(address(run, "1"))
    cards = page.having("data-turn")
    assert [each.attrib["id"] for each in cards] == ["turn-1", "turn-2", "turn-3"]
    first, second, third = cards
    hits = list(first.iter("li"))
    assert [each.attrib["value"] for each in hits] == ["1", "2", "3"]
    assert ["data-gold" in each.attrib for each in hits] == [False, True, False]
    assert [each.text for each in hits[1].iter("mark")][:2] == ["bridge", "1"]
    assert "★ gold" in text_of(hits[1])
    assert "So it is." in text_of(first)
    assert "Let me see." in text_of(first)
    [failed] = [each for each in second.iter() if "data-error" in each.attrib]
    assert "StepError: it can't be searched for" in text_of(failed)
    assert "seen in turn 1" in text_of(next(third.iter("li")))
    assert next(third.iter("a")).attrib["href"] == f"{address(run, '1', turns=3)}#turn-3"


def test_what_people_and_models_wrote_is_only_text(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 4)
    for page in (
        read(address(run, "1")),
        read(f"{address(run, key(0))}/steps/1"),
        read(f"{address(run, '1')}/steps/2"),
    ):
        assert [each.attrib.get("src", "") for each in page.of("script")] == [page.of("script")[0].attrib["src"]]
        assert page.of("img") == []
        assert not page.having("style")
        assert "<script>alert(1)</script>" in text_of(page.root)


def test_every_id_is_given_once_and_links_within_the_page_lead_somewhere(engine: Engine, read: Read) -> None:
    page = read(address(turned.answer(engine, 4), "1"))
    ids = [each.attrib["id"] for each in page.having("id")]
    assert len(ids) == len(set(ids))
    inner = {each.attrib["href"] for each in page.of("a") if each.attrib["href"].startswith("#")}
    assert {each[1:] for each in inner} <= set(ids)


def test_texts_are_folded_all_or_none(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 4)
    thoughts = "thoughts-1"
    assert "open" not in read(address(run, "1")).named(thoughts).attrib
    assert "open" in read(address(run, "1", fold="none")).named(thoughts).attrib
    assert "open" not in read(address(run, "1", fold="all")).named(thoughts).attrib


def test_a_step_s_page_has_what_is_recorded_of_it(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 4)
    loaded = [each.attrib["data-load"] for each in read(address(run, "1")).having("data-load")]
    assert loaded[1] == f"{address(run, key(0))}/steps/1#record"
    page = read(loaded[1].partition("#")[0])
    record = text_of(page.named("record"))
    assert "120 tokens read, 20 of them from the cache; 7 written" in record
    shown = [[text_of(cell) for cell in row.iter("td")] for row in page.of("tr") if "left out" in text_of(row)]
    assert [row[:2] for row in shown] == [["Page 1, 3", "left out"]]
    assert "finished" in record
    assert "Q: Which town has bridge 0?" in text_of(page.named("prompt-1"))
    assert "Page 1, 3" not in text_of(page.named("prompt-1"))
    assert page.linked("up") == address(run, key(0))
    failed = read(f"{address(run, '1')}/steps/2")
    assert "failed: StepError" in text_of(failed.named("record"))
    read(f"{address(run, '1')}/steps/99", status=404)


def test_only_who_may_submit_is_offered_to_try_again(engine: Engine, read: Read, cotrail: Any) -> None:
    run = turned.answer(engine, 4)
    again = f"{address(run, key(0))}/steps/1/again"
    assert again in {each.attrib.get("href") for each in read(f"{address(run, key(0))}/steps/1").of("a")}
    made = cotrail("token", "create", "reader", "--scope", "read", "--json")
    assert made.exit_code == 0, made.output
    secret = next(word for word in made.output.replace('"', " ").split() if word.startswith("cotrail_"))
    with service(here=False) as client:
        headers = bearer(secret) | {"Accept": "text/html"}
        answer = client.get(f"{address(run, key(0))}/steps/1", headers=headers)
        assert answer.status_code == 200, answer.text
        assert again not in {each.attrib.get("href") for each in Page(answer.text).of("a")}


def test_a_question_under_way_is_followed(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 6, steps=5)
    page = read(address(run, "1"))
    [body] = page.of("body")
    assert body.attrib["data-events"] == f"/v1{address(run, key(0))}/events"
    writing = page.named("writing")
    assert "hidden" in writing.attrib
    assert (list(writing)[-1].tag, text_of(list(writing)[-1])) == ("p", "")
    assert "data-grows" in page.named("turns").attrib
    ended = read(address(turned.answer(engine, 4, run="ended"), "1"))
    assert "data-events" not in ended.of("body")[0].attrib


def test_a_thousand_steps_are_paged(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 5)
    _lengthen(engine, run, 1000)
    first, last = read(address(run, "1")), read(address(run, "1", turns=400))
    for page in (first, last):
        assert "1,000 steps" in text_of(page.named("asked"))
        assert len(page) <= MOST_ELEMENTS
    assert "turn-400" in {each.attrib["id"] for each in last.having("data-turn")}
    assert first.having("data-gold")[-1].attrib["href"].startswith(f"{address(run, '1')}?turns=")
    assert last.having("data-error")[0].attrib["href"].startswith(f"{address(run, '1')}?turns=")


def test_a_tree_is_drawn_as_a_tree(engine: Engine, read: Read) -> None:
    asked = [Question(id="q0", text="Who built it?", answers=("Ada",))]
    drawn = tree("mc- df", path=(0, 1, 4), final=f"Ada [1]. {turned.HOSTILE}", marks=[mark("Ada", 0)])
    page = read(address(end_run(engine, asked, [drawn], system="searchain"), "q0"))
    nodes = [each for each in page.of("li") if each.attrib.get("class", "").startswith("node")]
    assert len(nodes) == 5
    assert "Final content Ada [1]." in text_of(page.named("drawn"))


def test_votes_are_drawn_with_the_chains_behind_them(engine: Engine, read: Read) -> None:
    asked = [Question(id="q0", text="Is it?", answers=("yes",))]
    votes = weighing([("no", 0.1), ("yes", 0.9), ("no", 0.2)])
    page = read(address(end_run(engine, asked, [votes], system="rethinking", dataset="strategyqa"), "q0"))
    assert [each.attrib["id"] for each in page.of("article")] == [f"q-1-chain-{number}" for number in (1, 2, 3)]
    assert "✓ right" in text_of(page.named("drawn"))


def test_judges_say_what_they_think_of_it_and_a_judge_s_own_question_what_it_graded(engine: Engine, read: Read) -> None:
    run = judged.answer(engine)
    judge = judged.judge(engine, judged.verdicts({"q0": judged.verdict("correct", 90)}), name="grader")
    assert "correct (90% sure)" in text_of(read(address(run, "q0")).named("asked"))
    own = text_of(read(address(judge, "q0")).named("drawn"))
    assert f"What was graded {run}" in own
    assert "It is correct." in own


def _lengthen(engine: Engine, run: str, length: int) -> None:
    """Repeats the recorded steps of a run's first question until there are so many."""
    copied = ", ".join(each.name for each in steps.c if each.name not in {"id", "sequence", "previous", "ended_in"})
    with engine.begin() as connection:
        amending(connection)
        of_run = select(questions.c.id).where(questions.c.run_id == run, questions.c.position == 0)
        id_ = connection.execute(of_run).scalar_one()
        recorded = connection.execute(select(func.count()).where(steps.c.question_id == id_)).scalar_one()
        bound = {"question": id_, "recorded": recorded, "length": length}
        connection.execute(
            text(
                f"INSERT INTO steps (sequence, previous, {copied}) "
                f"SELECT sequence + :recorded * time, previous || time, {copied} "
                "FROM steps, generate_series(1, :length / :recorded) AS time "
                "WHERE question_id = :question AND sequence + :recorded * time < :length"
            ),
            bound,
        )
        connection.execute(
            text(
                "INSERT INTO paragraph_sets (step_id, rank, question_id, query, digest, paragraph_id, score) "
                "SELECT again.id, rank, found.question_id, query, digest, paragraph_id, score "
                "FROM paragraph_sets AS found JOIN steps AS first ON first.id = found.step_id "
                "JOIN steps AS again ON again.question_id = first.question_id AND again.sequence >= :recorded "
                "AND again.sequence % :recorded = first.sequence WHERE first.question_id = :question"
            ),
            bound,
        )
