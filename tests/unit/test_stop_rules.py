from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.errors import InputError
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.confidence_intervals import confidence_sequence, narrower_after
from cotrail.evaluation.metrics.stop_rules import SHORT_NAMES, StopRule, parse_rule
from tests.cases import each_case

scores = st.lists(st.floats(0, 1), max_size=60)


@each_case(
    ("text", "rule"),
    [
        ("width(f1) < 0.05", StopRule("answer_f1", 0.05)),
        ("  width( EM )<.1 ", StopRule("answer_em", 0.1)),
        ("width(recall_at_5) < 1e-2", StopRule("recall_at_5", 0.01)),
        ("width(crag) < 1.5", StopRule("crag", 1.5)),
    ],
)
def test_a_rule_is_read_and_written_again(text: str, rule: StopRule) -> None:
    assert parse_rule(text) == rule
    assert parse_rule(str(rule)) == rule


@each_case(
    ("text", "said"),
    [
        ("f1 < 0.05", "write width(METRIC) < NUMBER"),
        ("width(f1) > 0.05", "write width(METRIC) < NUMBER"),
        ("", "write width(METRIC) < NUMBER"),
        ("width(" * 10_000, "write width(METRIC) < NUMBER"),
        ("width(answer_f2) < 0.05", "there is no metric 'answer_f2' (did you mean answer_f1?)"),
        ("width(paragraphs_collected) < 3", "paragraphs_collected is a number without a bound"),
        ("width(f1) < little", "'little' is no number"),
        ("width(f1) < 0", "answer_f1 needs one above 0 and below 1"),
        ("width(f1) < 1", "answer_f1 needs one above 0 and below 1"),
        ("width(f1) < nan", "answer_f1 needs one above 0 and below 1"),
        ("width(crag) < 2", "crag needs one above 0 and below 2"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_rule(text)
    assert said in str(refused.value)


def test_short_names_are_those_of_metrics_and_of_no_other() -> None:
    assert set(SHORT_NAMES.values()) <= METRICS.keys()
    assert not SHORT_NAMES.keys() & METRICS.keys()


@given(scores, st.floats(0.05, 0.95))
def test_it_stops_where_the_interval_is_narrow_for_the_first_time(values: list[float], width: float) -> None:
    intervals = [confidence_sequence(values[:count]) for count in range(1, len(values) + 1)]
    widths = [each.high - each.low for each in intervals if each is not None]
    first = next((count for count, each in enumerate(widths, start=1) if each < width), None)
    assert narrower_after(values, width) == first


@given(st.lists(st.none() | st.floats(0, 1), max_size=60), st.data())
def test_where_it_stops_follows_from_the_scores_before_alone(values: list[float | None], data: st.DataObject) -> None:
    """Whoever looks sooner or later, and however often, finds the same number of questions."""
    rule = StopRule("answer_f1", data.draw(st.floats(0.3, 0.95)))
    stop = rule.stops_after(values)
    looked = data.draw(st.integers(0, len(values)))
    assert rule.stops_after(values[:looked]) == (stop if stop is not None and stop <= looked else None)


def test_questions_that_lack_the_metric_are_counted_and_not_scored() -> None:
    known = [1.0] * 200
    stop = StopRule("answer_f1", 0.3).stops_after(known)
    assert stop is not None
    assert StopRule("answer_f1", 0.3).stops_after([each for one in known for each in (None, one)]) == 2 * stop


@each_case("right", [0.5, 0.9])
def test_at_the_stop_the_interval_misses_the_mean_in_one_run_of_twenty_at_most(right: float) -> None:
    """The promise, by simulation: 300 runs of questions whose true mean is known, each stopped by the rule."""
    rule, chance, missed, runs = StopRule("answer_f1", 0.25), Random(7), 0, 300
    for _ in range(runs):
        values = [chance.choice((1.0, 0.5)) if chance.random() < right else 0.0 for _ in range(1000)]
        stop = rule.stops_after(values)
        assert stop is not None
        interval = confidence_sequence(values[:stop])
        assert interval is not None
        assert interval.high - interval.low < rule.width
        missed += not interval.low <= 0.75 * right <= interval.high
    assert missed <= runs / 20
