import json
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.actions.embed import Rate
from cotrail.core.ports.encoders import second_texts
from cotrail.core.questions import Paragraph
from cotrail.core.results import Rated
from cotrail.engines.rating.raters import RATERS, ScriptedRater
from cotrail.errors import InputError, PromptTooLongError, UnknownNameError

VELL = Paragraph(id="v", title="Vell", text="The Vell flows into the Amber Sea.")
FACT = Paragraph(id="f", title="", text="The Vell is a river.")
ASKED = Rate(by="relevance", text="Where does the Vell end?", others=("Which sea?", "Who?"), paragraphs=(VELL, FACT))


def test_the_texts_come_first_and_then_the_statements_of_the_paragraphs() -> None:
    assert second_texts(ASKED) == ["Which sea?", "Who?", f"Vell\n{VELL.text}", FACT.text]
    assert second_texts(Rate(by="duplicate", text="Who?")) == []


def test_a_script_scores_texts_and_then_paragraphs_by_title_or_text() -> None:
    scores = {ASKED.text: {"Which sea?": 0.9, "Vell": 7.5, FACT.text: -2.0}}
    rater = ScriptedRater({"scores": scores, "default": 0.1})
    assert rater.rate([ASKED]) == [Rated(scores=(0.9, 0.1, 7.5, -2.0))]
    # The first text of a pair is the one that is scored.
    assert rater.rate([Rate(by="duplicate", text="Which sea?", others=(ASKED.text,))]) == [Rated(scores=(0.1,))]


def listed(tmp_path: Path, table: str) -> Path:
    (tmp_path / "models.toml").write_text(f"[raters.mine]\n{table}\n")
    return tmp_path / "models.toml"


def test_a_script_of_the_list_is_opened_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "scores.json").write_text(json.dumps({"default": 0.5}))
    spec = RATERS.find(listed(tmp_path, 'engine = "scripted"\npath = "scores.json"'), "mine")
    opened = spec.open("deterministic")
    assert spec.identity() == opened.identity
    assert opened.identity.startswith("mine@")
    assert opened.rate([ASKED]) == [Rated(scores=(0.5,) * 4)]


def test_a_malformed_table_and_an_unknown_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are: sentence-transformers, late-interaction, server, scripted"):
        RATERS.find(listed(tmp_path, 'engine = "transformers"\npath = "x"'), "mine")
    served = 'engine = "server"\nmodel = "m"\nurl = '
    with pytest.raises(InputError, match="leave out its end, /rerank or /"):
        RATERS.find(listed(tmp_path, f'{served}"http://host/v1/rerank"'), "mine")
    with pytest.raises(InputError, match='raw_scores is for api = "tei"'):
        RATERS.find(listed(tmp_path, f'{served}"http://host"\nraw_scores = true'), "mine")
    with pytest.raises(UnknownNameError, match=r"there is no rater 'yours'; there are: mine, ms-marco-"):
        RATERS.find(listed(tmp_path, 'engine = "scripted"\npath = "x"'), "yours")


def test_the_runs_own_model_rates_by_what_it_says_to_a_prompt() -> None:
    def prompt(passage: str) -> str:
        return f"Passage: {passage}\nQuery: {ASKED.text}\nDoes the passage answer the query?\nAnswer:"

    vell = f"Vell\n{VELL.text}"
    table = {prompt(vell): (0.6, 0.2), prompt(FACT.text): (0.1, 0.3), prompt("Which sea?"): (0.0, 0.5)}
    asked: list[str] = []

    class Model:
        identity = "writer@1"

        def probabilities(self, text: str, choices: tuple[str, ...]) -> tuple[float, ...]:
            asked.append(text)
            if len(text) > 400:
                raise PromptTooLongError("too long")
            assert choices == (" Yes", " No")
            return table.get(text, (0.5, 0.5))

    spec = RATERS.find(Path("nowhere.toml"), "prompted")
    model: Any = Model
    rater = spec.open("deterministic", model)
    assert rater.identity == spec.identity("writer@1")
    assert rater.identity.endswith("+writer@1")
    assert rater.rate([ASKED, ASKED]) == [Rated(scores=(0.0, 0.5, 0.75, 0.25))] * 2
    assert len(asked) == 4
    long = Paragraph(id="l", title="", text="x" * 1000)
    assert rater.rate([Rate(by="relevance", text="Q?", paragraphs=(long,))]) == [Rated(scores=(0.5,))]
