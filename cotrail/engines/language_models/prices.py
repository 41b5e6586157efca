"""Prices of hosted models: those of their tables in `models.toml`, or else the published ones as of a day."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cotrail.core.money import ModelPrice, Rates
from cotrail.engines.language_models.endpoint import Endpoint, Price

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice as PublishedPrice
    from genai_prices.types import TieredPrices

PACKAGE = "genai-prices"

BATCH = Decimal("0.5")
"""What providers charge in batches of their published prices."""


def price_of(endpoint: Endpoint, at: datetime, *, batch: bool = False) -> ModelPrice | None:
    """The price of an endpoint's model at a time; None where it isn't known. No server is asked.

    batch: the price in batches.
    """
    if endpoint.price is not None:
        return _of_table(endpoint.price, batch=batch)
    return _published(endpoint, at, batch=batch)


def _of_table(price: Price, *, batch: bool) -> ModelPrice:
    factor = _decimal(price.batch) if batch else Decimal(1)
    rates = Rates(
        input=_decimal(price.input) * factor,
        output=_decimal(price.output) * factor,
        cached=_decimal(price.input if price.cached is None else price.cached) * factor,
        cache_written=_decimal(price.input if price.cache_written is None else price.cache_written) * factor,
    )
    return ModelPrice(rates=(rates,), source="models.toml")


def _published(endpoint: Endpoint, at: datetime, *, batch: bool) -> ModelPrice | None:
    """The price that genai-prices has of the model at its server's address; None where it has none, or isn't there."""
    if find_spec("genai_prices") is None:
        return None
    from genai_prices import Usage, calc_price

    try:
        found = calc_price(
            Usage(input_tokens=1), endpoint.model, provider_api_url=endpoint.url, genai_request_timestamp=at
        ).model_price
    except (LookupError, ValueError):
        return None
    if found.input_mtok is None or found.output_mtok is None:
        return None
    factor = BATCH if batch else Decimal(1)
    rates = (_rates(found, above, factor) for above in sorted({0, *_tiers(found)}))
    return ModelPrice(rates=tuple(rates), source=f"{PACKAGE} {version(PACKAGE)} as of {at:%Y-%m-%d}")


def _rates(price: "PublishedPrice", above: int, factor: Decimal) -> Rates:
    """The rates of prompts of more tokens than `above`."""
    fresh = _at(price.input_mtok, above)
    return Rates(
        above=above,
        input=fresh * factor,
        output=_at(price.output_mtok, above) * factor,
        cached=_at(price.cache_read_mtok, above, fresh) * factor,
        cache_written=_at(price.cache_write_mtok, above, fresh) * factor,
    )


def _tiers(price: "PublishedPrice") -> Iterator[int]:
    for each in (price.input_mtok, price.output_mtok, price.cache_read_mtok, price.cache_write_mtok):
        yield from (tier.start for tier in getattr(each, "tiers", ()))


def _at(price: "Decimal | TieredPrices | None", above: int, otherwise: Decimal = Decimal()) -> Decimal:
    """A price where prompts have more tokens than `above`; `otherwise` where there is none."""
    if price is None or isinstance(price, Decimal):
        return otherwise if price is None else price
    return [price.base, *(tier.price for tier in price.tiers if tier.start <= above)][-1]


def _decimal(price: float) -> Decimal:
    """The number as it was written."""
    return Decimal(str(price))
