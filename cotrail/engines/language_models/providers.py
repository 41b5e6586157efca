"""Providers whose models need no table: `--model openai/gpt-5.1`, `anthropic/claude-sonnet-4-6` and so on.

As of November 2026, from the providers' documentation; none of them was asked. A table of `models.toml` with the same
name comes first, and is where a model that needs other settings gets them.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from cotrail.common.toml_files import read_toml
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
    return Decimal(str(price))


CONTEXT = 128_000
"""Tokens of a prompt and its continuation, which nearly all models of today take."""

THOUGHT_TOKENS = 8_000
"""The most tokens of a thought."""


class Family(Struct, frozen=True, kw_only=True):
    """Models whose names begin in one of these ways, and the fields of their tables."""

    names: tuple[str, ...]
    table: Mapping[str, Any]


class Provider(Struct, frozen=True, kw_only=True):
    """A provider: the fields of its models' tables, and families of them that need further ones."""

    table: Mapping[str, Any]
    families: tuple[Family, ...] = ()

    def of(self, model: str) -> dict[str, Any]:
        """The table of a model."""
        found = next((each for each in self.families if model.startswith(each.names)), None)
        thoughts = {"thought_tokens": THOUGHT_TOKENS} if found and "thinks" in found.table else {}
        return {"model": model, "context": CONTEXT, **self.table, **(found.table if found else {}), **thoughts}


PROVIDERS = msgspec.convert(read_toml(Path(__file__).with_name("providers.toml")), dict[str, Provider])
"""All providers by name."""

CACHE_MARKED = ("gpt-5.6", "gpt-5.7", "gpt-5.8", "gpt-5.9", "gpt-6", "gpt-7")
"""OpenAI's models that cache prompts up to marks in them; to others such a mark is an unknown field."""


def provided(name: str) -> dict[str, Any] | None:
    """The table of a model that is named PROVIDER/MODEL; None for another name."""
    provider, _, model = name.partition("/")
    return PROVIDERS[provider].of(model) if provider in PROVIDERS and model else None


_HOSTS = {"api.anthropic.com": "anthropic", "generativelanguage.googleapis.com": "gemini"}


def engine_at(url: str) -> str:
    """The engine of the server at an address: that of the provider whose host it is, else one of OpenAI's API."""
    return _HOSTS.get(urlsplit(url).hostname or "", "openai")
