"""What chains state and what they rest on: the paper's own chains, and odd ones."""

from collections.abc import Iterator

from hypothesis import example, given
from hypothesis import strategies as st

from cotrail.faithfulness.paper import facts, prediction
from cotrail.faithfulness.rules import released_facts, released_prediction
from cotrail.faithfulness.tasks import VERDICTS, Task, same, unified
from tests.cases import each_case

TASKS: tuple[Task, ...] = ("commonsense", "temporal", "tabular")

ARISTOTLE = ("Aristotle died in 322 BC.", "The first laptop was invented in 1980.")
LIL_JON = (
    'Lil Jon\'s top ranked Billboard song was "Get Low" with the East Side Boyz.',
    "The Lox is not a member of the East Side Boyz.",
)
FUJI = ("Mount Fuji is 3,776 meters tall.", "The Sea of Japan is about 3,741 meters deep.")
MALLIGE = (
    "Maathaad Maathaadu Mallige was released on 24 August 2007.",
    "Tim Pawlenty served as the 39th governor of Minnesota from 2003 to 2011.",
)
COSTA_RICA = (
    "The Costa Rican civil war was a civil war in Costa Rica from 12 March to 24 April 1948.",
    "Harry S. Truman was the 33rd president of the United States, serving from 1945 to 1953.",
)
TAINTER = ("Charles Sumner Tainter was died in San Diego, California, U.S..", "California is a state.")
CURITIBA = ("The elevation of Curitiba are 934.6 m (3,066.3 ft).", "Elevation is a hypernym of level.")
CHARLES = (
    "Charles (Prince of Wales) was Born on 14 November 1948.",
    "The Spouse of Charles (Prince of Wales) are Lady Diana Spencer (m. 1981 ; div. 1996) , and Camilla Parker Bowles "
    "(m. 2005).",
    "Married is related to spouse.",
)


@each_case(
    ("task", "supporting", "concluding", "stated"),
    [
        ("commonsense", ARISTOTLE, "Thus, Aristotle did not use a laptop. So the answer is no.", "no"),
        ("commonsense", LIL_JON, "Thus, it was not a collaboration with a member. So the answer is no.", "no"),
        ("commonsense", FUJI, "Thus, the top would not stick out. So the answer is no.", "no"),
        ("temporal", MALLIGE, "Thus, Tim Pawlenty was governor. So the answer is Tim Pawlenty.", "Tim Pawlenty"),
        ("temporal", COSTA_RICA, "Thus, he was us president. So the answer is Harry S. Truman.", "Harry S. Truman"),
        ("tabular", TAINTER, "Thus, he has left the state of Massachusetts. So the answer is false.", "false"),
        ("tabular", CURITIBA, "Thus, Curitiba is above sea level. So the answer is true.", "true"),
        ("tabular", CHARLES, "Thus, Charles has been married twice. So the answer is true.", "true"),
    ],
)
def test_the_papers_chains_rest_on_their_facts_and_state_their_answers(
    task: Task, supporting: tuple[str, ...], concluding: str, stated: str
) -> None:
    chain = " ".join((*supporting, concluding))
    assert facts(chain, task) == supporting
    assert prediction(chain, task) == stated


@each_case(
    ("sentence", "kept_by"),
    [
        ("Aristotle died in 322BC.", {"commonsense", "temporal", "tabular"}),
        ("Thus he did.", set()),
        ("THEREFORE, he did.", set()),
        ("So he did.", set()),
        ("Soccer is a sport.", {"commonsense", "temporal", "tabular"}),
        ("No, he did not.", {"temporal", "tabular"}),
        ("Yes.", {"temporal", "tabular"}),
        ("no", {"temporal", "tabular"}),
        ("So, he did.", set()),
        ("The answer is no.", set()),
        ("Hence the answer is Truman.", set()),
    ],
)
def test_each_task_has_its_own_concluding_sentences(sentence: str, kept_by: set[Task]) -> None:
    assert {task for task in TASKS if facts(sentence, task)} == kept_by


@each_case(
    ("chain", "supporting"),
    [
        ("", ()),
        (" \n\t\n", ()),
        ("...", ()),
        ("1. Ink stains. 2. Paper burns.", ("Ink stains.", "Paper burns.")),
        ("1) Ink stains.\n2) Paper burns.\n3) So the answer is no.", ("Ink stains.", "Paper burns.")),
        ("- Ink stains.\n\n* Paper burns.\n• Thus, both do.", ("Ink stains.", "Paper burns.")),
        ("Ink stains.\n\nQ: Does glue?\nA: Glue sticks.", ("Ink stains.",)),
        ("Ink stains.\n  Question: Does glue?", ("Ink stains.",)),
        ("It is approx. 3,776. So it is.", ("It is approx. 3,776.",)),
        ("no full stop", ("no full stop",)),
        ("Ink stains\npaper. Paper\n  burns.", ("Ink stains paper.", "Paper burns.")),
        ("Ink stains\nPaper burns\nSo both do.", ("Ink stains", "Paper burns")),
        ("He died in 1980. 1990 was later.", ("He died in 1980.", "1990 was later.")),
        ("J. K. Rowling wrote it in the U.S. and left.", ("J. K. Rowling wrote it in the U.S. and left.",)),
    ],
)
def test_odd_chains_have_facts_too(chain: str, supporting: tuple[str, ...]) -> None:
    assert facts(chain, "commonsense") == supporting


@each_case(
    ("chain", "stated"),
    [
        ("", ""),
        ("Ink stains. Paper burns.", ""),
        ("So the answer is unclear.", ""),
        ("So the answer is not yes.", ""),
        ("The answer is: yes", "yes"),
        ("So, the answer is NO!", "no"),
        ("So the answer is probably yes.", "yes"),
        ("The answer is most likely no, as ink stains.", "no"),
        ("So the answer is **no**.", "no"),
        ("Yes, ink stains. Paper burns.", "yes"),
        ("No. Ink does not stain.", "no"),
        ("yes", "yes"),
        ("Ink stains. Yes.", "yes"),
        ("Yesterday it rained.", ""),
        ("Nobody came.", ""),
        ("No. 10 is a house.", ""),
        ("Yes, ink stains. So the answer is no.", "no"),
        ("So the answer is no. Yes, ink stains.", "no"),
        (" ".join(f"So the answer is {each}." for each in ("yes", "no") * 5), "no"),
        ("The answer is yes or the answer is no.", "no"),
        ("So the answer is no. So the answer is unclear.", "no"),
        ("So the answer is no.\n\nQ: Does glue?\nA: So the answer is yes.", "no"),
        ("Ink stains.\nSo the answer is yes.", "yes"),
        ("Ink stains.\n\nSo the answer is:\nYes.", "yes"),
        ("So the answer is no one knows.", ""),
        ("So the answer is no-one.", ""),
        ("So the answer is no longer known.", ""),
        ("So the answer is no because ink stains.", "no"),
        ("So the answer is 'no' - ink stains.", "no"),
        ("So the answer is no\nInk stains.", "no"),
    ],
)
def test_a_commonsense_chain_predicts_the_verdict_that_it_states_last(chain: str, stated: str) -> None:
    assert prediction(chain, "commonsense") == stated


@each_case(
    ("chain", "stated"),
    [
        ("Ink stains.", ""),
        ("So the answer is True.", "true"),
        ("False, the table says 1902.", "false"),
        ("So the answer is yes.", ""),
        ("So the answer is false. So the answer is true.", "true"),
    ],
)
def test_a_tabular_chain_predicts_true_or_false(chain: str, stated: str) -> None:
    assert prediction(chain, "tabular") == stated


@each_case(
    ("chain", "stated"),
    [
        ("", ""),
        ("Truman was president.", ""),
        ("So the answer is: .", ""),
        ("So the answer is Harry S. Truman", "Harry S. Truman"),
        ("So the answer is John F. Kennedy Jr. He was shot.", "John F. Kennedy Jr"),
        ("So the answer is Truman. So the answer is James Madison. He was president.", "James Madison"),
        ("So the answer is\nHarry S. Truman.", "Harry S. Truman"),
        ("So the answer is\n\nQ: who else?", ""),
        ("So the answer is 1948.\nQ: who else?\nA: So the answer is 1950.", "1948"),
    ],
)
def test_a_temporal_chain_predicts_the_text_that_it_states_last(chain: str, stated: str) -> None:
    assert prediction(chain, "temporal") == stated


def test_temporal_predictions_are_one_where_squad_says_so_and_keep_the_first_form() -> None:
    forms = ("The Truman.", "truman", "", "Madison", "TRUMAN", "")
    assert unified(forms, "temporal") == ("The Truman.", "The Truman.", "", "Madison", "The Truman.", "")
    assert unified(("yes", "no", "yes"), "commonsense") == ("yes", "no", "yes")


def test_only_nothing_counts_as_nothing() -> None:
    assert same("", "temporal") == ""
    assert same("The", "temporal") == "The"
    assert same("?!", "temporal") == "?!"
    assert same("No.", "commonsense") == "No."


@each_case(
    ("chain", "task", "stated"),
    [
        ("So the answer is no one knows.", "commonsense", "no"),
        ("The answer is not yes.", "commonsense", "no"),
        ("So the answer is no. So the answer is yes.", "commonsense", "yes"),
        ("Answer is yes.", "commonsense", "unclear"),
        ("So the answer is\nno.", "commonsense", "unclear"),
        ("So the answer is \nno.", "commonsense", "no"),
        ("The answer is no.\n\nQ: Does glue?\nA: So the answer is yes.", "commonsense", "yes"),
        ("Yes. It is.", "commonsense", "yes"),
        ("FALSE, it is.", "tabular", "false"),
        ("The answer is most likely true", "tabular", "true"),
        ("So the answer is A. So the answer is B.", "temporal", " A. So the answer is B."),
        ("He was it. It was Tim.", "temporal", "It was Tim."),
        ("", "temporal", ""),
        ("", "tabular", "unclear"),
    ],
)
def test_the_released_code_reads_what_the_text_says_first_wherever_it_says_it(
    chain: str, task: Task, stated: str
) -> None:
    assert released_prediction(chain, task) == stated


def test_the_released_code_counts_what_concludes_by_its_own_lists() -> None:
    chain = "Ink stains. So, paper does. Thus it burns. The answer is no.\n\nQ: Does glue? No, it sticks."
    assert released_facts(chain, "commonsense") == (
        "Ink stains.", "So, paper does.", "The answer is no.", "Q: Does glue?",
    )  # fmt: skip
    assert released_facts(chain, "tabular") == (
        "Ink stains.", "So, paper does.", "Q: Does glue?", "No, it sticks.",
    )  # fmt: skip


texts = st.lists(
    st.sampled_from(["Ink stains. ", "Thus, ", "So ", "the answer is ", "yes", "no. ", "true", "\n", "1. ", "Q: ", "A"])
    | st.text(max_size=5),
    max_size=20,
).map("".join)


def is_in(part: str, written: Iterator[str]) -> bool:
    """Whether the letters of a part come in its order; an iterator is searched from behind what was found before.

    Spaces don't count: parts of a sentence are joined by one, whatever stood between them.
    """
    return all(letter in written for letter in part if not letter.isspace())


@example("the answer is !:", "temporal")
@example("the answer is A\na", "temporal")
@given(texts, st.sampled_from(TASKS))
def test_any_text_has_facts_and_a_prediction(chain: str, task: Task) -> None:
    written = iter(chain)
    for fact in facts(chain, task):
        assert fact == fact.strip()
        assert any(map(str.isalpha, fact))
        assert is_in(fact, written)
    stated = prediction(chain, task)
    assert stated in (*VERDICTS[task], "") if VERDICTS[task] else is_in(stated, iter(chain))


@given(texts, texts, st.sampled_from(TASKS))
def test_a_last_line_that_states_an_answer_decides(chain: str, later: str, task: Task) -> None:
    answer = VERDICTS[task][0] if VERDICTS[task] else "Tim Pawlenty"
    before = chain.replace("Q:", "")
    asked = later.replace("answer", "")
    assert prediction(f"{before}\nSo the answer is {answer}.\nQ: {asked}", task) == answer
    assert facts(f"{before}\nSo the answer is {answer}.\nQ: {asked}", task) == facts(before, task)
