"""Money: what tokens cost, in exact decimals of US dollars."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce

from msgspec import Struct

MILLION = 6
"""Decimal places by which the price of a million tokens is above that of one."""


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens that a language model read and wrote.

    input_tokens: of prompts, with those that were `cached` or `cache_written`.
    output_tokens: all that was written, of which `thought_tokens` are thoughts.
    estimated: in how many of the calls the counts are an estimate.
    """

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    output_tokens: int = 0
    thought_tokens: int = 0
    estimated: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class Rates(Struct, frozen=True, kw_only=True):
    """Prices of a million tokens in US dollars; above: they hold for prompts of more tokens than that."""

    input: Decimal
    output: Decimal
    cached: Decimal
    cache_written: Decimal
    above: int = 0

    def cost(self, usage: Usage) -> Decimal:
        """What these tokens cost, exactly."""
        fresh = max(usage.input_tokens - usage.cached_tokens - usage.cache_written_tokens, 0)
        millionths = (
            fresh * self.input
            + usage.cached_tokens * self.cached
            + usage.cache_written_tokens * self.cache_written
            + usage.output_tokens * self.output
        )
        return millionths.scaleb(-MILLION)


class ModelPrice(Struct, frozen=True, kw_only=True):
    """The price of a model, as a run pins it.

    rates: by the length of prompts, the shortest first. source: where the price is from, and as of which day.
    """

    rates: tuple[Rates, ...]
    source: str

    def of_prompt(self, tokens: int) -> Rates:
        """The rates of a call whose prompt has so many tokens."""
        return [each for each in self.rates if not each.above or tokens > each.above][-1]


Prices = Mapping[str, ModelPrice | None]
"""The price of each hosted language model of a run by its role, None where it isn't known; others cost nothing."""


class Spent(Struct, frozen=True, kw_only=True):
    """What was spent on language models.

    usage: all tokens, those of models that cost nothing too.
    dollars: the money; None where no model has a price. unpriced: the hosted models whose price isn't known, which are
        in none of the money.
    """

    usage: Usage = Usage()
    dollars: Decimal | None = None
    unpriced: tuple[str, ...] = ()

    def __add__(self, other: "Spent") -> "Spent":
        known = [each.dollars for each in (self, other) if each.dollars is not None]
        return Spent(
            usage=self.usage + other.usage,
            dollars=sum(known, Decimal()) if known else None,
            unpriced=tuple(sorted({*self.unpriced, *other.unpriced})),
        )


NOTHING_SPENT = Spent()


class RatedUsage(Struct, frozen=True, kw_only=True):
    """The usage of a role's model by calls of the same rates; above: see `Rates`."""

    role: str
    above: int
    usage: Usage


def spent(parts: Iterable[RatedUsage], prices: Prices, names: Mapping[str, str]) -> Spent:
    """What this usage cost; names: of the models by their roles."""
    return total(_spent(part, prices, names.get(part.role) or part.role) for part in parts)


def total(spendings: Iterable[Spent]) -> Spent:
    """The sum of several."""
    return reduce(Spent.__add__, spendings, NOTHING_SPENT)


def thresholds(prices: Prices) -> Sequence[int]:
    """The lengths of prompts beyond which any of these models has other rates, in their order."""
    return sorted({rates.above for price in prices.values() if price for rates in price.rates if rates.above})


def _spent(part: RatedUsage, prices: Prices, name: str) -> Spent:
    if part.role not in prices:
        return Spent(usage=part.usage)
    price = prices[part.role]
    if price is None:
        return Spent(usage=part.usage, unpriced=(name,))
    return Spent(usage=part.usage, dollars=price.of_prompt(part.above + 1).cost(part.usage))


def shown_dollars(spent: Spent | None) -> str:
    """Money in words: `$1.25`, `at least $0.0042; the price of NAME isn't known`; empty where nothing costs any."""
    if spent is None:
        return ""
    unknown = tuple(f"the price of {name} isn't known" for name in spent.unpriced)
    if spent.dollars is None:
        return "; ".join(unknown)
    about = ("at least " if unknown else "") + ("about " if spent.usage.estimated else "")
    return "; ".join((f"{about}{dollars(spent.dollars)}", *unknown))


def spent_line(spent: Spent) -> str:
    """All of it in words, `Spent: 812 tokens thought, $1.25`; empty where neither is there."""
    counted = {"written to the cache": spent.usage.cache_written_tokens, "thought": spent.usage.thought_tokens}
    tokens = [f"{count:,} tokens {what}" for what, count in counted.items() if count]
    amounts = [*tokens, *filter(None, [shown_dollars(spent)])]
    return f"Spent: {', '.join(amounts)}" if amounts else ""


def described(price: ModelPrice) -> str:
    """A price in words: `$1.25 read, $0.125 cached, $10 written a million tokens (models.toml)`."""
    rates = price.rates[0]
    kinds = {"read": rates.input, "cached": rates.cached, "written": rates.output}
    parts = ", ".join(f"${amount.normalize():f} {kind}" for kind, amount in kinds.items())
    longer = ", more for longer prompts" if len(price.rates) > 1 else ""
    return f"{parts} a million tokens{longer} ({price.source})"


def dollars(amount: Decimal) -> str:
    """An amount with cents, or with as many places as a small one needs: `$12.50`, `$0.0042`."""
    places = 2 if amount >= 1 or not amount else min(max(2, 1 - amount.adjusted()), 9)
    return f"${amount:,.{places}f}"
