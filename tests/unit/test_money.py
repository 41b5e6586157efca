"""Money of tokens: exact, whatever the order in which it is summed; an unknown price is never 0."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.money import (
    ModelPrice,
    RatedUsage,
    Rates,
    Spent,
    Usage,
    described,
    dollars,
    shown_dollars,
    spent,
    spent_line,
    thresholds,
    total,
)
from tests.cases import each_case

RATES = Rates(input=Decimal("1.25"), cached=Decimal("0.125"), cache_written=Decimal("1.5625"), output=Decimal(10))
LONG = Rates(input=Decimal("2.5"), cached=Decimal("0.25"), cache_written=Decimal(3), output=Decimal(15), above=200_000)
PRICE = ModelPrice(rates=(RATES, LONG), source="a table")


def used(calls: int = 1, **tokens: int) -> Usage:
    return Usage(calls=calls, **tokens)


def test_each_kind_of_token_has_its_price() -> None:
    usage = used(input_tokens=1_000_000, cached_tokens=400_000, cache_written_tokens=100_000, output_tokens=20_000)
    assert RATES.cost(usage) == Decimal("0.625") + Decimal("0.05") + Decimal("0.15625") + Decimal("0.2")


def test_a_long_prompt_has_its_own_rates_as_a_whole() -> None:
    assert [PRICE.of_prompt(tokens).above for tokens in (1, 200_000, 200_001)] == [0, 0, 200_000]
    assert thresholds({"model": PRICE, "judge": None}) == [200_000]
    parts = [RatedUsage(role="model", above=above, usage=used(input_tokens=300_000)) for above in (0, 200_000)]
    assert spent(parts, {"model": PRICE}, {}).dollars == Decimal("0.375") + Decimal("0.75")


COUNTS = st.integers(0, 10**9)
USAGES = st.builds(used, input_tokens=COUNTS, cached_tokens=COUNTS, output_tokens=COUNTS)


@given(st.lists(USAGES, max_size=30), st.randoms())
def test_sums_are_exact_in_any_order(usages: list[Usage], random: object) -> None:
    parts = [RatedUsage(role="model", above=0, usage=usage) for usage in usages]
    shuffled = list(parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    exact = sum(
        max(each.input_tokens - each.cached_tokens, 0) * Fraction(5, 4)
        + each.cached_tokens * Fraction(1, 8)
        + each.output_tokens * 10
        for each in usages
    )
    sums = {spent(order, {"model": PRICE}, {}).dollars for order in (parts, shuffled)}
    assert sums == ({exact / 1_000_000} if usages else {None})


def test_an_unknown_price_is_said_and_no_model_of_ones_own_costs_any() -> None:
    parts = [RatedUsage(role=role, above=0, usage=used(output_tokens=1000)) for role in ("model", "judge", "own")]
    whole = spent(parts, {"model": PRICE, "judge": None}, {"judge": "gpt-x"})
    assert (whole.usage.output_tokens, whole.dollars, whole.unpriced) == (3000, Decimal("0.01"), ("gpt-x",))
    assert shown_dollars(whole) == "at least $0.010; the price of gpt-x isn't known"
    assert shown_dollars(spent(parts[1:2], {"judge": None}, {})) == "the price of judge isn't known"
    assert shown_dollars(spent(parts[2:], {}, {})) == ""


def test_runs_are_added_up() -> None:
    known, unknown = Spent(dollars=Decimal("0.1")), Spent(usage=used(estimated=1), unpriced=("b",))
    assert total([known, unknown, known]) == Spent(usage=used(estimated=1), dollars=Decimal("0.2"), unpriced=("b",))
    assert total([]).dollars is None


@each_case(
    ("amount", "said"),
    [
        ("0", "$0.00"),
        ("12.504", "$12.50"),
        ("1234567.8", "$1,234,567.80"),
        ("0.5", "$0.50"),
        ("0.0042", "$0.0042"),
        ("0.0000001234", "$0.00000012"),
    ],
)
def test_small_amounts_have_two_digits(amount: str, said: str) -> None:
    assert dollars(Decimal(amount)) == said


def test_a_line_says_what_was_thought_and_whether_it_is_estimated() -> None:
    usage = used(thought_tokens=1200, cache_written_tokens=7, estimated=1)
    said = spent_line(Spent(usage=usage, dollars=Decimal("0.25")))
    assert said == "Spent: 7 tokens written to the cache, 1,200 tokens thought, about $0.25"
    assert spent_line(Spent(usage=used(output_tokens=5))) == ""


def test_a_price_is_described_with_its_source() -> None:
    said = "$1.25 read, $0.125 cached, $10 written a million tokens, more for longer prompts (a table)"
    assert described(PRICE) == said
