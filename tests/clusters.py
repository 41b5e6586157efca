"""PostgreSQL's data for the stacks of tests: made and migrated once, then copied into each home.

Making a cluster and bringing its schema up to date takes a second or more of processor, a copy a tenth of one. The
original is kept between runs of the tests (`tests.cache`), under a digest of all that it is made from.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from cotrail.configuration.settings import Settings
from cotrail.models.schema import migrating
from cotrail.models.schema.deployment import MIGRATIONS, own_version
from cotrail.models.schema.migrating import migrate
from cotrail.workers.stack import postgres
from cotrail.workers.stack.postgres import find_place, make_ready
from cotrail.workers.stack.stack import Stack
from tests.cache import digest, kept


def lay_cluster(home: Path) -> None:
    """Puts a copy where the home's stack has its PostgreSQL's data, with today's schema, unless there are some."""
    settings = Settings(home=home, database_url=None, broker_url=None)
    place = find_place(home.absolute(), settings.socket_path)
    if place.data.exists():
        return
    make_ready(place)
    _copy(_original(), place.data)


def _original() -> Path:
    versions = sorted((MIGRATIONS / "versions").glob("*.py"))
    schema = sorted(Path(migrating.__file__).parent.glob("*.py"))
    return kept(
        "cluster", digest(postgres.INITDB, str(own_version()), Path(postgres.__file__), *versions, *schema), _make
    )


def _make(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="cw-") as home:
        settings = Settings(home=Path(home), database_url=None, broker_url=None)
        stack = Stack(settings)
        try:
            stack.start_servers()
            migrate(settings.database)
            stack.down()
            folder.rmdir()
            _copy((Path(home) / "postgres").resolve(), folder)
        finally:
            stack.remove()


def _copy(data: Path, to: Path) -> None:
    """Copies a cluster with its owner, under another name until it is whole."""
    with tempfile.TemporaryDirectory(dir=to.parent, prefix="copy-") as beside:
        subprocess.run(["cp", "-a", "--reflink=auto", str(data), f"{beside}/data"], check=True)
        shutil.move(f"{beside}/data", to)
