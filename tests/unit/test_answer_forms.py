"""Wrong answers, made by hand: which are a published one in another form, and which say something else."""

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.questions import Paragraph
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.causes.answer_forms import same_but_for_form
from cotrail.evaluation.causes.meant_answers import states
from cotrail.evaluation.causes.names_in_texts import Scene
from tests.cases import each_case

WHERE, WHEN, WHO, MANY = "Where was she born?", "When was it built?", "Who designed the bridge?", "How many are there?"

PAGES = (
    Paragraph(id="1", title="Ada Lund", text="Ada Marie Lund Berg was an engineer. Ada Lund was born in Marl, Kolm."),
    Paragraph(id="2", title="West Marl", text="West Marl is a town beside Grett. It has a table tennis club."),
    Paragraph(id="3", title="Sill", text="The Sill is 120 kilometres long. Some say that tennis began on its banks."),
)

FORMS = [
    # A name in a sentence, with its article, its kind, a title, or more beside it.
    (WHERE, "Marl", "She was born in Marl"),
    (WHERE, "Marl", "It is Marl."),
    (WHERE, "Marl", "The town of Marl"),
    (WHERE, "Marl", "in the town of Marl, which lies on the Sill"),
    (WHERE, "Marl", "Marl, Kolm"),
    (WHERE, "Marl", "Marl (a town in Kolm)"),
    (WHERE, "Marl", "Marl, not Grett"),
    (WHERE, "Marl", "She was born in Marl and not in Grett"),
    (WHERE, "Marl", "Not in Grett but in Marl"),
    (WHERE, "Marl", "MARL"),
    (WHERE, "Marl", "Probably Marl"),
    (WHERE, "Marl", "Yes, Marl"),
    (WHERE, "Marl", "Answer: Marl"),
    (WHERE, "Paris", "Paris, France"),
    (WHERE, "Marl", "She was born in Marl, Kolm"),
    (WHERE, "Marl", "In 1901, Marl"),
    (WHERE, "St. Louis", "Saint Louis"),
    ("Which city is it?", "New York", "New York City"),
    ("Which river is it?", "Sill", "the Sill River"),
    (WHO, "Ada Lund", "the engineer Ada Lund"),
    (WHO, "Ada Lund", "Engineer Ada Lund"),
    (WHO, "Ada Lund", "It was designed by Ada Lund."),
    (WHO, "Ada Lund", "Ada Marie Lund Berg"),
    (WHO, "Ada Lund", "Dr. Ada Lund"),
    (WHO, "Dr. Ada Lund", "Ada Lund"),
    (WHO, "Ada Lund", "Lund, Ada"),
    (WHO, "Charles III", "King Charles III"),
    (WHO, "Mark Twain", "Samuel Clemens (Mark Twain)"),
    (WHO, "Martin Luther King Jr.", "Martin Luther King, Junior"),
    (WHO, "John F. Kennedy", "John Fitzgerald Kennedy"),
    (WHO, "John F. Kennedy", "John Kennedy"),
    (WHO, "World Health Organization", "the WHO"),
    (WHO, "Night Owls (film)", "Night Owls"),
    (WHO, "University of Oxford", "Oxford University"),
    (WHERE, "Marl", "She was born in Marl, Kolm."),
    (WHO, "Barack Obama", "Barack Hussein Obama"),
    (WHO, "Barack Obama", "President Obama"),
    (WHO, "Barack Obama", "Obama"),
    (WHO, "Elizabeth II", "Queen Elizabeth II of the United Kingdom"),
    (WHO, "Manchester United", "Manchester United F.C."),
    ("Which lake is it?", "Lake Itasca", "Itasca"),
    ("Which river is it?", "Mississippi River", "River Mississippi"),
    # Abbreviations and spelling.
    ("Which country?", "U.S.", "United States"),
    ("Which country?", "United States", "the U.S."),
    ("Which country?", "United States", "USA"),
    ("Which country?", "United States", "The United States of America"),
    ("Which country?", "United Kingdom", "UK"),
    ("Which war?", "World War II", "the Second World War"),
    ("Which war?", "World War II", "World War 2"),
    ("What is it?", "a theatre", "theater"),
    ("What is it?", "colour film", "color film"),
    ("What is it?", "organisation", "an organization"),
    ("What is it?", "Newcastle", "New Castle"),
    ("What is it?", "Acme Incorporated", "Acme, Inc."),
    ("What is it?", "Acme", "Acme Ltd."),
    ("What is it?", "rock and roll", "rock & roll"),
    # Lists.
    (WHO, "Ada Lund and Jon Rask", "Jon Rask and Ada Lund"),
    (WHO, "Ada Lund, Jon Rask, Mira Falk", "Mira Falk, Jon Rask and Ada Lund"),
    (WHO, "Ada Lund, Jon Rask", "Jon Rask, Ada Lund"),
    ("Which colours?", "red, white and blue", "blue, red, white"),
    # Dates, numbers and units.
    (WHEN, "1901", "4 March 1901"),
    (WHEN, "1901", "March 4, 1901"),
    (WHEN, "1901", "1901-03-04"),
    (WHEN, "1901", "in March 1901"),
    (WHEN, "March 1901", "4 March 1901"),
    (WHEN, "March 4, 1901", "She was born on 4 March 1901 in Marl"),
    (WHEN, "4 March 1901", "1901, March 4"),
    (WHEN, "1914\u20131918", "from 1914 to 1918"),
    (WHEN, "1901", "It was built in the year 1901"),
    (MANY, "5", "five"),
    (MANY, "5", "There are five arches"),
    (MANY, "21", "twenty-one"),
    (MANY, "1,200", "1200 people"),
    (MANY, "two million", "2,000,000"),
    ("How long is it?", "120 km", "120 kilometers"),
    ("How long is it?", "120 km", "120"),
    ("How long is it?", "120", "120 km"),
    ("How long is it?", "120 km", "a length of 120 km"),
    ("How long is it?", "120 km", "about 120 km"),
    ("Which one?", "third", "3rd"),
    # Common nouns and labels.
    ("Which sport?", "tennis", "She plays tennis"),
    ("Which metal?", "copper", "It is copper."),
    ("Of which nationality is she?", "American", "She is an American"),
    ("Is it so?", "yes", "Yes, it is"),
    ("Is it so?", "yes", "The answer is yes."),
    ("Is it so?", "no", "It is false"),
]

OTHERS = [
    # Names within names, with suffixes and numbers.
    (WHERE, "Virginia", "West Virginia"),
    (WHERE, "Virginia", "She was born in West Virginia."),
    (WHERE, "Virginia", "west virginia"),
    (WHERE, "West Virginia", "Virginia"),
    (WHERE, "Marl", "West Marl"),
    (WHERE, "Marl", "west marl"),
    (WHERE, "Korea", "North Korea"),
    (WHERE, "Jersey", "New Jersey"),
    (WHERE, "Kansas", "Kansas City"),
    (WHERE, "Washington", "George Washington University"),
    (WHERE, "Oxford", "the University of Oxford"),
    (WHERE, "Mexico", "New Mexico"),
    (WHERE, "Niger", "Nigeria"),
    (WHERE, "Michigan", "Lake Michigan"),
    (WHO, "Martin Luther King", "Martin Luther King Jr."),
    (WHO, "Martin Luther King Jr.", "Martin Luther King Sr."),
    (WHO, "Martin Luther King Jr.", "Martin Luther King"),
    (WHO, "martin luther king", "martin luther king jr"),
    (WHO, "Henry", "Henry VIII"),
    (WHO, "Charles II", "Charles I"),
    (WHO, "Pliny", "Pliny the Elder"),
    (WHO, "George H. W. Bush", "George W. Bush"),
    (WHO, "Apollo", "Apollo 11"),
    (WHO, "Ada Lund", "Ada Lundgren"),
    (WHO, "Lund", "Ada Lund's sister"),
    (WHO, "Henry James", "James Henry"),
    (WHO, "Adams", "John Quincy Adams"),
    (WHO, "Brenn Bridge Museum", "Brenn Bridge"),
    (WHO, "United States Senate", "United States"),
    (WHERE, "American", "American Samoa"),
    ("Which sport?", "tennis", "table tennis"),
    ("Which metal?", "copper", "copper wire"),
    ("Which sport?", "hockey", "ice hockey"),
    (WHO, "Alexandre Dumas", "Alexandre Dumas fils"),
    (WHERE, "Star Wars", "Star Wars: The Clone Wars"),
    # Negations.
    (WHERE, "Marl", "She was not born in Marl"),
    (WHERE, "Marl", "She wasn't born in Marl"),
    (WHERE, "Marl", "Anywhere but Marl"),
    (WHERE, "Marl", "not Marl"),
    (WHERE, "Marl", "Grett, not Marl"),
    (WHERE, "Marl", "Grett rather than Marl"),
    (WHERE, "Marl", "Grett instead of Marl"),
    (WHERE, "Marl", "Marl is not her birthplace"),
    (WHERE, "Marl", "It can't be Marl"),
    (WHERE, "Marl", "There is no evidence that she was born in Marl"),
    (WHERE, "Marl", "Neither Grett nor Marl"),
    (WHERE, "Marl", "She never lived in Marl"),
    (WHERE, "Marl", "All towns except Marl"),
    (WHERE, "Marl", "Marl? No, Grett"),
    (WHERE, "Marl", "It is unknown whether it was Marl"),
    (WHERE, "Marl", "outside Marl"),
    # Something that has to do with it.
    (WHERE, "Marl", "a village near Marl"),
    (WHERE, "Marl", "the capital of Marl"),
    (WHERE, "Marl", "Grett (near Marl)"),
    (WHERE, "Marl", "Grett, which is older than Marl"),
    (WHERE, "Marl", "Grett, where the bridge to Marl begins"),
    (WHERE, "Marl", "Marl's neighbour Grett"),
    (WHO, "Ada Lund", "the sister of Ada Lund"),
    (WHO, "Ada Lund", "Jon Rask, a pupil of Ada Lund"),
    (WHO, "Ada Lund", "Ada Lund's husband"),
    (WHERE, "Marl", "Brenn, a district of Marl"),
    (WHERE, "Marl", "far from Marl"),
    (WHERE, "Marl", "from Marl to Grett"),
    (WHERE, "Marl", "She left Marl for Grett"),
    (WHERE, "Marl", "Marl isn't right"),
    # Lists of guesses.
    (WHERE, "Marl", "Grett or Marl"),
    (WHERE, "Marl", "Marl or Grett"),
    (WHERE, "Marl", "either Marl or Grett"),
    (WHERE, "Marl", "Marl/Grett"),
    (WHERE, "Marl", "Marl, Grett, Oslo"),
    (WHERE, "Marl", "Oslo, Marl, Grett"),
    (WHERE, "Marl", "Grett, Marl"),
    (WHERE, "Marl", "Marl, Grett"),
    (WHERE, "Marl", "Marl and Grett"),
    (WHERE, "Marl", "Marl; Oslo; Grett"),
    (WHERE, "Marl", "1. Marl 2. Grett"),
    (WHERE, "Marl", "Marl\nGrett"),
    (WHERE, "Marl", "It could be Marl, Grett or Oslo"),
    ("Which metal?", "copper", "copper, tin, lead"),
    ("Which metal?", "copper", "tin and copper"),
    (WHERE, "Marl", "Possibly Marl, possibly Grett"),
    (WHO, "Ada Lund", "Jon Rask, Ada Lund"),
    (WHO, "Lund", "Jon Lund or Ada Lund"),
    (WHO, "Ada Lund and Jon Rask", "Jon Lund and Ada Rask"),
    (WHO, "Ada Lund and Jon Rask", "Ada Lund"),
    # Dates, numbers and units.
    (WHEN, "1901", "1902"),
    (WHEN, "1901", "before 1901"),
    (WHEN, "1901", "until 1901"),
    (WHEN, "44", "44 BC"),
    (WHEN, "1901", "between 1899 and 1901"),
    (WHEN, "1901", "1901 or 1902"),
    (WHEN, "4 March 1901", "4 March"),
    (WHEN, "4 March 1901", "5 March 1901"),
    (WHEN, "4 March 1901", "March 1901"),
    (WHEN, "1990", "the 1990s"),
    (MANY, "5", "5 million"),
    (MANY, "5", "25"),
    (MANY, "5", "5 or 7"),
    (MANY, "5", "at least 5"),
    (MANY, "5", "more than 5"),
    ("How long is it?", "120 km", "120 miles"),
    ("How long is it?", "120", "120 miles"),
    ("How long is it?", "120 km", "12 km"),
    # Of what the question names, and labels.
    ("Which is older, Marl or Grett?", "Grett", "Marl is older than Grett"),
    ("Which is older, Marl or Grett?", "Grett", "Both Marl and Grett"),
    ("Is it so?", "yes", "no"),
    ("Is it so?", "yes", "Yes and no"),
    ("Is it so?", "yes", "It is not true"),
    ("Is it so?", "no", "I know"),
    (WHERE, "Marl", "I don't know"),
    (WHERE, "Marl", ""),
]


def is_form(question: str, published: str, answer: str) -> bool:
    return bool(same_but_for_form(Scoring("hotpotqa"), Scene(question, PAGES), answer, [published]))


@each_case(("question", "published", "answer"), FORMS)
def test_another_form_of_the_answer(question: str, published: str, answer: str) -> None:
    assert is_form(question, published, answer)


@each_case(("question", "published", "answer"), OTHERS)
def test_another_answer(question: str, published: str, answer: str) -> None:
    assert not is_form(question, published, answer)


NAMES = st.sampled_from(["Marl", "Virginia", "Ada Lund", "Martin Luther King", "Night Owls", "Korea"])
DENYING = ("not {}", "She was not born in {}", "It isn't {}", "Anywhere but {}", "Grett instead of {}", "neither {}")
LONGER = ("West {}", "{} Jr.", "{} III", "New {}", "{} University", "the University of {}", "North {}", "{}'s sister")
GUESSING = ("{} or Grett", "Grett or {}", "{}/Grett", "Oslo, {}, Grett", "{} and Grett", "either {} or Oslo")


@given(NAMES, st.sampled_from((*DENYING, *LONGER, *GUESSING)), st.sampled_from(["{}", "It is {}.", "She says: {}"]))
def test_no_name_that_is_denied_or_longer_or_one_of_several_is_meant(name: str, words: str, around: str) -> None:
    assert not is_form(WHERE, name, around.format(words.format(name)))


@given(NAMES, st.sampled_from(["It is {}.", "She says it was {}", "{}, not Grett", "the answer is {}"]))
def test_a_name_in_a_sentence_is_meant(name: str, words: str) -> None:
    assert is_form(WHERE, name, words.format(name))


@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=30))
def test_whatever_stands_in_an_answer_it_is_a_form_or_not(answer: str, published: str, question: str) -> None:
    assert is_form(question, published, answer) in {True, False}


OF_HIS = "Of which nationality is the designer of the Brenn Bridge?"
OF_HERS = "Of which nationality is she?"


@each_case(
    ("question", "sentence", "is_stated"),
    [
        (OF_HIS, "It is an American bridge designed by Lund.", False),
        (OF_HIS, "Ada Lund was American.", True),
        (OF_HIS, "Ada Lund was not American.", False),
        (OF_HIS, "The American public liked it.", False),
        (OF_HERS, "American", True),
        (OF_HERS, "Her nationality is either American or Kolmian.", False),
    ],
)
def test_a_sentence_states_an_answer_or_mentions_it(question: str, sentence: str, *, is_stated: bool) -> None:
    assert states(sentence, "American", Scene(question)) == is_stated
