"""Every system has its page, which names its settings as they are and shows lines that stand in its code."""

import re
from pathlib import Path

from cotrail.services.library.systems import describe_system, list_systems
from tests.cases import each_case

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "systems"
INDEX = PAGES / "README.md"
NAMES = [each.name for each in list_systems()]

ROW = re.compile(r"^\| ([^|]+) \|", re.MULTILINE)
WORD = re.compile(r"[a-z0-9_.]*[a-z0-9_]")
NAMED = re.compile(r"`([a-z0-9_.]+)`")
SHOWN = re.compile(r"^```(?:python|toml)\n# (cotrail/\S+\.(?:py|toml))\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((\.\./[a-z]+\.md)")


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text("utf-8")


def section(text: str, heading: str) -> str:
    _, _, behind = text.partition(f"\n## {heading}\n")
    return behind.partition("\n## ")[0]


@each_case("name", NAMES)
def test_a_page_names_every_setting(name: str) -> None:
    """By itself or with the longer page that it begins with; what systems share may stand in the index."""
    own = page(name)
    longer = [(PAGES / each).resolve().read_text("utf-8") for each in LINK.findall(own.partition("\n## ")[0])]
    words = {word for text in (own, *longer) for word in WORD.findall(text)}
    shared = {word for word in WORD.findall(INDEX.read_text("utf-8")) if "." in word}
    settings = {each.name for each in describe_system(name).settings}
    assert {each for each in settings - shared if not {each, each.rpartition(".")[2]} & words} == set()


@each_case("name", NAMES)
def test_the_settings_in_a_pages_table_exist(name: str) -> None:
    settings = {each.name for each in describe_system(name).settings}
    groups = {each.partition(".")[0] for each in settings}
    named = {each for cell in ROW.findall(section(page(name), "Settings")) for each in NAMED.findall(cell)}
    assert named - settings - groups == set()


@each_case("path", sorted(PAGES.glob("*.md")), ids=lambda path: path.stem)
def test_the_lines_that_a_page_shows_stand_in_the_code(path: Path) -> None:
    for file, block in SHOWN.findall(path.read_text("utf-8")):
        lines = [line.strip() for line in (ROOT / file).read_text("utf-8").splitlines()]
        at = 0
        for shown in (line.strip() for line in block.splitlines() if line.strip() not in ("", "...", "# ...")):
            assert shown in lines[at:], f"{path.name} shows what doesn't stand in {file} there: {shown}"
            at = lines.index(shown, at) + 1


def test_the_index_has_every_system_with_its_title() -> None:
    rows = dict(re.findall(r"^\| \[`([a-z0-9-]+)`\]\(\1\.md\) \| ([^|]+) \|", INDEX.read_text("utf-8"), re.MULTILINE))
    assert {each.name: each.title for each in list_systems()}.items() <= rows.items()
