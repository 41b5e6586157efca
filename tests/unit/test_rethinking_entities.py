from hypothesis import given
from hypothesis import strategies as st

from cotrail.systems.rethinking.evidence import entities
from tests.cases import each_case

FOUND = {
    "Aristotle died in 2000.": ["Aristotle", "2000"],
    "Aristotle died in 322 BC.": ["Aristotle", "322 BC"],
    "Aristotle died in 322BC.": ["Aristotle", "322BC"],
    "The first laptop was invented in 1980.": ["1980"],
    "The Albany in New York has a population of about 98,000.": ["Albany", "New York", "98,000"],
    'Lil Jon\'s top ranked song was "Get Low".': ["Lil Jon", '"Get Low"'],
    "Mount Fuji is 3,776.24 metres (12,389.2 ft) tall.": ["Mount Fuji", "3,776.24", "12,389.2"],
    "Harry S. Truman was the 33rd president of the United States.": ["Harry S. Truman", "33rd", "United States"],
    "It premiered at the Cannes Film Festival on May 20, 1965.": ["Cannes Film Festival", "May 20, 1965"],
    "The war was from 20 March to 8 July 1815.": ["20 March", "8 July 1815"],
    "In March 1990 the U.S. won.": ["March 1990", "U.S."],
    "The War of the Seventh Coalition ended.": ["War of the Seventh Coalition"],
    "It costs $5 million, or 20% more, in the 1990s.": ["$5 million", "20%", "1990s"],
    "Éric Cantona is in São Paulo.": ["Éric Cantona", "São Paulo"],
    "O'Brien saw James' house and World War II's end.": ["O'Brien", "James", "World War II"],
    "Rome is in Rome.": ["Rome"],
    "A laptop is a computer.": [],
    "The. A. I.": [],
    "": [],
}


@each_case("sentence", FOUND)
def test_names_numbers_dates_and_quotations_are_found_in_their_order(sentence: str) -> None:
    assert [entity.text for entity in entities(sentence)] == FOUND[sentence]


@each_case(
    ("sentence", "number", "text", "replaced"),
    [
        ("Aristotle died in 2000.", 1, "322 BC", "Aristotle died in 322 BC."),
        ("Aristotle died in 2000.", 0, "the man", "The man died in 2000."),
        ("Rome is in Rome.", 0, "Ostia", "Ostia is in Rome."),
        ("He saw Rome.", 0, "the sea", "He saw the sea."),
        ("Rome fell.", 0, "", " fell."),
    ],
)
def test_another_text_takes_its_place(sentence: str, number: int, text: str, replaced: str) -> None:
    assert entities(sentence)[number].replaced(sentence, text) == replaced


@given(st.text(alphabet=st.sampled_from("ABab The of12., '\"()-éÉ$%s")) | st.text())
def test_an_entity_stands_where_it_says_and_is_replaced_by_itself(sentence: str) -> None:
    found = entities(sentence)
    assert [entity.start for entity in found] == sorted(entity.start for entity in found)
    assert len({entity.text for entity in found}) == len(found)
    for entity in found:
        assert entity.text
        assert sentence.startswith(entity.text, entity.start)
        assert entity.replaced(sentence, entity.text) == sentence
