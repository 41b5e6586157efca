"""The meaning of a classifier's outputs, by its configuration."""

from collections.abc import Mapping
from typing import Literal

from cotrail.errors import InputError

Label = Literal["entailment", "neutral", "contradiction"]

Order = tuple[Label, ...]
"""The meaning of each output, in the order of the outputs."""

_STEMS: dict[str, Label] = {"entail": "entailment", "neutral": "neutral", "contradict": "contradiction"}
"""Beginnings of labels' names, in any case."""


def label_order(
    id2label: Mapping[int, str] | None, label2id: Mapping[str, int] | None, configured: Order | None = None
) -> Order:
    """The order that a configuration gives in either of its two tables, or `configured` where it gives none.

    Raises InputError where the order is unclear, for example because the tables differ, or differs from `configured`.
    """
    outputs = {int(number): str(name) for number, name in (id2label or {}).items()}
    if sorted(outputs) != list(range(len(_STEMS))):
        raise InputError(
            f"the model has {len(outputs)} classes ({_shown(outputs)}) instead of entailment, neutral and "
            "contradiction: take another one"
        )
    by_name = {int(number): name for name, number in (label2id or {}).items()}
    orders = {order for order in (_order(outputs), _order(by_name)) if order}
    if configured and orders in (set(), {configured}):
        return configured
    if configured or len(orders) != 1:
        raise InputError(_unclear(outputs, by_name, configured))
    return orders.pop()


def _order(names: Mapping[int, str]) -> Order | None:
    labels = [label for number in sorted(names) if (label := _label(names[number]))]
    return tuple(labels) if sorted(labels) == sorted(_STEMS.values()) and len(names) == len(labels) else None


def _label(name: str) -> Label | None:
    return next((label for stem, label in _STEMS.items() if name.strip().casefold().startswith(stem)), None)


def _unclear(outputs: Mapping[int, str], by_name: Mapping[int, str], order: Order | None) -> str:
    message = f"the model's configuration calls its outputs {_shown(outputs)}"
    if by_name and by_name != outputs:
        message += f", and elsewhere {_shown(by_name)}"
    if order:
        return f"{message}, but its labels are given as {', '.join(order)}: correct the one that is wrong"
    return (
        f'{message}, which leaves their meaning open: say it as labels = ["entailment", "neutral", "contradiction"], '
        "in their true order, in the entailer's table in the list of models"
    )


def _shown(names: Mapping[int, str]) -> str:
    return ", ".join(f"{number}: {names[number]}" for number in sorted(names))
