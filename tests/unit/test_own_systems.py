"""Systems of one's own: made of functions, read from files, found by the digest of their text."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.binding import Binding
from cotrail.core.history import Finished, Halt, Next, Recorded
from cotrail.core.questions import Question
from cotrail.core.replay import FURTHER_STEPS, Replay, SystemBrokenError
from cotrail.core.results import Retrieved
from cotrail.core.system import Answer, System
from cotrail.errors import InputError, UnknownNameError, UnknownVersionError
from cotrail.systems import own
from cotrail.systems.registry import SYSTEMS, find_system

MINE = '''
import cotrail
from prompts import QUERY

@cotrail.system(version=2)
def first_title(question, k: int = 3):
    """Answer with the best title."""
    found = yield from cotrail.search(QUERY + question.text, k)
    return cotrail.Answer(text=found[0].title if found else "")
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A system with a module beside it."""
    (tmp_path / "prompts.py").write_text('QUERY = "who: "\n')
    (tmp_path / "unrelated.py").write_text("raise OSError\n")
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "FOLDERS", [])
    monkeypatch.setattr("cotrail.systems.registry.SYSTEMS", list(SYSTEMS))


def yielded(system: str, text: str = "Ada") -> Any:
    spec = find_system(system)
    running = spec.open(Question(id="q", text=text), {}, spec.settings())
    action = next(running)
    with pytest.raises(StopIteration) as stop:
        running.send(Retrieved(hits=()))
    return action, stop.value.value


def test_a_file_is_a_system_by_the_digest_of_its_text(file: Path, tmp_path: Path) -> None:
    name = own.installed(str(file), tmp_path / "kept")
    assert name.startswith("first-title@")
    assert yielded(name) == (Retrieve(query="who: Ada", count=3), Answer(text=""))
    spec = find_system(name, 2)
    assert (spec.version, spec.meaning, spec.settings(k=5)) == (2, "Answer with the best title.", spec.settings(k=5))
    with pytest.raises(UnknownVersionError):
        find_system(name, 3)


def test_what_is_changed_or_deleted_later_is_another_system(file: Path, tmp_path: Path) -> None:
    name = own.installed(str(file), tmp_path / "kept")
    (file.parent / "prompts.py").write_text('QUERY = "what: "\n')
    other = own.installed(f"{file}:first-title", tmp_path / "kept")
    assert other != name
    assert [yielded(each)[0].query for each in (name, other)] == ["who: Ada", "what: Ada"]
    (file.parent / "unrelated.py").write_text("")
    assert own.installed(str(file), tmp_path / "kept") == other
    file.unlink()
    assert yielded(name)[0].query == "who: Ada"


def test_a_kept_text_that_was_changed_is_refused(file: Path, tmp_path: Path) -> None:
    name = own.installed(str(file), tmp_path / "kept")
    [place] = (tmp_path / "kept").iterdir()
    (place / "prompts.py").write_text('QUERY = "changed: "\n')
    with pytest.raises(InputError, match="was changed; submit its file again"):
        find_system(name)


def test_a_text_that_is_not_kept_here_says_what_to_do() -> None:
    with pytest.raises(UnknownNameError, match="isn't kept here: submit it from its file again"):
        find_system("first-title@0123456789abcdef")
    with pytest.raises(UnknownVersionError, match="then `cotrail resume RUN`"):
        find_system("first-title@0123456789abcdef", 1)
    for odd in ("a@../../etc/passwd", "a@", "@", "a@b@c"):
        with pytest.raises(UnknownNameError):
            find_system(odd)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("def broken(:\n", "can't be read as Python, line 1"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("x = 1\n", "has no system: put `@cotrail.system` above"),
        ("import cotrail\n@cotrail.system\ndef f(question):\n    return 1\n", "yields nothing"),
        ("import cotrail\n@cotrail.system\ndef f(question, k):\n    yield k\n", "settings that have defaults"),
        ("import cotrail\n@cotrail.system(name='A b')\ndef f(question):\n    yield 1\n", "can't be named 'A b'"),
        ("\0", "can't be read as Python"),
        ("import sys\nsys.exit(3)\n", "can't be imported .SystemExit: 3"),
        ("import cotrail\n@cotrail.system\ndef f():\n    yield 1\n", "takes the question first"),
        ("import cotrail\n@cotrail.system\ndef f(question, k=object()):\n    yield 1\n", "such as numbers"),
    ],
)
def test_a_file_that_is_no_system_is_refused_with_what_to_do(text: str, refused: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError, match=refused):
        own.installed(str(tmp_path / "mine.py"), tmp_path / "kept")


def test_a_module_next_to_it_is_imported_at_the_top_or_refused(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("X = 1\n")
    lazy = "import cotrail\n@cotrail.system\ndef f(question):\n    import helper\n    yield helper.X\n"
    (tmp_path / "mine.py").write_text(lazy)
    with pytest.raises(InputError, match="imports helper inside a function: import it at the top"):
        own.installed(str(tmp_path / "mine.py"), tmp_path / "kept")


def test_what_is_no_function_is_refused() -> None:
    for given in (8, "ircot"):
        with pytest.raises(InputError, match="is a function that yields actions"):
            own.system(given)  # type: ignore[call-overload]


def test_a_file_is_named_where_it_is_submitted() -> None:
    with pytest.raises(UnknownNameError, match="take as --system"):
        find_system("mine.py")


def test_of_several_one_is_named(tmp_path: Path) -> None:
    both = "import cotrail\n" + "".join(
        f"@cotrail.system\ndef {name}(question):\n    yield 1\n" for name in ("one", "other_one")
    )
    (tmp_path / "mine.py").write_text(both)
    with pytest.raises(InputError, match=r"has the systems one, other-one: name one, as .*mine.py:NAME"):
        own.installed(str(tmp_path / "mine.py"), tmp_path / "kept")
    assert own.installed(f"{tmp_path}/mine.py:other-one", tmp_path / "kept").startswith("other-one@")
    with pytest.raises(InputError, match="there is no file"):
        own.installed(str(tmp_path / "nowhere.py"), tmp_path / "kept")


def test_modules_beside_are_not_those_of_another_file(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(MINE)
        (tmp_path / folder / "prompts.py").write_text(f'QUERY = "{folder}: "\n')
    names = [own.installed(str(tmp_path / folder / "mine.py"), tmp_path / "kept") for folder in ("a", "b")]
    assert [yielded(each)[0].query for each in names] == ["a: Ada", "b: Ada"]


def test_a_function_has_its_settings() -> None:
    @own.system
    def mine(question: Question, k: int = 3, *, deep: bool = False) -> System:
        yield Retrieve(query=question.text, count=k * (10 if deep else 1))
        return Answer(text="")

    running = mine.open(Question(id="q", text="Ada"), {}, mine.settings(k=2, deep=True))
    assert next(running) == Retrieve(query="Ada", count=20)


def test_what_may_make_it_impure_is_named_by_line(tmp_path: Path) -> None:
    text = "import cotrail, time\nfrom random import choice\n\n@cotrail.system\ndef f(question):\n"
    (tmp_path / "f.py").write_text(f"{text}    for each in {{1, 2}}:\n        yield each\n    [x for x in set('ab')]\n")
    said: list[str] = []
    own.installed(str(tmp_path / "f.py"), tmp_path / "kept", said.append)
    assert said == [
        "f.py, line 1: time isn't the same each time",
        "f.py, line 2: random isn't the same each time",
        "f.py, line 6: a set has no order; sort it",
        "f.py, line 8: a set has no order; sort it",
    ]


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ('" ".join({x for x in "ab"})', 1),
        ('list({"a"} | {"b"})', 1),
        ('print(*set("ab"))', 1),
        ("for each in words: pass", 1),
        ("[*words]", 1),
        ('" ".join(sorted(words))', 0),
        ("len(words), max(words), 'a' in words", 0),
        ("for each in names: pass", 0),
        ("for each in sorted({1, 2}): pass", 0),
    ],
)
def test_sets_are_found_whatever_goes_through_them(line: str, times: int, tmp_path: Path) -> None:
    body = f"words = set('ab')\nnames = set('ab')\nnames = sorted(names)\n{line}\n"
    system = "import cotrail\n@cotrail.system\ndef f(question):\n    yield 1\n"
    (tmp_path / "f.py").write_text(body + system)
    said: list[str] = []
    own.installed(str(tmp_path / "f.py"), tmp_path / "kept", said.append)
    assert said == ["f.py, line 4: a set has no order; sort it"] * times


def test_two_systems_of_one_name_are_refused(tmp_path: Path) -> None:
    one = "@cotrail.system\ndef a(question):\n    yield 1\n"
    (tmp_path / "f.py").write_text(f"import cotrail\n{one}first = a\n{one}")
    for path in ("f.py", "f.py:a"):
        with pytest.raises(InputError, match="several systems named a: give each a name of its own"):
            own.installed(str(tmp_path / path), tmp_path / "kept")


def test_a_byte_order_mark_is_read_past_and_folders_are_not_taken_along(tmp_path: Path) -> None:
    system = "import cotrail\n@cotrail.system\ndef f(question):\n    yield 1\n"
    (tmp_path / "f.py").write_text(system, "utf-8-sig")
    assert own.installed(str(tmp_path / "f.py"), tmp_path / "kept").startswith("f@")
    (tmp_path / "parts_of_it").mkdir()
    (tmp_path / "parts_of_it" / "__init__.py").write_text("A = 1")
    (tmp_path / "g.py").write_text(f"from parts_of_it import A\n{system}")
    with pytest.raises(InputError, match="modules next to it are taken along, and no folders"):
        own.installed(str(tmp_path / "g.py"), tmp_path / "kept")


BINDING = Binding(model="m@1", profile="fast", temperature=0.0, seed=0, corpora={"c": "1"})


def test_a_system_that_catches_everything_ends_behind_its_limit() -> None:
    @own.system
    def stubborn(question: Question) -> System:
        for _ in range(100_000):
            with suppress(Exception):
                yield Retrieve(query=question.text, count=1)
        return Answer(text="")

    replay = Replay(lambda: stubborn.open(Question(id="q", text="Ada"), {}, stubborn.settings()), BINDING)
    history: list[Recorded] = []
    halt = Halt(after=5, limit="steps")
    while not isinstance(following := replay.advance(history, halt if len(history) >= 5 else None), Finished):
        assert isinstance(following, Next)
        history += [
            Recorded(kind="retrieve", fingerprint=s.fingerprint, outcome=Retrieved(hits=())) for s in following.steps
        ]
    assert following.answer == Answer(text="", limit="steps")
    assert len(history) == 5 + FURTHER_STEPS
    replay.close()


def test_code_that_never_yields_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    @own.system
    def endless(question: Question) -> System:
        yield Retrieve(query=question.text, count=1)
        while True:
            pass

    monkeypatch.setattr("cotrail.core.replay.MOST_SECONDS", 0.2)
    replay = Replay(lambda: endless.open(Question(id="q", text="A"), {}, endless.settings()), BINDING, watched=True)
    following = replay.advance([])
    assert isinstance(following, Next)
    step = Recorded(kind="retrieve", fingerprint=following.steps[0].fingerprint, outcome=Retrieved(hits=()))
    with pytest.raises(SystemBrokenError, match=r"EndlessError in test_own_systems.py, line \d+: it took more than"):
        replay.advance([step])


NO_ANSWER: Any = None


@pytest.mark.parametrize(
    "answer", ["x", Answer(text="x", paragraphs=(NO_ANSWER,)), Answer(text="\ud800"), Answer(text=NO_ANSWER)]
)
def test_what_is_no_answer_or_cannot_be_recorded_is_refused(answer: Any) -> None:
    @own.system
    def wrong(question: Question) -> System:
        yield from ()
        return answer  # type: ignore[no-any-return]

    with pytest.raises(SystemBrokenError, match="returned"):
        Replay(lambda: wrong.open(Question(id="q", text="A"), {}, wrong.settings()), BINDING).advance([])


def test_the_line_that_stops_a_generator_is_named() -> None:
    @own.system
    def stops(question: Question) -> System:
        yield from ()
        raise StopIteration

    with pytest.raises(SystemBrokenError, match=r"in test_own_systems.py, line \d+"):
        Replay(lambda: stops.open(Question(id="q", text="A"), {}, stops.settings()), BINDING).advance([])


def test_a_process_finds_systems_that_are_kept_after_it_began(tmp_path: Path) -> None:
    code = (
        "from cotrail.configuration.extensions import load_extensions; load_extensions()\n"
        "from cotrail.common.processes import FOLDERS; print(*FOLDERS)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], env={"COTRAIL_HOME": str(tmp_path)}, text=True)
    assert said.strip() == str(tmp_path / "systems")
