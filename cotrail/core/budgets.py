"""Budgets: how much a question and a run may take. At one of these limits a question ends by what was found."""

from collections.abc import Iterable, Iterator
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

    def __str__(self) -> str:
        """The limits as people read them, as `1 step, 0.5 US dollars`; empty where there is none."""
        amounts = {name: getattr(self, name) for name in self.__struct_fields__}
        return ", ".join(f"{amount:,} {_unit(name, amount)}" for name, amount in amounts.items() if amount is not None)


def _unit(name: str, amount: float) -> str:
    unit = "US dollars" if name == "money" else name
    return unit.removesuffix("s") if amount == 1 else unit


NO_BUDGET = Budget()


class Budgets(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The budgets of a run: of each question, and of all of them together."""

    question: Budget = NO_BUDGET
    run: Budget = NO_BUDGET

    def named(self) -> Iterator[tuple[str, str]]:
        """Those that limit something, by their names."""
        for name, budget in (("budget of each question", self.question), ("budget of the run", self.run)):
            if limits := str(budget):
                yield name, limits

    def room(self, recorded: int) -> int | None:
        """How many more steps a question may take than those recorded, and at least its first; None for no limit."""
        steps = self.question.steps
        return None if steps is None else max(steps - recorded, 0 if recorded else 1)

    def reached(self, question: Consumed, run: Consumed) -> str:
        """The name of the limit that ends a question: one of its own, or one of the run's, as in `run money`."""
        if limit := self.question.reached(question):
            return limit
        limit = self.run.reached(run)
        return f"{RUN}{limit}" if limit else ""

    def questions_left(
        self, consumed: Consumed, largest: Consumed, under_way: int, *, alone: bool = True
    ) -> int | None:
        """How many further questions the run's budget has room for; None where it limits none.

        What questions under way may take is reserved for them: as much as the largest of those that ended lately, and
        at most what a question may take. Before one has taken anything, and where no question has a budget of its own,
        nothing is known: the first question then begins alone, or without any reserve where it would be alone for too
        long.

        consumed: by the run; largest: by one of its questions; under_way: how many these are. Something is always under
        way until the budget is used up.
        """
        left = [
            self._questions_in(name, Decimal(str(limit)) - getattr(consumed, name), getattr(largest, name))
            for name in self.run.__struct_fields__
            if (limit := getattr(self.run, name)) is not None
        ]
        known = [each for each in left if each is not None]
        if len(known) < len(left) and alone:
            known.append(1)
        return max(min(known) - under_way, 0 if under_way else 1) if known else None

    def _questions_in(self, name: str, left: Decimal, largest: Decimal | int) -> int | None:
        """How many questions take what is left; None where nothing says how much one takes."""
        own = getattr(self.question, name)
        taken = ([Decimal(str(own))] if own else []) + ([Decimal(largest)] if largest else [])
        return int(max(left, Decimal()) / min(taken)) if taken else None


NO_BUDGETS = Budgets()


def amount(name: str, number: Decimal | int) -> str:
    """So much of what a limit counts, in words: `5,000 tokens`, `$0.75`."""
    return dollars(Decimal(number)) if name == "money" else f"{number:,} {name}"


def left(budget: Budget, consumed: Consumed) -> str:
    """What is left of a budget in words, as `1,200 of 5,000 tokens, $0.75 of $5.00`; empty where nothing is limited."""
    parts = []
    for name in budget.__struct_fields__:
        if (limit := getattr(budget, name)) is not None:
            whole = Decimal(str(limit))
            rest = max(whole - getattr(consumed, name), Decimal())
            parts.append(f"{dollars(rest) if name == 'money' else f'{rest:,}'} of {amount(name, whole)}")
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
