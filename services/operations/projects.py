"""Projects: made, listed, changed."""

from cotrail.services.access import projects
from cotrail.services.access.actor import Scope
from cotrail.services.access.projects import Changes, NewProject, ProjectRecord
from cotrail.services.operations.operation import operation


@operation("GET", "/projects", Scope.ADMIN)
def index() -> tuple[ProjectRecord, ...]:
    """List projects with what they may use, and their quotas."""
    return projects.list_all()


@operation("POST", "/projects", Scope.ADMIN, status=201)
def create(new: NewProject) -> ProjectRecord:
    """Make a project, which may use none of the corpora of others and no models but those named."""
    return projects.create(new)


@operation("PATCH", "/projects/{project}", Scope.ADMIN)
def change(project: str, changes: Changes) -> ProjectRecord:
    """Change what a project may use, or its quotas."""
    return projects.change(project, changes)
