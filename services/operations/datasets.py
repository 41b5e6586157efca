"""Datasets: listed, and shown with where to get their files."""

from cotrail.services.access.actor import Scope
from cotrail.services.lists import dataset_list
from cotrail.services.lists.dataset_list import ListedDataset
from cotrail.services.operations.operation import operation


@operation("GET", "/datasets", Scope.READ)
def index() -> tuple[ListedDataset, ...]:
    """List the datasets whose questions can be read."""
    return dataset_list.list_datasets()


@operation("GET", "/datasets/{dataset}", Scope.READ)
def show(dataset: str) -> ListedDataset:
    """Show a dataset: its files, where to get them, its metric and its corpus."""
    return dataset_list.describe_dataset(dataset)
