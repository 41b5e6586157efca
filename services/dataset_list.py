"""The datasets that there are, with what can be built for them."""

from msgspec.structs import asdict

from cotrail.common.nearest import unknown
from cotrail.data.corpora.recipes import RECIPES
from cotrail.data.datasets.catalogue import CATALOGUE, Dataset
from cotrail.data.datasets.file_formats import FORMATS
from cotrail.errors import UnknownNameError


class ListedDataset(Dataset, frozen=True, kw_only=True):
    """A dataset by its name.

    formats: the forms in which its files are read.
    corpus: the files that `cotrail data build` makes its corpus from, None where it has no recipe; paper_paragraphs:
        how many paragraphs the paper's has.
    """

    name: str
    formats: tuple[str, ...]
    corpus: str | None
    paper_paragraphs: int | None


def list_datasets() -> tuple[ListedDataset, ...]:
    """Every dataset."""
    return tuple(describe_dataset(name) for name in CATALOGUE)


def describe_dataset(name: str) -> ListedDataset:
    """The dataset of that name; raises UnknownNameError."""
    if name not in CATALOGUE:
        raise UnknownNameError(unknown("dataset", name, CATALOGUE))
    recipe = RECIPES.get(name)
    return ListedDataset(
        name=name,
        formats=tuple(form.holds for form in FORMATS if name in form.datasets),
        corpus=recipe.needs if recipe else None,
        paper_paragraphs=recipe.paper_paragraphs if recipe else None,
        **asdict(CATALOGUE[name]),
    )
