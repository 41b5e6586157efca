"""Display names of systems, readers, datasets and models in reports, as in the IRCoT paper where it has them."""

import re
from collections.abc import Callable, Iterable

from cotrail.evaluation.experiments.charts import Shade
from cotrail.evaluation.experiments.ircot.cells import Line
from cotrail.evaluation.experiments.ircot.published import published
from cotrail.evaluation.experiments.report_tables import ReportTable
from cotrail.evaluation.metrics.registry import METRICS

SYSTEMS = {"no-retrieval": "NoR", "one-step": "OneR", "ircot": "IRCoT"}
"""The names that the paper's tables print (`SystemSpec.title`), in the order of its figures."""

SHADES: dict[str, Shade] = {"no-retrieval": "light", "one-step": "middle", "ircot": "strong"}
"""How the systems stand out in figures."""

GOALS = {"retrieval": "paragraph recall", "qa": "answers"}
"""Display names of the criteria for choosing K and M."""

READERS = {"direct": "direct", "cot": "CoT", "none": "no reader"}

_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_SEPARATOR = re.compile("[-_ ]")


def names_in(table: ReportTable) -> dict[str, str]:
    """Display names of the goals, systems, readers, places and metrics in a table."""
    titles: dict[str, Callable[[str], str | None]] = {
        "goal": GOALS.get,
        "system": SYSTEMS.get,
        "reader": READERS.get,
        "metric": lambda name: METRICS[name].title,
        "place": place_title,
    }
    pairs = ((str(row.values[c.name]), titles[c.unit]) for row in table.rows for c in table.columns if c.unit in titles)
    return {value: title for value, title_of in pairs if (title := title_of(value)) not in (None, value)}


def place_title(place: str) -> str:
    """The title of a dataset, of a subset (`hotpotqa_bridge`) or of a pair that `place_of` names."""
    paper = published()
    if place in paper.subsets:
        return paper.subsets[place].title
    if "→" in place:
        return "→".join(dataset_short(dataset) for dataset in place.split("→"))
    return paper.datasets[place].title if place in paper.datasets else place


def dataset_short(dataset: str) -> str:
    """The dataset's short name in figures 5 and 6, or its own name."""
    dataset_names = published().datasets.get(dataset)
    return dataset_names.short if dataset_names else dataset


def place_of(line: Line) -> str:
    """The dataset of a line's scores, or `X→Y` for X's demonstrations on Y's questions (figure 5)."""
    return line.dataset if line.demonstrations == line.dataset else f"{line.demonstrations}→{line.dataset}"


def in_order(places: Iterable[str]) -> list[str]:
    """Sort datasets by the paper's order, each after its subsets; unknown ones come last, in the given order."""
    paper = published()
    order = []
    for dataset in paper.datasets:
        order += [name for name, subset in paper.subsets.items() if subset.dataset == dataset]
        order.append(dataset)
    ranks = {name: rank for rank, name in enumerate(order)}
    return sorted(dict.fromkeys(places), key=lambda place: [ranks.get(each, len(ranks)) for each in place.split("→")])


def model_key(model: str) -> str:
    """Key that is equal for different names of the same model, such as `google/flan-t5-xl` and `Flan-T5-XL`."""
    return _SEPARATOR.sub("", model.rsplit("/", 1)[-1].lower())


def parameters(model: str) -> float | None:
    """A model's parameters in billions, if its name contains them (`smollm2-135m`) or is in figure 8 (`Flan-T5-XL`)."""
    for name, size in published().parameters.items():
        if model_key(model) == model_key(name):
            return size
    if match := _SIZE.search(model):
        return float(match[1]) / (1000 if match[2] in "mM" else 1)
    return None
