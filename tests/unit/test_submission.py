"""What is checked before a run is submitted, and what a prepared run pins."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import fields

from cotrail.core.budgets import NO_BUDGETS
from cotrail.core.demonstrations import AnswerForm
from cotrail.core.questions import GoldParagraph
from cotrail.errors import InputError
from cotrail.models.queries.runs import RunRecord
from cotrail.services.library.named_files import PATH_FIELDS
from cotrail.services.runs.configuring import system_settings
from cotrail.services.runs.forking import prepare_fork
from cotrail.services.runs.requests import RunRequest, described, make_request, overruled, read_run_file
from cotrail.services.runs.submission import prepare
from cotrail.systems.registry import find_system
from cotrail.systems.spec import Needs
from tests.cases import each_case
from tests.unit.commands import DEMONSTRATION, Given


def test_the_fields_that_are_moved_as_files_are_those_that_take_paths() -> None:
    assert [field.name for field in fields(RunRequest) if described(RunRequest, field).get("value") == "PATH"] == list(
        PATH_FIELDS
    )


@each_case(
    ("changes", "said"),
    [
        ({"system": None}, "no system given"),
        ({"system": "ircott"}, "no system 'ircott' (did you mean ircot?)"),
        ({"dataset": "squad"}, "did you mean jsonl?"),
        ({"corpus": "unknown"}, "there are: ink"),
        ({"corpus": None}, "name one with --corpus"),
        ({"model": "gpt-9"}, "scripted"),
        ({"questions": "missing.jsonl"}, "missing.jsonl can't be read"),
        ({"demonstrations": "missing.txt"}, "missing.txt can't be read"),
        ({"limit": 0}, "limit"),
        ({"retrieval_count": 0}, "retrieval_count"),
        ({"retrieval_count": 10**18}, "retrieval_count"),
        ({"retrieval_count": "four"}, "retrieval_count"),
        ({"reader": "oracle"}, "reader"),
        ({"retriever": "dense"}, "the corpus ink can't be searched so"),
        ({"retriever": "bm25=1,dense"}, "give each list one weight above 0"),
        ({"rerank": "nobody"}, "there is no rater 'nobody'"),
        ({"rerank_depth": 5}, "name a rater as `rerank` too"),
        ({"system": "no-retrieval", "retriever": "dense"}, "searches no corpus"),
        ({"profile": "slow"}, "profile"),
        ({"temperature": -1}, "temperature"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**31}, "seed"),
        ({"colour": "red"}, "there is no key 'colour'"),
        ({"system": None, "sytem": "ircot"}, "no key 'sytem' (did you mean system?)"),
        ({"set_number": 2}, "a set_number needs sets"),
        ({"system": "one-step", "max_sentences": 3}, "one-step has no max_sentences"),
        ({"system": "no-retrieval", "retrieval_count": 3}, "no-retrieval has no retrieval_count"),
        ({"system": "no-retrieval", "reader": "none"}, "answers by its reader"),
        ({"settings": {"max_sentencs": 3}}, "there is no key `max_sentencs`"),
        ({"settings": {"retrieval": {"count": 3}}}, "there is no key `count`"),
        ({"settings": {"retrieval": 3}}, "retrieval"),
        ({"system": "rethinking", "settings": {"knowledge": ["evidence"]}}, "the corpus has none of them"),
    ],
)
def test_a_run_that_can_not_work_is_refused_by_name(changes: dict[str, Any], said: str, given: Given) -> None:
    with pytest.raises(InputError) as refused:
        prepare(make_request(given(**changes) | {key: value for key, value in changes.items() if value is not None}))
    assert said in str(refused.value)


def test_a_run_whose_model_can_not_do_what_its_system_asks_is_refused_before_anything_is_stored(
    given: Given, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talking = msgspec.structs.replace(
        find_system("no-retrieval"),
        needs=lambda _: Needs(brought={}, capabilities=frozenset({"turns", "continue", "scores"})),
    )
    monkeypatch.setattr("cotrail.services.runs.configuring.find_system", lambda _: talking)
    asked = make_request(given(system="no-retrieval"))
    assert prepare(asked).submission.model_name == "scripted"
    table = '[models.scripted]\nengine = "openai"\nurl = "http://host/v1"\nmodel = "m"\ncontext = 9\n'
    (home / "models.toml").write_text(table + 'api = "chat"\n')
    with pytest.raises(InputError, match=r"^the model scripted is behind a chat server.*: set continues to \"vllm\""):
        prepare(asked)
    (home / "models.toml").write_text(table + 'without = ["scores"]\n')
    with pytest.raises(InputError, match=r"set chat_template in its table .*; and it is behind .*no log probabilities"):
        prepare(asked)
    (home / "models.toml").write_text(table + 'api = "chat"\ncontinues = "vllm"\n')
    assert prepare(asked).submission.binding.model.startswith("scripted@")


def test_demonstrations_of_answers_alone_are_refused_for_chains(given: Given) -> None:
    asked = given()
    Path(asked["demonstrations"]).write_text(DEMONSTRATION.replace("X did. So the answer is: X.", "X"))
    with pytest.raises(InputError, match="chains of thought"):
        prepare(make_request(asked))
    assert prepare(make_request(asked | {"system": "one-step"})).submission.system == "one-step"


def test_a_run_may_bring_the_words_of_its_systems_prompt(given: Given, home: Path) -> None:
    (home / "prompt.txt").write_text("Plan for {question}")
    (home / "run.toml").write_text('prompt = "prompt.txt"\n')
    asked = {key: value for key, value in given(system="searchain").items() if key != "demonstrations"}
    brought = prepare(make_request(asked | read_run_file(home / "run.toml"))).submission
    assert [each.question for each in brought.shots[AnswerForm.PROMPT].items] == ["Plan for {question}"]
    assert brought.provenance["files"]["prompt"]["path"] == str(home / "prompt.txt")
    assert prepare(make_request(asked)).submission.shots == {}
    with pytest.raises(InputError, match="takes no prompt of the run's"):
        prepare(make_request(given(prompt=str(home / "prompt.txt"))))


def test_a_run_shows_a_named_set_in_its_order(given: Given, home: Path) -> None:
    four = "\n\n\n".join(DEMONSTRATION.replace('"d"', f'"d{n}"') for n in range(4))
    (home / "demonstrations.txt").write_text(four)
    (home / "sets.json").write_text('[["d0"], ["d3", "d1"]]')
    (home / "run.toml").write_text('sets = "sets.json"\nset_number = 2\n')
    prepared = prepare(make_request(given() | read_run_file(home / "run.toml")))
    for shots in prepared.submission.shots.values():
        assert [each.id for each in shots.items] == ["d3", "d1"]
    assert prepared.submission.provenance["files"]["sets"]["path"] == str(home / "sets.json")
    first = prepare(make_request(given(sets=str(home / "sets.json"))))
    assert {each.id for shots in first.submission.shots.values() for each in shots.items} == {"d0"}


def test_a_fork_that_needs_chains_takes_them_from_the_set_that_its_origin_showed(given: Given, home: Path) -> None:
    four = "\n\n\n".join(DEMONSTRATION.replace('"d"', f'"d{n}"') for n in range(4))
    (home / "demonstrations.txt").write_text(four)
    (home / "sets.json").write_text('[["d0"], ["d3", "d1"]]')
    shown = {"sets": str(home / "sets.json"), "set_number": 2}
    origin = prepare(make_request(given(system="no-retrieval", **shown))).submission
    known = msgspec.structs.asdict(origin) | msgspec.structs.asdict(origin.binding)
    record = cast(RunRecord, SimpleNamespace(**known | {"corpus": None, "corpus_revision": "", "knowledge": {}}))
    fork = prepare_fork(record, origin.shots, NO_BUDGETS, {"settings.reading.reader": "cot"}, None)
    assert [each.id for each in fork.shots[AnswerForm.COT].items] == ["d3", "d1"]
    (home / "sets.json").write_text('[["d0"], ["d2"]]')
    with pytest.raises(InputError, match=r"sets.json isn't the file that run .* was submitted with"):
        prepare_fork(record, origin.shots, NO_BUDGETS, {"settings.reading.reader": "cot"}, None)


def test_released_sets_are_no_file(given: Given, home: Path) -> None:
    (home / "run.toml").write_text('sets = "released"\n')
    asked = make_request(given() | read_run_file(home / "run.toml"))
    assert asked.sets == "released"
    with pytest.raises(InputError, match=r"demonstrations.txt: none of these demonstrations is in the released sets"):
        prepare(asked)


def test_a_prepared_run_pins_everything_that_decides_its_results(given: Given) -> None:
    prepared = prepare(make_request(given(retrieval_count=2, max_sentences=3, reader="cot", temperature=0.5, seed=7)))
    submission = prepared.submission
    assert re.fullmatch(r"ircot-\d{8}-[0-9a-f]{6}", submission.id)
    assert submission.settings["retrieval"]["retrieval_count"] == 2
    assert submission.settings["retrieval"]["max_paragraphs"] == 15
    assert (submission.settings["max_sentences"], submission.settings["reading"]["reader"]) == (3, "cot")
    assert set(submission.shots) == {AnswerForm.COT}
    assert submission.binding.model.startswith("scripted@")
    assert (submission.binding.temperature, submission.binding.seed, submission.binding.profile) == (0.5, 7, "fast")
    assert list(submission.binding.corpora) == [given()["corpus"]]
    assert submission.provenance["files"].keys() == {"questions", "demonstrations"}
    assert prepared.questions[0].gold == (GoldParagraph(title="Ink", text="Ink stains paper.", id="1"),)
    msgspec.json.encode(submission)


@pytest.mark.parametrize("priority", [None, 5, -3])
def test_a_run_has_the_priority_that_it_is_given(priority: int | None, given: Given) -> None:
    assert prepare(make_request(given(priority=priority))).submission.priority == (priority or 0)


def test_what_a_setting_leaves_open_stays_the_systems_own_default(given: Given) -> None:
    asked = given(system="one-step", settings={"retrieval": {"max_paragraphs": 20}})
    assert prepare(make_request(asked)).submission.settings["retrieval"]["retrieval_count"] == 15


@each_case("system", ["rethinking", "self-consistency", "chain-of-thought", "few-shot", "zero-shot"])
@each_case(("rules", "until"), [("paper", "chain"), ("released", "end")])
def test_chains_are_read_by_the_rules_that_are_named(system: str, rules: str, until: str, given: Given) -> None:
    request = make_request(given(system=system, rules=rules))
    configured = system_settings(find_system(system), request)
    assert (configured["chain_rules"], configured["until"]) == (rules, until)
    by_the_paper = system_settings(find_system(system), make_request(given(system=system)))
    assert configured == by_the_paper | {"chain_rules": rules, "until": until}


def test_a_run_without_demonstrations_or_retrieval_has_none(given: Given) -> None:
    submission = prepare(make_request(given(system="no-retrieval", demonstrations=None))).submission
    assert submission.binding.corpora == {}
    assert [shots.items for shots in submission.shots.values()] == [()]


def test_the_dataset_says_what_sort_of_questions_it_asks_unless_the_settings_do(given: Given) -> None:
    searchain = find_system("searchain")
    fever = given(system="searchain", dataset="fever")
    assert system_settings(searchain, make_request(fever))["questions"] == "fact-checking"
    told = make_request(fever | {"settings": {"questions": "multi-hop"}})
    assert system_settings(searchain, told)["questions"] == "multi-hop"
    assert system_settings(searchain, make_request(given(system="searchain")))["questions"] == "multi-hop"


def test_paths_in_a_run_file_are_relative_to_it(tmp_path: Path) -> None:
    file = tmp_path / "runs" / "a.toml"
    file.parent.mkdir()
    file.write_text('questions = "../q.jsonl"\ndemonstrations = "/d.txt"\n')
    assert read_run_file(file) == {"questions": f"{tmp_path}/runs/../q.jsonl", "demonstrations": "/d.txt"}


def test_a_run_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("system = ")
    with pytest.raises(InputError, match="isn't TOML"):
        read_run_file(tmp_path / "a.toml")


def test_gold_paragraphs_that_the_corpus_lacks_are_counted_before_a_run(given: Given, home: Path) -> None:
    assert prepare(make_request(given())).missing_gold == 0
    lost = {"id": "q2", "question": "Where?", "gold": [{"title": "Lost", "text": "It is lost."}]}
    with (home / "questions.jsonl").open("a") as file:
        file.write(json.dumps(lost) + "\n")
    assert prepare(make_request(given())).missing_gold == 1


def test_the_demos_run_is_accepted_over_the_bundled_sample(home: Path) -> None:
    from cotrail.cli.commands.demo import CORPUS, QUESTION_COUNT, sample_request
    from cotrail.cli.commands.start import SAMPLE
    from cotrail.services.library.corpora import index

    index([SAMPLE / "corpus.jsonl"], CORPUS)
    prepared = prepare(msgspec.structs.replace(sample_request(QUESTION_COUNT), model="scripted"))
    assert len(prepared.questions) == QUESTION_COUNT
    assert all(question.gold for question in prepared.questions)


def test_an_engine_goes_by_its_role_among_engines_or_beside_them(given: Given) -> None:
    asked = overruled(given(extractor="one", relevance_rater="two"), {"engines": {"extractor": "three"}})
    assert make_request(asked).engines == {"extractor": "three", "relevance_rater": "two"}
    asked = overruled(given(engines={"judge": "one", "extractor": "two"}), {"extractor": "three"})
    assert make_request(asked).engines == {"judge": "one", "extractor": "three"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"extractor": 3}, "run.toml: `engines.extractor` must be text"),
        ({"engines": "reader"}, "run.toml: `engines` must be "),
        ({"engines": 3, "extractor": "one"}, "run.toml: `engines` must be "),
        ({"extracter": "one"}, "did you mean extractor"),
    ],
)
def test_an_engine_s_name_that_is_none_is_refused_with_its_place(
    given: Given, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        make_request(given(**asked), dict.fromkeys(asked, "run.toml"))
