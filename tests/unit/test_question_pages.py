"""What the page on a question is made of: turns and pages of them, marked words, the lines of gold and of time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.core.results import Failure
from cotrail.models.queries.traces import TracedStep
from cotrail.models.schema.states import StepState
from cotrail.services.results.questions import shown_question
from cotrail.services.results.reasoning import FoundGold, GoldSearch
from cotrail.services.results.steps import StepTimes, shown_steps
from cotrail.viewer.drawings import LEFT, RIGHT, gold_line, timeline
from cotrail.viewer.page import Shown
from cotrail.viewer.rendering import MOST_MARKS, Here, marked, render
from cotrail.viewer.turns import (
    LENGTH,
    MOST_HITS,
    PAGE_WEIGHT,
    Turn,
    first_seen,
    pages_of,
    shown_hits,
    snippet,
    turns_of,
)
from tests.unit.made_runs import OWLS, question, record, search, written

DAWN = datetime(2026, 1, 2, tzinfo=UTC)


def turns(*steps: TracedStep, together: Sequence[Sequence[int]] = ()) -> tuple[Turn, ...]:
    """The turns of these steps; together: those that were asked for at once."""
    batches = {step: number for number, batch in enumerate(together) for step in batch}
    return turns_of(list(shown_steps(question(steps=steps))), batches)


def sequences(made: Sequence[Turn]) -> list[list[int]]:
    return [[step.sequence for step in turn.steps] for turn in made]


def paragraphs(first: int, count: int) -> list[Paragraph]:
    return [Paragraph(id=str(n), title=f"Page {n}", text="It is.") for n in range(first, first + count)]


def test_a_turn_ends_with_what_a_model_wrote() -> None:
    steps = [search(0, OWLS), written(1, "a"), search(2), search(3), written(4, "b"), written(5, "c"), search(6)]
    assert sequences(turns(*steps)) == [[0, 1], [2, 3, 4], [5], [6]]


def test_steps_that_were_asked_for_together_stay_together_side_by_side() -> None:
    steps = [written(0, "a"), written(1, "b"), search(2), written(3, "c")]
    made = turns(*steps, together=[(0, 1, 2), (3,)])
    assert sequences(made) == [[0, 1, 2], [3]]
    assert [[step.sequence for step in row.steps] for row in made[0].rows] == [[0, 1], [2]]


def test_a_turn_knows_what_it_found_first() -> None:
    made = turns(search(0, OWLS), written(1, "a"), search(2, OWLS, *paragraphs(1, 1)))
    assert [len(turn.new) for turn in made] == [1, 1]
    assert [len(turn.gold) for turn in made] == [1, 1]
    hits = shown_hits(made[1].steps[0], made[1], first_seen(made))
    assert [each.seen_at for each in hits] == [1, None]


def test_no_page_of_turns_weighs_more_than_it_may() -> None:
    searches = [search(n, *paragraphs(100 * n, MOST_HITS + 5)) for n in range(9)]
    for made in (turns(*searches), turns(*searches, together=[range(9)])):
        assert [number for turn in sequences(made) for number in turn] == list(range(9))
        pages = pages_of(made)
        assert len(pages) > 1
        assert all(sum(turn.weight for turn in page.turns) <= PAGE_WEIGHT for page in pages)
        assert [turn.number for page in pages for turn in page.turns] == list(range(1, len(made) + 1))


def test_words_that_were_searched_for_are_marked_as_often_as_a_page_bears() -> None:
    found = Paragraph(id="p", title="Lorn", text="Towns lie on the River Lorn; a town is <b>one</b>.")
    [turn] = turns(search(0, found, query="Which towns has the river?"))
    [hit] = shown_hits(turn.steps[0], turn, first_seen([turn]))
    assert hit.matched == ("Towns", "River", "town")
    assert "a <mark>town</mark> is &lt;b&gt;one&lt;/b&gt;." in marked(hit.text, hit.matched)
    assert marked("town " * 1000, hit.matched).count("<mark>") == MOST_MARKS


def test_a_snippet_begins_where_the_first_word_is() -> None:
    shown = snippet(f"{'far away ' * 100}the Lorn flows {'on ' * 300}", ["Lorn"])
    assert "the Lorn flows" in shown
    assert shown.startswith("…away far")
    assert shown.endswith("…")
    assert len(shown) <= LENGTH + 2


def test_the_line_of_gold_goes_up_where_one_is_found() -> None:
    gold = [_gold(None), _gold(3), _gold(1), _gold(3)]
    line = gold_line(gold, {1: 1, 3: 2}, turns=2)
    assert line is not None
    assert [(each.turn, each.found) for each in line.points] == [(1, 1), (2, 3)]
    assert line.words == "1 of 4 at turn 1, 3 of 4 at turn 2"
    assert gold_line([], {}, turns=2) is None


@pytest.mark.parametrize(
    ("count", "words"), [(1, "it was never found"), (2, "none of the 2 gold paragraphs was found")]
)
def test_the_line_of_gold_stays_at_the_bottom_where_none_is_found(count: int, words: str) -> None:
    line = gold_line([_gold(None)] * count, {1: 1}, turns=2)
    assert line is not None
    assert line.points == ()
    assert line.words == words


def test_time_in_which_nothing_works_is_drawn_shorter() -> None:
    drawn = timeline([_times(0, 0, 1, 11), _times(1, 11, 3611, 3621), _times(2, 3621, 3621, None)])
    assert drawn is not None
    first, second, third = drawn.bars
    assert first.ended - first.begun == pytest.approx(second.ended - second.begun)
    [hour] = [each for each in drawn.pauses if each.words == "1 h 00 min"]
    assert hour.width < second.ended - second.begun
    assert (second.asked, second.begun) == pytest.approx((hour.x, hour.x + hour.width))
    assert (first.asked, third.begun) == pytest.approx((LEFT, RIGHT))
    assert third.under_way
    assert drawn.words == "steps claimed for 20 s, none for 1 h 00 min"


def test_steps_that_work_at_once_stand_below_each_other() -> None:
    drawn = timeline([_times(0, 0, 0, 9), _times(1, 0, 1, 5), _times(2, 0, 6, 9), _times(3, 0, 7, 8, kind="read")])
    assert drawn is not None
    rows = {bar.step: bar.y for bar in drawn.bars}
    assert rows[0] < rows[1] == rows[2] < rows[3] == drawn.lanes["read"]
    assert timeline([]) is None


def _gold(step: int | None) -> FoundGold:
    made = GoldParagraph(title="Owls", text=str(step))
    found = None if step is None else GoldSearch(step=step, search=1, rank=1, query="", paragraph_id="p")
    return FoundGold(id=None, title=made.title, text=made.text, collected=step is not None, found=found)


def _times(sequence: int, asked: float, begun: float, ended: float | None, kind: str = "retrieve") -> StepTimes:
    at = [None if seconds is None else DAWN + timedelta(seconds=seconds) for seconds in (begun, ended)]
    return StepTimes(
        sequence=sequence,
        kind=kind,
        state=StepState.RUNNING if ended is None else StepState.FINISHED,
        batch=sequence,
        asked_at=DAWN + timedelta(seconds=asked),
        started_at=at[0],
        finished_at=at[1],
    )


TEXT = """\
Do owls hunt at night?
run run-1, question q1: finished
answer: yes (right)
gold: yes
gold paragraph Owls: found by search 1 (step 0), rank 1

Turn 1
0 searched for “birds”
  1. Owls (2.50) [gold]
1 reason
  Owls hunt at night. &lt;b&gt;
  failed: StepError: no such luck
"""


def test_a_question_is_there_as_text() -> None:
    failure = Failure(type="StepError", message="no such luck")
    asked = question(steps=(search(0, OWLS), written(1, "Owls hunt at night. <b>", failure=failure)))
    shown = shown_question(record(), asked)
    [page] = pages_of(turns_of(shown.steps, {}))
    made = Shown(template="question-text.html", values={"shown": shown, "current": page})
    assert render(made, Here(path="/", query={})) == TEXT
