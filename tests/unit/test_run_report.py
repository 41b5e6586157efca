"""The HTML page of a run: what a reader finds on it, and that everything on it leads somewhere."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.retrieve import Lookup
from cotrail.core.results import Embedded, Entailed, Failure
from cotrail.evaluation.causes.cause import Cause, CauseLabel
from cotrail.evaluation.experiments.costs import Work, cost
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.records.runs import Labels
from cotrail.services.results.reports.pages import page
from cotrail.services.results.reports.run_report import run_page
from tests.cases import each_case
from tests.unit.made_results import ADOPTED, COST, MADE
from tests.unit.made_runs import NAMELESS, OWLS, progress, question, record, search, step, weighing, written
from tests.unit.made_trees import tree

VOID = {"meta", "input", "br", "wbr", "line", "polyline", "circle", "rect"}


@dataclass
class Page(HTMLParser):
    """A page as read: its text, ids, links and classes; tags that don't match are errors."""

    html: str
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self._within_words = False
        self.feed(self.html)
        assert not self._open
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self._within_words = tag == "bdi"
        self.ids += [told["id"] or ""] if "id" in told else []
        self.links += [told["href"] or ""] if "href" in told else []
        self.classes += [told["class"] or ""] if "class" in told else []
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._within_words = tag == "bdi"
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.text += data if self._within_words else f" {data}"


def page_of(*asked: TracedQuestion, system: str = "ircot") -> Page:
    return Page(run_page(record(system), progress(asked), COST, asked).html)


def answered_by(details: Struct, **fields: Any) -> TracedQuestion:
    return question(details=msgspec.to_builtins(details), **fields)


WRONG: dict[str, Any] = {"answer": "no"}
MISSED: dict[str, Any] = {"collected": (), "steps": (written(0, "Owls?"),)}
OPEN: dict[str, Any] = {"status": "open", "answer": None}


# Chains and votes


def test_a_weighed_answer_has_its_chains_with_evidence_scores_and_votes() -> None:
    found = page_of(answered_by(weighing()), system="rethinking")
    assert "yes ✓ right chosen 0.78 2" in found.text
    assert "no ✗ wrong -1.00 1" in found.text
    sentence = "Owls sleep at night. M -1.00 E 0.00 C 0.00 f -1.00 No evidence was found."
    assert f"Chain 1: no · f(R) -1.00 Evidence for 1 sentence {sentence}" in found.text
    entailed = "M 0.81 E 0.92 C 0.03 f 0.78 ★ gold Owls : Owls hunt at night."
    assert (
        f"Chain 2: yes · f(R) 0.78 · chosen Evidence for 1 sentence Owls are awake at night. {entailed}" in found.text
    )
    assert {"#q-1-chain-1", "#q-1-chain-2", f"#p-{OWLS.digest}"} <= set(found.links)


def test_a_variant_s_facts_are_shown_and_their_evidence_is_on_the_page_even_if_it_wasn_t_collected() -> None:
    steps = (search(0, OWLS, NAMELESS),)
    found = page_of(answered_by(weighing(function=3, facts=True), steps=steps), system="rethinking")
    assert "generated: Hens lay eggs. instead of “Hens fly.” E 0.66 C 0.11 A hen lays eggs." in found.text
    assert f"p-{NAMELESS.digest}" in found.ids


def test_chains_that_merely_vote_are_shown_as_written_without_scores() -> None:
    voted = weighing(function=0)
    voted = replace(voted, chains=tuple(replace(each, sentences=()) for each in voted.chains))
    found = page_of(answered_by(voted), system="self-consistency")
    assert "Chain 1: no Owls sleep at night. So the answer is no." in found.text
    assert "f(R)" not in found.text
    assert "with the number of chains" in found.text


def test_comparisons_are_steps_with_their_results_in_words() -> None:
    judged = Entailed(entailment=0.9, neutral=0.07, contradiction=0.03)
    steps = (
        search(0, OWLS, action=Lookup(source="wikidata", text="night")),
        step(1, Embed(sentences=("Owls wake.",), paragraphs=(OWLS,)), Embedded(similarities=((0.8125,),))),
        step(2, Entail(premise=OWLS, hypothesis="Owls wake."), judged),
        step(3, Entail(premise=OWLS, hypothesis="Owls sleep."), state="running"),
    )
    found = page_of(question(steps=steps, **OPEN), system="rethinking")
    assert "asked wikidata about “night”" in found.text
    assert "embed “Owls wake.” 0.81 like Owls, the nearest of 1" in found.text
    assert "0.90 entailed, 0.07 neutral, 0.03 contradicted by Owls" in found.text
    assert "entail “Owls sleep.” running" in found.text


# Marks and filters


def test_each_answer_has_a_word_for_what_it_is() -> None:
    asked = (question(), question("q2", **WRONG), question("q3", **OPEN), question("q4", answers=()))
    found = page_of(*asked)
    assert [found.text.count(each) for each in ("✓ right", "✗ wrong", "… not finished")] == [2, 2, 2]
    states = [each for each in found.classes if each.startswith("q ")]
    assert states == [
        "q right gold-found",
        "q wrong gold-found cause-found-but-not-shown",
        "q unfinished gold-found",
        "q unscored gold-found",
    ]


def test_filters_say_how_many_questions_they_show_and_those_that_show_none_are_off() -> None:
    asked = (question(), question("q2", **WRONG), question("q3", **WRONG, **MISSED), question("q4", **OPEN))
    found = page_of(*asked)
    shown = "all 4 right 1 wrong 2 gold found, answer wrong 1 gold paragraphs missing 1 not finished 1"
    assert f"Show {shown}" in found.text
    assert 'id="f-found">' in found.html
    assert 'id="f-found" disabled>' in page_of(question()).html


def test_the_style_sheet_has_a_rule_for_each_filter() -> None:
    html = page_of(question()).html
    names = set(re.findall(r'id="f-(\w+)"', html)) - {"all"}
    assert names == set(re.findall(r"#f-(\w+):checked", html))


def test_each_wrong_answer_has_its_cause_and_a_filter_shows_those_of_one_cause() -> None:
    labels = [CauseLabel(question_id="q2", annotator="ann", cause=Cause.UNEXPLAINED, note="who knows")]
    asked = [question(), question("q2", **WRONG), question("q3", **WRONG, **MISSED), question("q4", **OPEN)]
    html = run_page(record(), progress(asked), COST, asked, cause_labels=labels).html
    found = Page(html)
    assert "Wrong by gold never found 1 found but not shown 1" in found.text
    assert 'id="f-cause-gold-never-found"' in html
    assert [each for each in found.classes if each.endswith("cause-gold-never-found")] == [
        "q wrong gold-missing cause-gold-never-found",
        "question q wrong gold-missing cause-gold-never-found",
    ]
    assert "found but not shown : gold paragraph 'Owls' was found at step 0, rank 1, and never shown" in found.text
    assert "ann says unexplained : who knows" in found.text
    assert "Share of the 2 wrong answers by cause" in found.text
    assert "gold never found 1 50.0 %" in found.text
    assert html.count('<rect class="bar"') >= 2


def test_the_style_sheet_has_a_rule_for_the_filter_of_each_cause() -> None:
    html = page_of(question()).html
    for cause in Cause:
        assert f"main:has(#f-cause-{cause.slug}:checked) .q:not(.cause-{cause.slug})" in html


def test_without_a_wrong_answer_there_is_nothing_about_causes() -> None:
    page = page_of(question())
    assert "Causes" not in page.text
    assert "Wrong by" not in page.text


# Links, scripts, foreign text


@each_case("system", ["rethinking", "searchain", "ircot"])
def test_every_link_leads_to_something_on_the_page_and_no_id_exists_twice(system: str) -> None:
    details = {"rethinking": weighing(facts=True), "searchain": tree("mc- df")}.get(system)
    asked = [question() if details is None else answered_by(details), question("q2", **MISSED)]
    found = page_of(*asked, system=system)
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)
    assert {"#q-1", "#q-2"} <= set(found.links)
    assert len(found.ids) == len(set(found.ids))


def test_what_a_model_wrote_is_text_and_no_script_runs_but_the_page_s_own() -> None:
    script = "<script>alert(1)</script>"
    chains = weighing()
    chains = replace(chains, chains=(replace(chains.chains[0], prediction=script, text=script), chains.chains[1]))
    reason = Failure(type="Broken", message=script)
    failed = question("q2", text=script, **{**OPEN, "status": "failed"}, reason=reason)
    found = page_of(answered_by(chains, steps=(written(0, script),)), failed, system="rethinking")
    assert found.html.count("<script>") == 1
    assert "alert(1)" in found.text
    assert "script-src 'sha256-" in found.html
    assert "default-src 'none'" in found.html


def test_details_of_a_system_that_is_no_longer_there_are_shown_as_json() -> None:
    assert "details of the answer: {&#34;a&#34;:1}" in page_of(question(details={"a": 1}), system="gone").html


def test_a_page_needs_all_its_values() -> None:
    with pytest.raises(Exception, match="undefined"):
        page("report.html", run=record())


def test_the_configuration_has_revisions_digests_and_the_seed() -> None:
    asked = (question(),)
    text = Page(run_page(record(experiment_id="ours", cell="a/b"), progress(asked), COST, asked).html).text
    pinned = ("tiny@b2b2b2b2b2b2", "revision a1a1a1a1a1a1", "seed 17", "SHA-256 c3c3c3c3c3c3", "e5" * 32)
    assert [each for each in ("ours, a/b", *pinned) if each not in text] == []


def test_what_was_asked_for_adopted_and_made_stands_on_the_page() -> None:
    asked = (question(),)
    lost = cost(made=MADE, adopted=ADOPTED, lost={"expired": 2}, lost_seconds=3.0)
    told = Page(run_page(record(origin="run-0"), progress(asked), lost, asked).html).text
    assert "Asked for: 8 model calls, 4 searches, 4,000 tokens read (1,000, 25 %, from the cache), 200 written" in told
    assert "Adopted from run run-0, and not spent: 3 model calls, 2 searches" in told
    assert "Made: 5 model calls, 2 searches, 2,500 tokens read (500, 20 %, from the cache), 150 written" in told
    assert "Executions without a result: 2 expired, " in told
    alone = cost(made=MADE, adopted=Work(), lost={}, lost_seconds=0.0)
    told = Page(run_page(record(), progress(asked), alone, asked).html).text
    assert "Made: 5 model calls" in told
    assert "dopted" not in told


def test_texts_of_any_length_are_short_in_the_table_and_whole_in_the_details() -> None:
    found = page_of(question(text="Which " * 200 + "end?", answer="owl " * 100 + "."))
    table = found.html[found.html.index("<tbody>") : found.html.index("</tbody>")]
    assert "end?" not in table
    assert found.text.count("end?") == found.text.count("owl .") == 1


def test_foreign_texts_have_a_direction_of_their_own() -> None:
    arabic = "نهر النيل."
    steps = (search(0, OWLS, query=arabic), written(1, arabic))
    html = re.sub("[\u2068\u2069]", "", page_of(question(text=arabic, answer=arabic, steps=steps)).html)
    assert f'<p class="sentence" dir="auto">{arabic}</p>' in html
    assert html.count(f"<bdi>{arabic}</bdi>") == html.count(arabic) - 1


def test_a_run_without_anything_published_has_no_empty_scores_and_no_filters() -> None:
    found = page_of(question(answers=(), gold=()))
    assert "Answer EM" not in found.text
    assert "so that nothing is scored" in found.text
    assert "fieldset" not in found.html


def test_a_run_s_name_and_tags_stand_above_its_id() -> None:
    asked = (question(),)
    labels = Labels(name="baseline", tags=("small", "first"))
    text = Page(run_page(record(), progress(asked), COST, asked, labels).html).text
    assert text.startswith("baseline, tiny on jsonl baseline Run run-1. Tags: small, first. ircot on jsonl")


def test_a_tree_s_page_begins_with_the_metric_by_which_its_answers_are_right() -> None:
    text = page_of(answered_by(tree("mc- df")), system="searchain").text
    assert text.index("Cover EM") < text.index("Answer EM")
    assert "sentences reasoned" not in text
