"""Prices of hosted models: the table's own, or the published ones as of a day; unknown ones are None."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from cotrail.core.money import ModelPrice, Rates
from cotrail.engines.language_models import providers
from cotrail.engines.language_models.endpoint import Endpoint, Price
from cotrail.engines.language_models.providers import price_of
from tests.cases import each_case

DAY = datetime(2026, 1, 1, tzinfo=UTC)
OPENAI = Endpoint(url="https://api.openai.com/v1", model="gpt-5", context=8192, key_variable="OPENAI_API_KEY")
CLAUDE = Endpoint(url="https://api.anthropic.com/v1", model="claude-sonnet-4-5", context=8192, key_variable="KEY")
OWN = Endpoint(url="http://gpu1:8000/v1", model="gpt-5", context=8192)


def rates(price: ModelPrice | None) -> list[Rates]:
    assert price
    return list(price.rates)


def test_the_published_price_is_that_of_the_day() -> None:
    price = price_of(OPENAI, DAY)
    [rate] = rates(price)
    assert (rate.input, rate.cached, rate.output) == (Decimal("1.25"), Decimal("0.125"), Decimal(10))
    assert rate.cache_written == rate.input
    assert price
    assert price.source.startswith("genai-prices ")
    assert price.source.endswith(" as of 2026-01-01")


def test_longer_prompts_have_their_own_rates() -> None:
    short, long = rates(price_of(CLAUDE, DAY))
    assert (short.above, short.input, short.cache_written, short.output) == (0, *map(Decimal, ("3", "3.75", "15")))
    assert (long.above, long.input, long.cache_written, long.output) == (200_000, *map(Decimal, ("6", "7.5", "22.5")))


def test_a_batch_costs_half() -> None:
    [now], [batch] = rates(price_of(OPENAI, DAY)), rates(price_of(OPENAI, DAY, batch=True))
    assert (batch.input * 2, batch.cached * 2, batch.output * 2) == (now.input, now.cached, now.output)


def test_the_table_s_own_price_wins() -> None:
    table = Endpoint(
        url=OPENAI.url, model="gpt-5", context=8192, price=Price(input=0.1, output=0.3, cached=0.01, batch=0.4)
    )
    [rate] = rates(price_of(table, DAY))
    assert (rate.input, rate.output, rate.cached) == (Decimal("0.1"), Decimal("0.3"), Decimal("0.01"))
    assert rate.cache_written == rate.input
    assert [each.output for each in rates(price_of(table, DAY, batch=True))] == [Decimal("0.12")]


@each_case(
    ("endpoint", "charged"),
    [
        (OWN, False),
        (Endpoint(url="https://api.openai.com/v1", model="unheard-of", context=8192, key_variable="KEY"), True),
        (Endpoint(url="https://models.example/v1", model="gpt-5", context=8192, key_variable="KEY"), True),
        (Endpoint(url="https://gpu1/v1", model="gpt-5", context=8192), False),
    ],
)
def test_what_nobody_publishes_is_unknown(endpoint: Endpoint, *, charged: bool) -> None:
    assert price_of(endpoint, DAY) is None
    assert endpoint.is_hosted is charged


def test_without_the_package_only_tables_have_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "find_spec", lambda _: None)
    assert price_of(OPENAI, DAY) is None
    assert OPENAI.is_hosted
