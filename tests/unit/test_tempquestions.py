import pytest

from cotrail.core.questions import Question
from cotrail.data.datasets.loading import load_questions
from cotrail.data.datasets.open_domain import PROMPT_IDS
from cotrail.errors import DatasetError
from tests.cases import each_case
from tests.unit.test_datasets import Write, tempquestions, write

__all__ = ["write"]


def test_a_question_has_its_answer_and_its_signal(write: Write) -> None:
    assert load_questions("tempquestions", write("tempquestions", tempquestions(Id=22))) == (
        Question(
            id="22", text="who made ink when paper was invented?", answers=("the Chinese",), kinds={"signal": "OVERLAP"}
        ),
    )


@each_case(
    ("types", "is_taken"),
    [
        (["Implicit"], True),
        (["Implicit:"], True),
        (["Explicit", "Implicit"], True),
        (["Explicit"], False),
        (["Temp.Ans"], False),
        (["Ordinal", "Temp.Ans"], False),
    ],
)
def test_implicit_questions_alone_are_taken(types: list[str], is_taken: bool, write: Write) -> None:  # noqa: FBT001
    path = write("tempquestions", tempquestions(Id=1), tempquestions(Id=2, Type=types))
    assert [question.id for question in load_questions("tempquestions", path)] == (["1", "2"] if is_taken else ["1"])


@pytest.mark.parametrize("answers", [[], ["ink", "pens"]])
def test_questions_of_several_answers_or_none_are_left_out(answers: list[str], write: Write) -> None:
    path = write("tempquestions", tempquestions(Id=1), tempquestions(Id=2, **{"Gold answer": answers}))
    assert [question.id for question in load_questions("tempquestions", path)] == ["1"]


def test_the_questions_of_the_papers_prompt_are_left_out_wherever_they_stand(write: Write) -> None:
    path = write("tempquestions", *(tempquestions(Id=number) for number in range(30, 0, -1)))
    read = [question.id for question in load_questions("tempquestions", path)]
    assert len(PROMPT_IDS) == 6
    assert read == [str(number) for number in range(30, 0, -1) if str(number) not in PROMPT_IDS]


def test_a_file_without_implicit_questions_is_an_error(write: Write) -> None:
    with pytest.raises(DatasetError, match="holds no questions"):
        load_questions("tempquestions", write("tempquestions", tempquestions(Type=["Explicit"])))
