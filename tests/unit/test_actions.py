import json
from hashlib import sha256
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.common.structs import canonical
from cotrail.core.actions.embed import Embed, Rate
from cotrail.core.actions.entail import Entail, Extract
from cotrail.core.actions.generate import Read, Reason, sampling
from cotrail.core.actions.registry import KINDS, fingerprint, kind_of
from cotrail.core.actions.retrieve import Lookup, Open, Retrieve
from cotrail.core.binding import Binding, pinned_columns, read_binding
from cotrail.core.demonstrations import Demonstration, Demonstrations, Stored
from cotrail.core.generation import Sampling, Until
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph
from cotrail.core.results import Failure
from cotrail.core.system import Action, StepFailed
from cotrail.models.records.runs import RunPlan
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.cases import each_case

BINDING = Binding(model="smollm2-135m@1f0c", profile="fast", temperature=0.0, seed=7, corpora={"hp": "hp@9a2b"})
FIELDS: dict[str, Any] = {
    "demonstrations": Demonstrations(
        items=(Demonstration(id="d", paragraphs=(), question="Is it?", answer="So the answer is: yes."),)
    ),
    "paragraphs": (Paragraph(id="p1", title="Ada", text="Ada built a bridge."),),
    "question": "Who built it?",
    "sentences": ("A bridge was built.",),
}
PROMPT = few_shot_prompt(**FIELDS)
RETRIEVE = Retrieve(query="Ada's bridge", count=4, titles=("Ada", "Brücke"))
REASON = Reason(prompt=PROMPT, max_tokens=200)
READ = Read(prompt=PROMPT, max_tokens=64)
ADA = PROMPT.paragraphs[0]
BEN = Paragraph(id="p2", title="Ben", text="Ben built a boat.")
LOOKUP = Lookup(source="wordnet", text="Ada built a bridge.", other="Ada built.")
EMBED = Embed(sentences=("Ada built a bridge.",), paragraphs=(ADA,))
ENTAIL = Entail(premise=ADA, hypothesis="Ada built a bridge.")
EXTRACT = Extract(question="Who built a bridge?", paragraph=ADA)
RATE = Rate(by="relevance", text="Who built a bridge?", others=("Who built it?",), paragraphs=(ADA,))
OPEN = Open(title="Ada")
EACH: tuple[Action, ...] = (RETRIEVE, REASON, READ, LOOKUP, EMBED, ENTAIL, EXTRACT, RATE, OPEN)

GOLDEN: dict[str, tuple[Action, str]] = {
    "retrieve": (RETRIEVE, "13339e8606b6f3202fac2fac030bc61faf872877c93bd2cdb19ae4cddb48006a"),
    "reason": (REASON, "e743205f44bd316ffd9dfa94778997b71b441b6063507435991eba2c6daaabd9"),
    "read": (READ, "86fc8a47399bb6f5bff4b17a231ffbb5747c75fa319fa5d0dd3388e2c547f756"),
    "lookup": (LOOKUP, "33eb21741e0136fcae9dc979a01c281dd10fefa543094ce33e4ced7a0bca414c"),
    "embed": (EMBED, "5c2da379258ad16e6fa575c6c414fd8a0de7ee160b2aa1f3182ee7e841d40b37"),
    "entail": (ENTAIL, "20f55e9bf0e40834ad6c5e965d3045e1262e4dfe4841642a6db6f0d32267e21f"),
    "extract": (EXTRACT, "b2fc85bdb2403a008f727eb57fcf135d56e7dd9907c9150d6bc6565e22156290"),
    "rate": (RATE, "0cf571af6beb534a674bd622d897c7da084f4e5b24abe80123cb94aaeb564766"),
    "open": (OPEN, "511dd5e36bbffdccd4bf9ab9c74adbea7f1c27dbc36143f189f20aaae233eac7"),
    "sample": (
        replace(REASON, sample=3, temperature=0.7),
        "2225f9797486a7aa2b49f69bc251489f520930b270dfec2dca286ff5852b8e55",
    ),
}


def another(**fields: Any) -> Prompt:
    """The prompt with other fields."""
    return few_shot_prompt(**FIELDS | fields)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def reordered(value: object) -> object:
    """An equal value, all of whose mappings were filled the other way round."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(each) for each in value] if isinstance(value, list) else value


def test_canonical_json_is_sorted_and_without_spaces() -> None:
    value = {"query": "Brücke", "count": 4, "titles": ("b", "a"), "nested": {"z": None, "a": 0.5}}
    assert canonical(value) == ('{"count":4,"nested":{"a":0.5,"z":null},"query":"Brücke","titles":["b","a"]}'.encode())


@given(JSON)
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: object) -> None:
    assert canonical(reordered(value)) == canonical(value)
    assert json.loads(canonical(value)) == value


@given(JSON, JSON)
def test_different_values_are_written_differently(one: object, other: object) -> None:
    if canonical(one) == canonical(other):
        assert one == other


def test_a_corpus_counts_by_what_is_in_it_and_not_by_its_name() -> None:
    several = replace(BINDING, corpora={"hp": "hp@9a2b", "notes": "notes@1", "copy": "hp@9a2b"})
    for action in (RETRIEVE, OPEN):
        same = [action, replace(action, corpus="hp"), replace(action, corpus="copy")]
        assert {fingerprint(each, several) for each in same} == {fingerprint(action, BINDING)}
        assert fingerprint(replace(action, corpus="notes"), several) != fingerprint(action, several)
        assert "corpus" not in kind_of(action).request(action)
        named = replace(action, corpus="notes")
        assert kind_of(named).read(kind_of(named).request(named), Stored({}, lambda _: Demonstrations())) == named


def test_a_binding_is_read_as_it_was_recorded_and_one_corpus_as_it_always_was() -> None:
    several = replace(BINDING, corpora={"hp": "1", "a": "2", "b": "3"}, pins={"wordnet": "4"})
    columns = pinned_columns(several)
    assert (columns["corpus"], columns["corpus_revision"]) == ("hp", "1")
    assert columns["knowledge"] == {"wordnet": "4", "corpus/a": "2", "corpus/b": "3"}
    read = read_binding(columns)
    assert (read, list(read.corpora)) == (several, ["hp", "a", "b"])
    one = pinned_columns(BINDING)
    assert (one["corpus"], one["corpus_revision"], one["knowledge"]) == ("hp", "hp@9a2b", {})
    none = pinned_columns(replace(BINDING, corpora={}))
    assert (none["corpus"], none["corpus_revision"], none["knowledge"]) == (None, "", {})
    assert read_binding(none).corpora == {}


@each_case("name", GOLDEN)
def test_a_fingerprint_never_changes(name: str) -> None:
    action, golden = GOLDEN[name]
    assert fingerprint(action, BINDING) == golden, (
        "every question under way would be blocked by this; put the fingerprint back"
    )


def test_a_fingerprint_is_the_hash_of_the_canonical_json_of_what_decides() -> None:
    decides = {
        "kind": "retrieve",
        "query": "Ada's bridge",
        "count": 4,
        "titles": ["Ada", "Brücke"],
        "corpus": "hp@9a2b",
    }
    text = json.dumps(decides, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert fingerprint(RETRIEVE, BINDING) == sha256(text.encode()).hexdigest()
    prompt_digest = sha256(PROMPT.render().encode()).hexdigest()
    drawn = {"model": "smollm2-135m@1f0c", "profile": "fast", "temperature": 0.0, "seed": 7}
    decides = {"kind": "read", "prompt": prompt_digest, "until": "line", "max_tokens": 64, **drawn}
    text = json.dumps(decides, sort_keys=True, separators=(",", ":"))
    assert fingerprint(READ, BINDING) == sha256(text.encode()).hexdigest()


@each_case(
    "change",
    [
        {"query": "Ada's  bridge"},
        {"count": 5},
        {"titles": ()},
        {"titles": ("Brücke", "Ada")},
        {"scope": "after"},
        {"distinct": True},
        {"field": "title"},
    ],
)
def test_whatever_decides_a_search_is_in_its_fingerprint(change: dict[str, object]) -> None:
    assert fingerprint(replace(RETRIEVE, **change), BINDING) != fingerprint(RETRIEVE, BINDING)


@each_case(
    ("action", "change"),
    [
        (LOOKUP, {"source": "conceptnet"}),
        (LOOKUP, {"text": "Ada built a tower."}),
        (LOOKUP, {"other": ""}),
        (EMBED, {"sentences": ("Ada built a bridge.", "It fell.")}),
        (EMBED, {"paragraphs": ()}),
        (EMBED, {"paragraphs": (replace(ADA, text="Ada built."),)}),
        (ENTAIL, {"premise": replace(ADA, title="Brücke")}),
        (ENTAIL, {"hypothesis": "Ada built a tower."}),
        (EXTRACT, {"question": "Who built it?"}),
        (EXTRACT, {"paragraph": replace(ADA, title="Brücke")}),
        (RATE, {"by": "duplicate"}),
        (RATE, {"text": "Who built it?"}),
        (RATE, {"others": ()}),
        (RATE, {"paragraphs": ()}),
        (OPEN, {"title": "Brücke"}),
    ],
)
def test_whatever_decides_evidence_is_in_its_fingerprint(action: Action, change: dict[str, object]) -> None:
    assert fingerprint(replace(action, **change), BINDING) != fingerprint(action, BINDING)


def test_a_sample_has_a_seed_of_its_own_made_of_the_runs() -> None:
    several = [sampling(replace(REASON, sample=number), BINDING).seed for number in range(100)]
    assert len(set(several)) == 100
    assert all(0 <= seed < 2**31 for seed in several)
    assert several == [sampling(replace(REASON, sample=number), BINDING).seed for number in range(100)]
    assert not set(several) & {sampling(replace(REASON, sample=n), replace(BINDING, seed=8)).seed for n in range(100)}


def test_what_an_action_says_of_sampling_goes_before_what_the_run_says() -> None:
    assert sampling(READ, BINDING) == Sampling(temperature=0.0, seed=7)
    assert sampling(replace(READ, temperature=0.7), BINDING) == Sampling(temperature=0.7, seed=7)
    sampled = replace(REASON, sample=3, temperature=0.7)
    assert (sampling(sampled, BINDING).temperature, sampling(sampled, BINDING).sample) == (0.7, 3)
    assert fingerprint(sampled, BINDING) != fingerprint(replace(sampled, sample=2), BINDING)
    assert fingerprint(sampled, BINDING) != fingerprint(replace(sampled, temperature=0.8), BINDING)


@each_case("action", [REASON, READ])
@each_case(
    "change",
    [
        {"prompt": another(question="Who built it? ")},
        {"prompt": another(question="who built it?")},
        {"prompt": another(sentences=())},
        {"prompt": another(paragraphs=())},
        {"prompt": another(demonstrations=Demonstrations())},
        {"prompt": another(max_paragraph_words=2)},
        {"prompt": another(drop="first")},
        {"prompt": another(paragraphs=(ADA, BEN), pinned_last=True)},
        {"stop": ("\n\n",)},
        {"top_p": 0.9},
        {"top_k": 40},
        {"repetition_penalty": 1.1},
        {"scored": True},
        {"schema": '{"type": "object"}'},
        {"choices": ("yes", "no")},
        {"max_tokens": 65},
    ],
)
def test_whatever_decides_a_generation_is_in_its_fingerprint(action: Reason | Read, change: dict[str, object]) -> None:
    assert fingerprint(replace(action, **change), BINDING) != fingerprint(action, BINDING)


def test_the_kind_and_the_end_are_in_the_fingerprint() -> None:
    alike = [cls(prompt=PROMPT, max_tokens=200, until=end) for cls in (Reason, Read) for end in get_args(Until)]
    assert len({fingerprint(action, BINDING) for action in alike}) == 10


def test_what_says_where_a_sentence_ends_is_in_the_fingerprint() -> None:
    splitters = ("rules", "en_core_web_sm@3.7.1", "en_core_web_sm@3.8.0")
    assert len({fingerprint(replace(REASON, splitter=splitter), BINDING) for splitter in splitters}) == 3


@each_case(
    ("change", "concerns"),
    [
        ({"corpora": {"hp": "hp@0000"}}, {"retrieve", "open"}),
        ({"model": "smollm2-135m@0000"}, {"reason", "read"}),
        ({"profile": "deterministic"}, {"reason", "read", "embed", "entail", "extract", "rate"}),
        ({"temperature": 0.7}, {"reason", "read"}),
        ({"seed": 8}, {"reason", "read"}),
        ({"embedder": "minilm@0000"}, {"embed"}),
        ({"entailer": "nli@0000"}, {"entail"}),
        ({"pins": {"wordnet": "wordnet@0000"}}, {"lookup"}),
        ({"pins": {"conceptnet": "conceptnet@0000"}}, set()),
        ({"pins": {"extractor": "dpr-reader@0000"}}, {"extract"}),
        ({"pins": {"relevance_rater": "ms-marco@0000"}}, {"rate"}),
        ({"pins": {"duplicate_rater": "quora@0000"}}, set()),
    ],
)
def test_of_the_binding_counts_what_the_action_depends_on(change: dict[str, object], concerns: set[str]) -> None:
    other = replace(BINDING, **change)
    changed = {kind_of(a).name for a in EACH if fingerprint(a, other) != fingerprint(a, BINDING)}
    assert changed == concerns


def test_a_model_of_another_role_writes_what_the_run_s_own_would_if_it_is_the_same() -> None:
    judged = replace(REASON, model="judge")
    assert fingerprint(judged, replace(BINDING, pins={"judge": BINDING.model})) == fingerprint(REASON, BINDING)
    assert fingerprint(judged, replace(BINDING, pins={"judge": "other@1f0c"})) != fingerprint(REASON, BINDING)
    assert kind_of(judged).request(judged) == kind_of(REASON).request(REASON) | {"model": "judge"}


def test_every_field_is_covered_above() -> None:
    weighing = {"embedder", "entailer", "pins"}
    assert set(Binding.__struct_fields__) == {"corpora", "model", "profile", "temperature", "seed"} | weighing
    searched = {"query", "count", "titles", "scope", "field", "distinct"}
    assert set(Retrieve.__struct_fields__) == searched | {"options", "corpus"}
    drawn = {"temperature", "top_p", "top_k", "repetition_penalty", "sample"}
    structured = {"schema", "choices"}
    fields = {"prompt", "max_tokens", "until", "stop", "scored", "model", "calls"}
    assert set(Read.__struct_fields__) == fields | structured | drawn
    assert set(Reason.__struct_fields__) == set(Read.__struct_fields__) | {"splitter"}
    assert set(Lookup.__struct_fields__) == {"source", "text", "other"}
    assert set(Embed.__struct_fields__) == {"sentences", "paragraphs"}
    assert set(Entail.__struct_fields__) == {"premise", "hypothesis"}
    assert set(Extract.__struct_fields__) == {"question", "paragraph"}
    assert set(Rate.__struct_fields__) == {"by", "text", "others", "paragraphs"}
    assert set(Open.__struct_fields__) == {"title", "corpus"}


@each_case(
    "same",
    [
        another(max_paragraph_words=349),
        another(paragraphs=(replace(PROMPT.paragraphs[0], id="another id"),)),
        another(paragraphs=(replace(PROMPT.paragraphs[0], text="Ada built a bridge. "),)),
        another(sentences=("A bridge", "was built.")),
    ],
)
def test_what_does_not_show_in_the_prompt_does_not_count(same: Prompt) -> None:
    assert same != PROMPT
    assert fingerprint(replace(REASON, prompt=same), BINDING) == fingerprint(REASON, BINDING)


def test_every_action_has_its_name() -> None:
    assert all(KINDS[kind_of(action).name].action is type(action) for action in EACH)
    assert all(kind.name == name for name, kind in KINDS.items())


def test_an_engine_that_may_be_away_goes_by_its_name_in_the_run() -> None:
    pins = {"extractor": "dpr-reader@1f0c", "relevance_rater": "ms@marco@9a2b", "wordnet": "wordnet@77aa"}
    names = RunPlan(
        id="run",
        system="ircot",
        system_version=1,
        settings={},
        shots={},
        binding=replace(BINDING, pins=pins),
        model_name="smollm2",
        shared_in=None,
        embedder_name="",
        entailer_name="nli",
        batched=False,
    )
    assert [kind_of(action).needed(action, names) for action in (EXTRACT, RATE, OPEN, REASON, ENTAIL)] == [
        "the extractor dpr-reader",
        "the rater ms@marco",
        "the corpus hp",
        "the model smollm2",
        "the entailer nli along with the model smollm2",
    ]


def test_a_failed_step_says_what_failed() -> None:
    failure = Failure(type="PromptTooLongError", message="no room")
    assert str(StepFailed(failure)) == "PromptTooLongError: no room"
    assert StepFailed(failure).failure is failure
