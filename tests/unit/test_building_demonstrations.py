import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from typer.testing import CliRunner

from cotrail.cli.main import app
from cotrail.core.demonstrations import AnswerForm, Demonstration
from cotrail.core.questions import GoldParagraph, Question
from cotrail.data.datasets.loading import load_annotated
from cotrail.data.datasets.spec import AnnotatedQuestion
from cotrail.data.demonstrations.building import (
    DISTRACTORS,
    DemonstrationShape,
    Style,
    build_demonstrations,
    choose_distractors,
    cut_text,
    read_chains,
    shapes,
    with_chains,
)
from cotrail.data.demonstrations.sets import in_form, read_demonstrations, write_demonstrations
from cotrail.errors import DemonstrationError, InputError
from tests.cases import each_case

SHARED = Path(__file__).parents[2].parent / "shared" / "data"

Write = Callable[[str], Path]


def paragraph(title: str, text: str = "") -> GoldParagraph:
    return GoldParagraph(title=title, text=text or f"{title} is a place.")


VELL = AnnotatedQuestion(
    question=Question(
        id="v1",
        text="What is the capital of the land of Lake Vell?",
        answers=("Brenn",),
        gold=(paragraph("Lake Vell"), paragraph("Ostmark")),
    ),
    distractors=tuple(paragraph(f"Town {n}") for n in range(5)),
    chain=("Lake Vell lies in Ostmark.", "Its capital is Brenn.", "So the answer is: Brenn."),
)
HOLM = AnnotatedQuestion(
    question=Question(
        id="h1",
        text="Who is older, Holm's teacher or his friend?",
        gold=(paragraph("Ada Berg"), paragraph("Jon Lund"), paragraph("Ada Berg", "She was born in 1801.")),
        pinned=paragraph("Holm"),
    ),
    distractors=(paragraph("Brenn"),),
    chain=("Ada Berg was born in 1801.", "So the answer is: Ada Berg."),
)

TEXTS = st.text("abc .é木", min_size=1, max_size=10).map(lambda text: f"T{text.strip()}")
PARAGRAPHS = st.builds(GoldParagraph, title=TEXTS, text=TEXTS)
QUESTIONS = st.builds(
    lambda id_, text, paragraphs, split, pinned, answer: AnnotatedQuestion(
        question=Question(id=id_, text=text, gold=tuple(paragraphs[:split]), pinned=pinned),
        distractors=tuple(paragraphs[split:]),
        chain=("One.", f"So the answer is: {answer}."),
    ),
    TEXTS,
    TEXTS,
    st.lists(PARAGRAPHS, min_size=1, max_size=8, unique=True),
    st.integers(1, 3),
    st.sampled_from([None, GoldParagraph(title="P", text="Pinned.")]),
    TEXTS,
)
CHOICES = [shape for shape in shapes([HOLM]) if shape.form is not AnswerForm.TITLES]
SHAPES = st.sampled_from(CHOICES)
SEEDS = st.integers(0, 2**31 - 1)


def shape(form: AnswerForm = AnswerForm.COT, style: Style = "codex", distractors: int = 2) -> DemonstrationShape:
    return DemonstrationShape(form=form, style=style, distractors=distractors)


def built(question: AnnotatedQuestion, asked: DemonstrationShape, seed: int = 0) -> Demonstration:
    return build_demonstrations([question], asked, seed).items[0]


def titles(demonstration: Demonstration) -> list[str]:
    return [each.title for each in demonstration.paragraphs]


def shown(demonstration: Demonstration) -> list[tuple[str, str]]:
    return [(each.title, each.text) for each in demonstration.paragraphs]


@given(st.lists(QUESTIONS, max_size=3, unique_by=lambda each: each.question.id), SHAPES, SEEDS)
def test_what_is_built_can_be_written_and_read_again(
    questions: list[AnnotatedQuestion], asked: DemonstrationShape, seed: int
) -> None:
    made = build_demonstrations(questions, asked, seed)
    assert made == build_demonstrations(questions, asked, seed)
    if questions:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "built.txt"
            path.write_bytes(write_demonstrations(made).encode())
            assert read_demonstrations(path) == made


@given(QUESTIONS, QUESTIONS, SHAPES, SEEDS)
def test_a_demonstration_depends_on_no_other_question(
    one: AnnotatedQuestion, other: AnnotatedQuestion, asked: DemonstrationShape, seed: int
) -> None:
    made = build_demonstrations([other, one], asked, seed)
    assert made.items == (built(other, asked, seed), built(one, asked, seed))


@given(QUESTIONS, SHAPES, SEEDS, st.randoms(use_true_random=False))
def test_the_order_of_a_context_does_not_matter(
    question: AnnotatedQuestion, asked: DemonstrationShape, seed: int, random: Any
) -> None:
    gold, distractors = list(question.question.gold), list(question.distractors)
    random.shuffle(gold)
    random.shuffle(distractors)
    other = replace(question, question=replace(question.question, gold=tuple(gold)), distractors=tuple(distractors))
    assert built(other, asked, seed) == built(question, asked, seed)


@given(QUESTIONS, SEEDS, st.integers(1, 3))
def test_the_gold_paragraphs_are_there_with_so_many_others(question: AnnotatedQuestion, seed: int, number: int) -> None:
    made = shown(built(question, shape(distractors=number), seed))
    gold = [(each.title, each.text) for each in question.question.gold]
    others = {(each.title, each.text) for each in question.distractors}
    pinned = [("P", "Pinned.")] if question.question.pinned else []
    assert set(gold) <= set(made)
    assert len(made) == len(gold) + min(number, len(others)) + len(pinned)
    assert set(made) - set(gold) - set(pinned) <= others


@given(QUESTIONS, SEEDS)
def test_more_distractors_come_to_those_of_before_and_leave_the_others_in_order(
    question: AnnotatedQuestion, seed: int
) -> None:
    one, two, three = (shown(built(question, shape(distractors=number), seed)) for number in DISTRACTORS[1:])
    assert [each for each in two if each in one] == one
    assert [each for each in three if each in two] == two


@given(QUESTIONS, SEEDS, st.sampled_from(DISTRACTORS))
def test_forms_and_styles_show_the_same_paragraphs(question: AnnotatedQuestion, seed: int, number: int) -> None:
    sets = {tuple(sorted(shown(built(question, each, seed)))) for each in CHOICES if each.distractors == number}
    orders = {
        tuple(each for each in shown(built(question, asked, seed)) if each[0] != "P")
        for asked in CHOICES
        if asked.distractors == number
    }
    assert len(sets) == len(orders) == 1


@given(st.lists(QUESTIONS, min_size=1, max_size=3, unique_by=lambda each: each.question.id), SEEDS)
def test_the_direct_form_is_what_the_chains_turn_into(questions: list[AnnotatedQuestion], seed: int) -> None:
    chains = build_demonstrations(questions, shape(AnswerForm.COT), seed)
    assert in_form(chains, AnswerForm.DIRECT) == build_demonstrations(questions, shape(AnswerForm.DIRECT), seed)


def test_seeds_differ_in_what_they_pick_and_in_its_order() -> None:
    made = [titles(built(VELL, shape(), seed)) for seed in range(20)]
    assert len({frozenset(each) for each in made}) > 3
    assert len({each.index("Ostmark") for each in made}) == 4


def test_this_seed_gives_these_bytes() -> None:
    assert write_demonstrations(build_demonstrations([VELL], shape(style="flan_t5", distractors=1), 13370)) == (
        '# METADATA: {"qid": "v1"}\n'
        "Wikipedia Title: Town 4\nTown 4 is a place.\n\n"
        "Wikipedia Title: Ostmark\nOstmark is a place.\n\n"
        "Wikipedia Title: Lake Vell\nLake Vell is a place.\n\n"
        "Q: Answer the following question by reasoning step-by-step.\n"
        "What is the capital of the land of Lake Vell?\n"
        "A: Lake Vell lies in Ostmark. Its capital is Brenn. So the answer is: Brenn."
    )


@each_case(
    ("style", "form", "question", "answer"),
    [
        ("codex", AnswerForm.COT, VELL.question.text, " ".join(VELL.chain)),
        ("codex", AnswerForm.DIRECT, VELL.question.text, "Brenn"),
        (
            "flan_t5",
            AnswerForm.COT,
            f"Answer the following question by reasoning step-by-step.\n{VELL.question.text}",
            " ".join(VELL.chain),
        ),
        ("flan_t5", AnswerForm.DIRECT, f"Answer the following question.\n{VELL.question.text}", "Brenn"),
    ],
)
def test_each_style_asks_and_answers_in_its_way(style: Style, form: AnswerForm, question: str, answer: str) -> None:
    made = built(VELL, shape(form, style))
    assert (made.id, made.question, made.answer) == ("v1", question, answer)


ASKED = (
    "The question is: 'Who is older, Holm's teacher or his friend?'. Generate titles of 2 Wikipedia pages that have "
    "relevant information to answer this question."
)


@each_case(
    ("style", "question", "answer"),
    [
        ("codex", ASKED, '["Ada Berg", "Jon Lund"]'),
        ("flan_t5", f"Answer the following question.\n{ASKED}", "Ada Berg, Jon Lund"),
    ],
)
def test_title_demonstrations_show_the_pinned_passage_and_name_each_gold_page_once(
    style: Style, question: str, answer: str
) -> None:
    made = built(HOLM, shape(AnswerForm.TITLES, style, distractors=3))
    assert (titles(made), made.question, made.answer) == (["Holm"], question, answer)


@each_case(("style", "place"), [("codex", 0), ("flan_t5", -1)])
@each_case("distractors", DISTRACTORS)
def test_the_pinned_passage_stands_where_the_released_files_have_it(style: Style, place: int, distractors: int) -> None:
    for seed in range(10):
        made = titles(built(HOLM, shape(style=style, distractors=distractors), seed))
        assert made[place] == "Holm"
        assert len(made) == (5 if distractors else 1)


@each_case(
    ("question", "problem"),
    [
        (VELL, "question v1 pins no passage"),
        (replace(HOLM, question=replace(HOLM.question, gold=(paragraph("Holm", "More."),))), "h1 needs no other page"),
    ],
)
def test_titles_are_only_for_questions_with_a_passage_and_other_pages(
    question: AnnotatedQuestion, problem: str
) -> None:
    with pytest.raises(DemonstrationError, match=problem):
        built(question, shape(AnswerForm.TITLES))


@each_case(
    ("broken", "problem"),
    [
        (replace(VELL, chain=()), "question v1: the chain .* empty"),
        (replace(VELL, chain=("Brenn.",)), "question v1: the last sentence, 'Brenn.', states no answer"),
        (
            replace(VELL, question=replace(VELL.question, gold=(GoldParagraph(title="T", text=" "),))),
            "question v1: a gold or pinned paragraph has no title or no text",
        ),
    ],
)
def test_what_a_demonstration_cannot_be_made_of_is_named(broken: AnnotatedQuestion, problem: str) -> None:
    with pytest.raises(DemonstrationError, match=problem):
        built(broken, shape())


def test_everything_stands_on_one_line_of_its_own() -> None:
    broken = AnnotatedQuestion(
        question=Question(id="q\n1", text=" Who?\n Me? ", gold=(paragraph("A\nB", "One.\r\n\r\nTwo.\n"),)),
        chain=("It is\nme. ", " So the answer is:\n me."),
    )
    made = write_demonstrations(build_demonstrations([broken], shape(), 0))
    assert made == (
        '# METADATA: {"qid": "q\\n1"}\nWikipedia Title: A B\nOne. Two.\n\n'
        "Q: Who? Me?\nA: It is me. So the answer is: me."
    )


def sentence(words: int) -> str:
    return " ".join(["word"] * (words - 1) + ["end."])


@each_case(
    ("lengths", "kept"),
    [
        ((100, 100, 49), (100, 100, 49)),
        ((100, 100, 50), (100, 100)),
        ((249, 1), (249,)),
        ((250, 10), ()),
        ((100, 200, 10), (100,)),
    ],
)
def test_a_distractor_is_cut_at_a_sentence_end_to_under_250_words(
    lengths: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    cut = cut_text(" ".join(sentence(number).capitalize() for number in lengths))
    assert cut == " ".join(sentence(number).capitalize() for number in kept)


def test_gold_paragraphs_are_never_cut() -> None:
    long = " ".join(sentence(200).capitalize() for _ in range(3))
    question = replace(VELL, question=replace(VELL.question, gold=(paragraph("Long", long),)))
    assert ("Long", long) in shown(built(question, shape()))


def test_distractors_that_cannot_be_shown_are_not_counted() -> None:
    useless = (
        paragraph("Lake Vell"),  # gold
        GoldParagraph(title="Empty", text=" "),
        GoldParagraph(title="", text="Untitled."),
        paragraph("Long", sentence(300)),
    )
    question = replace(VELL, distractors=(*useless, paragraph("Town")))
    assert [each.title for each in choose_distractors(question, 3, 0)] == ["Town"]


def test_the_names_are_those_of_the_released_files() -> None:
    names = {each.filename for each in shapes([HOLM])}
    assert len(names) == 18
    assert {name for name in names if "open_llm" not in name} == {each.filename for each in shapes([HOLM, VELL])}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the released prompt files are not beside the repo")
@pytest.mark.parametrize(("dataset", "question"), [("hotpotqa", VELL), ("iirc", HOLM)])
def test_every_released_file_has_a_counterpart(dataset: str, question: AnnotatedQuestion) -> None:
    released = {path.name for path in (SHARED / "ircot_prompts" / dataset).glob("*.txt")}
    assert released == {each.filename for each in shapes([question])}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the released prompt files are not beside the repo")
@each_case("path", sorted((SHARED / "ircot_prompts" / "iirc").glob("*.txt")), ids=lambda path: path.stem)
def test_released_iirc_demonstrations_are_built_again_but_for_the_order(path: Path) -> None:
    asked = next(each for each in shapes([HOLM]) if each.filename == path.name)
    bare = {d.id: d for d in read_demonstrations(path.with_name("no_context_cot_qa_codex.txt")).items}
    pages = {d.id: d for d in read_demonstrations(path.with_name("no_context_open_llm_retrieval_codex.txt")).items}
    released = read_demonstrations(path)
    questions = []
    for each in released.items:
        pinned = bare[each.id].paragraphs[0]
        needed = json.loads(pages[each.id].answer)
        others = [p for p in each.paragraphs if p.digest != pinned.digest]
        gold = [paragraph(p.title, p.text) for p in others if p.title in needed]
        gold = sorted(gold, key=lambda p: needed.index(p.title)) or [paragraph(title) for title in needed]
        distractors = tuple(paragraph(p.title, p.text) for p in others if p.title not in needed)
        question = Question(
            id=each.id, text=bare[each.id].question, gold=tuple(gold), pinned=paragraph(pinned.title, pinned.text)
        )
        chain = (bare[each.id].answer,)
        questions.append(AnnotatedQuestion(question=question, distractors=distractors, chain=chain))
    made = build_demonstrations(questions, asked, 0)
    for mine, theirs in zip(made.items, released.items, strict=True):
        assert (mine.question, mine.answer) == (theirs.question, theirs.answer)
        assert sorted(shown(mine)) == sorted(shown(theirs))
        place = 0 if asked.style == "codex" else -1
        assert shown(mine)[place] == shown(theirs)[place]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str) -> Path:
        path = tmp_path / "chains.jsonl"
        path.write_text(content)
        return path

    return write


def line(**fields: object) -> str:
    return json.dumps({"id": "v1", "chain": ["So the answer is: Brenn."]} | fields)


def test_chains_are_read_in_their_order(write: Write) -> None:
    path = write(f"{line(id='b')}\n\n{line(id='a', chain=['One.', 'So the answer is two.'])}\n")
    assert list(read_chains(path).items()) == [
        ("b", ("So the answer is: Brenn.",)),
        ("a", ("One.", "So the answer is two.")),
    ]


@each_case(
    ("content", "problem"),
    [
        ("", "holds no annotations"),
        (f"{line()}\n{line()}", "line 2: the question 'v1' was annotated before"),
        (line(chain=[]), "line 1: the chain or one of its sentences is empty"),
        (line(chain=[" ", "So the answer is: x."]), "line 1: the chain or one of its sentences is empty"),
        (line(chain=["So the answer is: x.", "It is."]), "line 1: the last sentence, 'It is.', states no answer"),
        (line(chain=["Answer is: x."]), "line 1: the last sentence, .* states no answer"),
        (line(chain="So the answer is: x."), "line 1: `chain` must be a list"),
        (line(answer="x"), "line 1: .*no key `answer`"),
        ('{"id": "v1"}', "line 1: .*the key `chain` is missing"),
        (f"{line()}\nnonsense", "line 2: this isn't valid JSON"),
        (line(id="\0"), "line 1: .*NUL"),
    ],
)
def test_annotations_that_cannot_be_used_are_named_with_their_line(write: Write, content: str, problem: str) -> None:
    with pytest.raises(DemonstrationError, match=rf"chains\.jsonl.*{problem}"):
        read_chains(write(content))


def test_a_missing_annotation_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DemonstrationError, match=r"nowhere\.jsonl can't be read"):
        read_chains(tmp_path / "nowhere.jsonl")


def test_all_unknown_ids_are_listed_at_once() -> None:
    chains = {"x": VELL.chain, "v1": VELL.chain, "y": VELL.chain}
    with pytest.raises(DemonstrationError, match=r"chains\.jsonl: the question file has no question 'x', 'y';"):
        with_chains([VELL, HOLM], chains, Path("chains.jsonl"))


def test_annotated_questions_come_in_the_order_of_the_annotations() -> None:
    chains = {"h1": ("So the answer is: no.",), "v1": VELL.chain}
    assert with_chains([VELL, HOLM], chains, Path("c")) == (replace(HOLM, chain=chains["h1"]), VELL)


QUESTION = {
    "id": "v1",
    "question": VELL.question.text,
    "gold": [{"title": "Lake Vell", "text": "It lies in Ostmark."}],
    "distractors": [{"title": "Brenn", "text": "A town."}],
}

Command = Callable[..., str]


@pytest.fixture
def build(tmp_path: Path) -> Command:
    """Runs `cotrail demonstrations build` on one question, in a folder of its own."""
    (tmp_path / "questions.jsonl").write_text(json.dumps(QUESTION))
    (tmp_path / "chains.jsonl").write_text(line())

    def build(*options: str, annotations: bool = True) -> str:
        given = ["--dataset", "jsonl", "--questions", str(tmp_path / "questions.jsonl")]
        given += ["--annotations", str(tmp_path / "chains.jsonl")] if annotations else []
        result = CliRunner().invoke(app, ["demonstrations", "build", *given, *options])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return build


def test_the_command_writes_the_file_and_counts_what_lacks(build: Command, tmp_path: Path) -> None:
    output = tmp_path / "new" / "demonstrations.txt"
    told = build("--output", str(output))
    assert "Wrote 1 demonstration to" in told
    assert "1 of 1 question without 2 distractors" in told
    made = read_demonstrations(output).items[0]
    assert sorted(titles(made)) == ["Brenn", "Lake Vell"]
    assert made.answer == "So the answer is: Brenn."
    assert "without" not in build("--output", str(tmp_path / "one.txt"), "--distractors", "1")


def test_the_command_writes_all_forms_and_says_so_in_json(build: Command, tmp_path: Path) -> None:
    output = tmp_path / "all"
    told = json.loads(build("--all", "--output", str(output), "--json"))
    assert sorted(path.name for path in output.iterdir()) == sorted(each.filename for each in shapes([VELL]))
    assert {Path(each["path"]).name: each["fewer_distractors"] for each in told["files"]} == {
        each.filename: int(each.distractors > 1) for each in shapes([VELL])
    }


def test_the_command_overwrites_nothing_else(build: Command, tmp_path: Path) -> None:
    output = tmp_path / "demonstrations.txt"
    build("--output", str(output))
    build("--output", str(output))
    with pytest.raises(InputError, match="is there already and holds something else"):
        build("--output", str(output), "--form", "direct")
    with pytest.raises(InputError, match="is there already"):
        build("--output", str(tmp_path))


def test_all_forms_leave_nothing_to_choose(build: Command, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--all builds every --form, --style and --distractors"):
        build("--all", "--output", str(tmp_path / "all"), "--form", "cot")


def test_without_annotations_the_chains_of_the_question_file_are_taken(build: Command, tmp_path: Path) -> None:
    output = str(tmp_path / "demonstrations.txt")
    with pytest.raises(DemonstrationError, match=r"no question of .* comes with a chain"):
        build("--output", output, annotations=False)
    (tmp_path / "questions.jsonl").write_text(json.dumps(QUESTION | {"chain": list(VELL.chain)}))
    build("--output", output, annotations=False)
    assert read_demonstrations(Path(output)).items[0].answer == " ".join(VELL.chain)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the data is not beside the repo")
@pytest.mark.parametrize(("dataset", "path"), [("hotpotqa", "questions.json"), ("musique", "questions.jsonl")])
def test_real_questions_give_demonstrations_that_can_be_read(dataset: str, path: str, tmp_path: Path) -> None:
    loaded = load_annotated(dataset, SHARED / dataset / path)
    chains = {each.question.id: (f"So the answer is: {each.question.answers[0]}.",) for each in loaded}
    questions = with_chains(loaded, chains, Path("chains"))
    for asked in shapes(questions):
        written = tmp_path / asked.filename
        made = build_demonstrations(questions, asked, 1)
        written.write_bytes(write_demonstrations(made).encode())
        assert read_demonstrations(written) == made
        for each, demonstration in zip(questions, made.items, strict=True):
            others = min(asked.distractors, len(each.distractors))
            assert len(demonstration.paragraphs) == (len(set(each.question.gold)) + others if asked.distractors else 0)
