"""Models: listed, and shown with their settings. No model is loaded, no server is asked, and no key is shown."""

from cotrail.services.access.actor import Scope
from cotrail.services.lists import model_list
from cotrail.services.lists.model_list import DescribedModel, ListedModel
from cotrail.services.operations.operation import operation


@operation("GET", "/language-models", Scope.READ)
def index() -> tuple[ListedModel, ...]:
    """List the models: built-in ones, and those of the server's `models.toml`."""
    return model_list.list_models()


@operation("GET", "/language-models/{model}", Scope.READ)
def show(model: str) -> tuple[DescribedModel, ...]:
    """Show the models of a name, which may be of several kinds: their settings, and what they can do."""
    return model_list.describe_models(model)
