"""The wheel, built from the sdist, installed where a project has folders of the same names."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("MANIFEST.in", "pyproject.toml", "README.md", "LICENSE")
OWN = ("migrations", "models", "tasks", "workers")
WRITTEN = ("groups.py", "records.py")
"""The modules of the clients that the build itself writes."""
BUILD = "import sys; from building import backend; backend.build_{0}(sys.argv[1])"


def built(what: str, source: Path, folder: Path) -> Path:
    folder.mkdir()
    subprocess.run([sys.executable, "-c", BUILD.format(what), folder], cwd=source, check=True, capture_output=True)
    [file] = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("build")
    source = place / "source"
    for folder in ("cotrail", "building", *OWN):
        shutil.copytree(ROOT / folder, source / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source)
    for name in WRITTEN:
        (source / "cotrail" / "client" / name).unlink()
    with tarfile.open(built("sdist", source, place / "sdist")) as archive:
        archive.extractall(place / "unpacked", filter="data")
    [unpacked] = (place / "unpacked").iterdir()
    assert all((unpacked / "cotrail" / "client" / name).is_file() for name in WRITTEN)
    return built("wheel", unpacked, place / "wheel")


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an installation of the wheel puts into an environment's `site-packages`."""
    site = tmp_path_factory.mktemp("site")
    with ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that has packages and modules of its own by the names of cotrail's folders."""
    for name in OWN[::2]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OWNER = '{name} of the project'\n")
    for name in OWN[1::2]:
        (tmp_path / f"{name}.py").write_text(f"OWNER = '{name} of the project'\n")
    return tmp_path


def python(site: Path, project: Path, *arguments: str) -> str:
    environment = {"PYTHONPATH": f"{project}:{site}", "COTRAIL_HOME": str(project / "home"), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run([sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_only_cotrail_is_installed_and_all_of_it(site: Path) -> None:
    assert {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")} == {"cotrail"}
    modules = {str(path.relative_to(site / "cotrail")) for path in (site / "cotrail").rglob("*.py")}
    expected = {str(path.relative_to(ROOT)) for name in OWN for path in (ROOT / name).rglob("*.py")}
    assert expected | {str(path.relative_to(ROOT / "cotrail")) for path in (ROOT / "cotrail").rglob("*.py")} == modules
    for data in (
        "py.typed",
        "migrations/script.py.mako",
        "migrations/versions/v0001_record_1_0.sql",
        "models/schema/session.conf",
        "audit/columns.toml",
        "evaluation/experiments/costs.toml",
        "engines/language_models/served/refusals.toml",
        "tasks/shared_limits.lua",
        "services/results/reports/templates",
        "sample",
    ):
        assert (site / "cotrail" / data).exists(), data


@pytest.mark.parametrize("name", OWN)
def test_the_projects_own_modules_and_cotrails_are_both_there(site: Path, project: Path, name: str) -> None:
    code = f"import cotrail.{name} as ours, {name} as own; print(ours.__file__); print(own.OWNER)"
    file, owner = python(site, project, "-c", code).splitlines()
    assert Path(file) == site / "cotrail" / name / "__init__.py"
    assert owner == f"{name} of the project"


def test_the_commands_and_the_workers_app_take_none_of_the_projects_modules(site: Path, project: Path) -> None:
    assert "ircot" in python(site, project, "-m", "cotrail.cli.main", "systems")
    report = python(site, project, "-m", "celery", "-A", "cotrail.workers.app", "report")
    assert "cotrail" in report
    code = "import cotrail.workers.app, sys; print(sorted(set(sys.argv[1:]) & set(sys.modules)))"
    assert python(site, project, "-c", code, *OWN) == "[]\n"
