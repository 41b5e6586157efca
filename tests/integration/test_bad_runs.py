"""What people get wrong about runs that are there: each is refused in few plain words, and nothing changes."""

import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cotrail.cli.main import main
from cotrail.configuration.settings import settings
from tests.integration.recorded import PLAIN

JARGON = ("Traceback", "Expected `", "`int`", "`str`", "Errno", "codec", "ydantic", "NoneType", "Input should", "$.")
"""Words of Python and of libraries, which say nothing to people."""

KNOWN = "`cotrail runs` lists them"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        *((f"{command} nope", KNOWN) for command in ("show", "pause", "resume", "retry", "cancel", "watch", "replay")),
        ("score nope", KNOWN),
        ("export nope", KNOWN),
        ("report nope --html x.html", KNOWN),
        ("rethinking nope", KNOWN),
        ("annotate nope", KNOWN),
        ("audit verify nope", KNOWN),
        ("audit export nope", KNOWN),
        ("prune nope", KNOWN),
        ("runs --after nope", KNOWN),
        ("trace plain 999", "has no question '999'; give its id (such as"),
        ("trace plain 1 --prompt 99", "question 1 has no step 99; its steps are 0 to "),
        ("trace plain 1 --prompt x", "--prompt must be a whole number, e.g. 4, not 'x'"),
        ("audit prompt abc", "a step is named by RUN QUESTION STEP, or by its id alone"),
        ("export plain --format csv", "--format can't be 'csv'; there are: jsonl, "),
        ("export plain -o no/x", "no/x can't be written (No such file or directory); choose another --output"),
        ("audit export plain -o no/x", "no/x can't be written (No such file or directory); choose another --output"),
        ("runs --filter state=done", "state can't be 'done'; there are: "),
        ("runs --filter sate=x", "there is no key 'sate' (did you mean state?)"),
        ("prune", "say which runs: by their ids, or with --older-than DAYS"),
        ("prune --older-than 1e400", "--older-than must be a number from 0 to 36,600, e.g. 4, not '1e400'"),
        ("prune --older-than -1", "--older-than must be a number from 0 to 36,600, e.g. 4, not '-1'"),
        ("prune --older-than nan", "--older-than must be a number from 0 to 36,600, e.g. 4, not 'nan'"),
        ("prioritize plain 99999999999999999999", "take one from -2,147,483,647 to 2,147,483,647"),
        ("label plain --tag \x07", "can't be a run's tag: it begins with a letter or digit"),
        ("fork plain --set x", "'x' sets nothing: write KEY=VALUE"),
        (
            "fork plain --set readr=cot",
            "there is no 'readr' to set in run plain (did you mean reader?); `cotrail systems",
        ),
        ("fork plain --set zzz=1", ", such as model, profile, "),
        ("fork plain --set reader=coot", "`reading.reader` can't be 'coot' (did you mean cot?)"),
        ("fork plain --set retrieval_count=zero", "`retrieval.retrieval_count` must be a whole number from 1 to 10"),
        ("fork plain --set temperature=nan", "`temperature` must be a number from 0 to 10"),
        ("fork plain --set model=gpt-4o", "[models.gpt-4o]\n"),
        ("fork plain --at x", "'x' is no step to fork at"),
        ("annotate plain --sample 0", "--sample must be a whole number, 1 or more"),
        ("annotate plain --import nope", "nope can't be read (No such file or directory); check the path"),
        ("annotate plain --import marks.jsonl", "marks.jsonl:1: the key `run` is missing"),
        ("annotate plain --import a --export b", "can't go together"),
        ("experiment report nope", "there is no experiment 'nope'; there are: ours"),
    ],
)
def test_a_bad_request_is_refused_in_plain_words(
    line: str,
    said: str,
    store: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert PLAIN == "plain"
    url = store.url.render_as_string(hide_password=False).replace("+psycopg", "")
    monkeypatch.setenv("COTRAIL_DATABASE_URL", url)
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "marks.jsonl").write_text("{}\n")
    monkeypatch.setattr(sys, "argv", ["cotrail", *line.split(" ")])
    settings.cache_clear()
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert said in printed.err
    assert len(printed.err) < 700
    assert not [word for word in JARGON if word in printed.err]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["marks.jsonl"]
