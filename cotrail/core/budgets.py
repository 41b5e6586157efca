"""Budgets: how much a question and a run may take. At one of these limits a question ends by what was found."""

from collections.abc import Iterable
from decimal import Decimal
from functools import reduce
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.core.money import ModelPrice, Usage, dollars

Whole = Annotated[int, Meta(ge=1, le=2**53)]
Amount = Annotated[float, Meta(gt=0)]

RUN = "run "
"""What precedes the name of a run's limit, as in `run money`."""


class Consumed(Struct, frozen=True, kw_only=True):
    """What ended steps took: their number, the tokens read and written, their time, and the money."""

    steps: int = 0
    tokens: int = 0
    seconds: Decimal = Decimal()
    money: Decimal = Decimal()

    def __add__(self, other: "Consumed") -> "Consumed":
        return Consumed(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class Budget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The most that may be taken, each None where it isn't limited; money: in US dollars."""

    steps: Whole | None = None
    tokens: Whole | None = None
    seconds: Amount | None = None
    money: Amount | None = None

    def reached(self, consumed: Consumed) -> str:
        """The name of the first limit that this reaches; empty where it reaches none."""
        for name in self.__struct_fields__:
            limit = getattr(self, name)
            # The amount as it was written: 0.1 is a little more as a float.
            if limit is not None and getattr(consumed, name) >= Decimal(str(limit)):
                return name
        return ""


NO_BUDGET = Budget()


class Budgets(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The budgets of a run: of each question, and of all of them together."""

    question: Budget = NO_BUDGET
    run: Budget = NO_BUDGET

    def reached(self, question: Consumed, run: Consumed) -> str:
        """The name of the limit that ends a question: one of its own, or one of the run's, as in `run money`."""
        if limit := self.question.reached(question):
            return limit
        limit = self.run.reached(run)
        return f"{RUN}{limit}" if limit else ""


NO_BUDGETS = Budgets()


def left(budget: Budget, consumed: Consumed) -> str:
    """What is left of a budget in words, as `1,200 of 5,000 tokens, $0.75 of $5.00`; empty where nothing is limited."""
    parts = []
    for name in budget.__struct_fields__:
        if (limit := getattr(budget, name)) is not None:
            whole = Decimal(str(limit))
            rest = max(whole - getattr(consumed, name), Decimal())
            amounts = f"{dollars(rest)} of {dollars(whole)}" if name == "money" else f"{rest:,} of {whole:,} {name}"
            parts.append(amounts)
    return ", ".join(parts)


def priced(usage: Usage, milliseconds: float, price: ModelPrice | None) -> Consumed:
    """What an ended step with this usage took; price: of the model that it asked, None where that costs nothing."""
    return Consumed(
        steps=1,
        tokens=usage.input_tokens + usage.output_tokens,
        seconds=Decimal(str(milliseconds)).scaleb(-3),
        money=price.of_prompt(usage.input_tokens).cost(usage) if price else Decimal(),
    )


def total(parts: Iterable[Consumed]) -> Consumed:
    """The sum of several."""
    return reduce(Consumed.__add__, parts, Consumed())
