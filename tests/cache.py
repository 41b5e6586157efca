"""What tests make once and use again: in the next module, in another test process, in the next run.

Everything is in one folder, `.test_cache` in the repository or the one that TEST_CACHE names, under its name and a
digest of what it is made from. Tests only read it: what changes a thing copies it first.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(os.environ.get("TEST_CACHE") or Path(__file__).parents[1] / ".test_cache")


def digest(*parts: object) -> str:
    """A digest of files, by their bytes, and of anything else by what it looks like."""
    total = hashlib.sha256()
    for part in parts:
        seen = part.read_bytes() if isinstance(part, Path) else repr(part).encode()
        total.update(hashlib.sha256(seen).digest())
    return total.hexdigest()[:16]


def of_packages(*names: str) -> tuple[str, ...]:
    """The versions of packages that take part in making something."""
    return tuple(f"{name}=={version(name)}" for name in names)


def kept(name: str, of: str, make: Callable[[Path], None]) -> Path:
    """The folder of a thing with that digest, which `make` fills if it isn't there yet.

    One process at a time makes it, and it gets its name when it is whole, so that a killed one leaves nothing half
    done. What was made of other code is removed.
    """
    made = FOLDER / f"{name}-{of}"
    if made.exists():
        return made
    with _locked(name):
        if not made.exists():
            former = list(FOLDER.glob(f"{name}-????????????????"))
            with tempfile.TemporaryDirectory(dir=FOLDER, prefix="making-") as folder:
                whole = Path(folder) / "made"
                whole.mkdir()
                make(whole)
                whole.rename(made)
            for each in former:
                shutil.rmtree(each)
    return made


@contextmanager
def _locked(name: str) -> Iterator[None]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
