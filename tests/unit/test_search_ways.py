"""The way in which a run searches: put into a system's searches, with ratings behind them, unseen by the system."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.embed import Rate
from cotrail.core.actions.retrieve import Open, Retrieve
from cotrail.core.questions import Hit, ListPlace, Paragraph
from cotrail.core.results import Failure, Rated, Result, Retrieved
from cotrail.core.search_ways import SearchWay, pinned_way, read_retriever, searched
from cotrail.core.system import Action, Answer, LimitReached, StepFailed, System, Together
from cotrail.engines.retrieval.fusion import ListName, fused, reciprocal_ranks, weighted_scores

RERANKED = SearchWay(retriever="hybrid", reranked=6)
FAILURE = Failure(type="StepError", message="no")


def hits(query: str, count: int) -> tuple[Hit, ...]:
    """What a search for it finds: paragraphs named by the query, the first one the best."""
    return tuple(
        Hit(paragraph=Paragraph(id=f"{query}{n}", title="", text=f"{query} {n}"), rank=n, score=1 / n)
        for n in range(1, count + 1)
    )


def outcome(action: Action) -> Result:
    """A search finds as many as it asks for; ratings turn their order round."""
    if isinstance(action, Rate):
        return Rated(scores=tuple(float(n) for n in range(len(action.paragraphs))))
    assert isinstance(action, Retrieve)
    return Retrieved(hits=hits(action.query, action.count))


def drive(system: System, answer: Callable[[Action], Result] = outcome) -> tuple[Answer, list[tuple[Action, ...]]]:
    """What the system answers, and the actions that it yielded, each time one or several together."""
    yielded: list[tuple[Action, ...]] = []
    try:
        asked = next(system)
        while True:
            actions = asked.actions if isinstance(asked, Together) else (asked,)
            yielded.append(actions)
            try:
                results = tuple(map(answer, actions))
            except (StepFailed, LimitReached) as thrown:
                asked = system.throw(thrown)
            else:
                asked = system.send(results if isinstance(asked, Together) else results[0])
    except StopIteration as stop:
        return stop.value, yielded


def asking(*actions: Action, seen: list[Any]) -> System:
    """Asks for all at once, and for the first alone afterwards."""
    seen.append((yield Together(actions)))
    seen.append((yield actions[0]))
    return Answer(text="done")


def test_hits_are_reranked_by_a_step_and_cut_to_what_was_asked_for() -> None:
    seen: list[Any] = []
    search = Retrieve(query="q", count=2)
    title, page = Retrieve(query="t", count=1, field="title"), Open(title="t")
    given_back = lambda each: Retrieved(hits=()) if each == page else outcome(each)  # noqa: E731
    answer, yielded = drive(searched(asking(search, title, page, seen=seen), RERANKED), given_back)
    assert answer.text == "done"
    wide = Retrieve(query="q", count=6, options={"retriever": "hybrid"})
    rate = Rate(by="relevance", text="q", paragraphs=tuple(hit.paragraph for hit in hits("q", 6)))
    assert yielded == [(wide, title, page), (rate,), (wide,), (rate,)]
    best = [("q6", 1, 5.0), ("q5", 2, 4.0)]
    for reply in (seen[0][0], seen[1]):
        assert [(hit.paragraph.id, hit.rank, hit.score) for hit in reply.hits] == best
        assert reply.hits[0].lists == (ListPlace(list="found", rank=6, score=1 / 6),)
    assert seen[0][1:] == (outcome(title), Retrieved(hits=()))


def test_of_more_hits_only_the_best_are_reranked() -> None:
    seen: list[Any] = []
    search = Retrieve(query="q", count=4)
    _, yielded = drive(searched(asking(search, seen=seen), SearchWay(reranked=2)))
    assert yielded[1] == (Rate(by="relevance", text="q", paragraphs=tuple(hit.paragraph for hit in hits("q", 2))),)
    assert [(hit.paragraph.id, hit.rank) for hit in seen[1].hits] == [("q2", 1), ("q1", 2), ("q3", 3), ("q4", 4)]


def test_the_usual_way_changes_nothing() -> None:
    seen: list[Any] = []
    search = Retrieve(query="q", count=2)
    _, yielded = drive(searched(asking(search, seen=seen), SearchWay(retriever="dense")))
    assert [each.options for actions in yielded for each in actions if isinstance(each, Retrieve)] == [
        {"retriever": "dense"}
    ] * 2
    assert seen == [(outcome(search),), outcome(search)]


def test_a_search_that_finds_nothing_is_not_rated_and_one_that_filters_stays() -> None:
    seen: list[Any] = []
    after = Retrieve(query="q", count=2, titles=("T",), scope="after")
    _, yielded = drive(searched(asking(after, seen=seen), RERANKED), lambda _: Retrieved(hits=()))
    assert [each.count for actions in yielded for each in actions if isinstance(each, Retrieve)] == [2, 2]


def test_a_failure_reaches_the_system_with_how_all_others_ended() -> None:
    searches = (Retrieve(query="a", count=1), Retrieve(query="b", count=1))

    def system(seen: list[Any]) -> System:
        try:
            yield Together(searches)
        except StepFailed as failed:
            seen.append(failed)
        return Answer(text="went on")

    def search_fails(action: Action) -> Result:
        if isinstance(action, Retrieve) and action.query == "b":
            raise StepFailed(FAILURE, (outcome(searched_a), FAILURE))
        return outcome(action)

    def rating_fails(action: Action) -> Result:
        if isinstance(action, Rate):
            raise StepFailed(FAILURE, (outcome(action), FAILURE))
        return outcome(action)

    searched_a = Retrieve(query="a", count=6)
    for failing in (search_fails, rating_fails):
        seen: list[Any] = []
        answer, _ = drive(searched(system(seen), RERANKED), failing)
        assert answer.text == "went on"
        assert seen[0].failure == FAILURE
        ended, failure = seen[0].outcomes
        assert failure == FAILURE
        assert [hit.paragraph.id for hit in ended.hits] == ["a6"]


@pytest.mark.parametrize("at", [Retrieve, Rate])
def test_a_limit_reaches_the_system_with_what_was_found(at: type[Action]) -> None:
    def system(seen: list[Any]) -> System:
        try:
            yield Retrieve(query="q", count=2)
        except LimitReached as reached:
            seen.append(reached)
        return Answer(text="from what there is")

    def limited(action: Action) -> Result:
        if isinstance(action, at):
            raise LimitReached("steps", (outcome(action),) if at is Retrieve else ())
        return outcome(action)

    seen: list[Any] = []
    answer, _ = drive(searched(system(seen), RERANKED), limited)
    assert answer.text == "from what there is"
    assert seen[0].limit == "steps"
    assert [hit.paragraph.id for hit in seen[0].outcomes[0].hits] == ["q1", "q2"]


def test_a_system_that_is_dropped_is_closed() -> None:
    closed: list[bool] = []

    def system() -> System:
        try:
            yield Retrieve(query="q", count=1)
        finally:
            closed.append(True)
        return Answer(text="")

    running = searched(system(), RERANKED)
    next(running)
    running.close()
    assert closed == [True]


def test_a_run_pins_its_way() -> None:
    for way in (SearchWay(), SearchWay(retriever="dense"), RERANKED):
        assert pinned_way(way.pins | {"wikidata": "r"}) == way
    assert SearchWay().pins == {}


@pytest.mark.parametrize("text", ["bm25=", "=1", "bm25=1,,dense=2", "bm25=1,bm25=2", "bm25=-1", "bm25=0", "a=1 b=2"])
def test_weights_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="give each list one weight above 0"):
        read_retriever(text)


def test_a_retriever_is_a_name_or_weights() -> None:
    assert read_retriever("hybrid") == "hybrid"
    assert read_retriever("bm25 = 0.3, dense=1") == {"bm25": 0.3, "dense": 1.0}


# Fusion, by hand.


def listed(*scored: tuple[str, float]) -> tuple[Hit, ...]:
    return tuple(
        Hit(paragraph=Paragraph(id=id_, title="", text=id_), rank=rank, score=score)
        for rank, (id_, score) in enumerate(scored, start=1)
    )


LISTS: dict[ListName, tuple[Hit, ...]] = {
    "bm25": listed(("a", 9.0), ("b", 5.0), ("c", 1.0)),
    "dense": listed(("d", 0.75), ("b", 0.5)),
}


def test_reciprocal_ranks_are_those_computed_by_hand() -> None:
    scores = reciprocal_ranks(LISTS, 60)
    assert scores == {"a": 1 / 61, "b": 1 / 62 + 1 / 62, "c": 1 / 63, "d": 1 / 61}
    assert [hit.paragraph.id for hit in fused(LISTS, scores, 9)] == ["b", "a", "d", "c"]
    [best] = fused(LISTS, scores, 1)
    places = ListPlace(list="bm25", rank=2, score=5.0), ListPlace(list="dense", rank=2, score=0.5)
    assert (best.rank, best.lists) == (1, places)


def test_weighted_scores_are_those_computed_by_hand() -> None:
    scores = weighted_scores(LISTS, {"bm25": 1.0, "dense": 3.0})
    assert scores == {"a": 0.25, "b": 0.125, "c": 0.0, "d": 0.75}
    assert weighted_scores({"bm25": listed(("a", 2.0), ("b", 2.0))}, {"bm25": 7.0}) == {"a": 1.0, "b": 1.0}
    assert weighted_scores({"dense": ()}, {"dense": 1.0}) == {}


@given(
    st.lists(st.tuples(st.text(max_size=3), st.floats(0, 100)), max_size=30, unique_by=lambda each: each[0]),
    st.integers(0, 40),
)
def test_one_list_alone_stays_in_its_order(scored: list[tuple[str, float]], count: int) -> None:
    only = {"dense": listed(*sorted(scored, key=lambda each: (-each[1], each[0])))}
    ranks = [hit.paragraph.id for hit in fused(only, reciprocal_ranks(only, 60), count)]  # type: ignore[arg-type]
    assert ranks == [hit.paragraph.id for hit in only["dense"]][:count]
