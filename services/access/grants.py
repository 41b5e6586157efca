"""What the one who asks may use beside what is their project's own."""

from cotrail.models.queries.grants import read_grants
from cotrail.services.access.actor import actor
from cotrail.services.access.project_names import ALL, Grants
from cotrail.services.store import open_store


def grants() -> Grants:
    """What the project in whose name this thread works may use."""
    project = actor().project
    if project is None:
        return ALL
    with open_store() as engine, engine.connect() as connection:
        granted = read_grants(connection, project)
    return Grants(project=project, **{kind: None if of is None else frozenset(of) for kind, of in granted.items()})
