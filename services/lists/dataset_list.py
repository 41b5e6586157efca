"""The datasets that there are, with what can be built for them."""

from msgspec import Struct

from cotrail.data.datasets.registry import DATASETS, find_dataset


class ListedDataset(Struct, frozen=True, kw_only=True):
    """A dataset; title to kinds: see `DatasetSpec`.

    formats: the forms in which its files are read.
    corpus: the files that `cotrail data build` makes its corpus from, None where it has no recipe; paper_paragraphs:
        how many paragraphs the paper's has.
    """

    title: str
    files: str
    source: str
    asks: str
    metric: str
    kinds: str
    name: str
    formats: tuple[str, ...]
    corpus: str | None
    paper_paragraphs: int | None


def list_datasets() -> tuple[ListedDataset, ...]:
    """Every dataset."""
    return tuple(describe_dataset(name) for name in DATASETS)


def describe_dataset(name: str) -> ListedDataset:
    """The dataset of that name; raises UnknownNameError."""
    spec = find_dataset(name)
    return ListedDataset(
        title=spec.title,
        files=spec.files,
        source=spec.source,
        asks=spec.asks,
        metric=spec.metric,
        kinds=spec.kinds,
        name=name,
        formats=tuple(form.format.holds for form in spec.forms),
        corpus=spec.recipe.needs if spec.recipe else None,
        paper_paragraphs=spec.recipe.paper_paragraphs if spec.recipe else None,
    )
