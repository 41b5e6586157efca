"""The prompts of each task, as the papers print them."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.demonstrations import Demonstration, Demonstrations, Layout
from cotrail.core.questions import Paragraph
from cotrail.systems.parts.prompting import few_shot_prompt

REGION = Paragraph(id="c", title="Curitiba", text="The Region of Curitiba are South.")
GENRE = Paragraph(id="h", title="Hydrograd", text="The Genre of Hydrograd are Hard rock.")
SHOWN = Demonstration(
    id="c", paragraphs=(REGION,), question="Curitiba is in the north. True or False?", answer="So the answer is false."
)


def rendered(layout: Layout, *sentences: str) -> str:
    return few_shot_prompt(
        demonstrations=Demonstrations(items=(SHOWN,)),
        paragraphs=(GENRE,),
        question="Hydrograd is rap. True or False?",
        sentences=sentences,
        layout=layout,
    ).render()


def test_a_table_and_a_hypothesis_are_laid_out_as_in_table_8() -> None:
    assert rendered("entailment") == (
        "The Region of Curitiba are South.\nQuestion: Curitiba is in the north. True or False?\n"
        "Answer: So the answer is false.\n\n"
        "The Genre of Hydrograd are Hard rock.\nQuestion: Hydrograd is rap. True or False?\nAnswer:"
    )
    assert rendered("entailment", "It is rock.").endswith("\nAnswer: It is rock.")


def test_demonstrations_of_rethinking_have_one_blank_line_between_them_and_ircot_s_two() -> None:
    assert rendered("ircot").count("\n\n\nWikipedia Title: Hydrograd\n") == 1
    assert rendered("qa").replace("\n\nWikipedia Title: Hydrograd", "\n\n\nWikipedia Title: Hydrograd") == rendered(
        "ircot"
    )


texts = st.text("ab \n.", max_size=9)


@given(texts, texts, texts, st.lists(texts, max_size=2), st.sampled_from(get_args(Layout)))
def test_the_shared_part_of_a_prompt_is_its_beginning_in_every_layout(
    title: str, text: str, question: str, sentences: list[str], layout: Layout
) -> None:
    prompt = few_shot_prompt(
        demonstrations=Demonstrations(items=(SHOWN, SHOWN)),
        paragraphs=(Paragraph(id="p", title=title, text=text),),
        question=question,
        sentences=tuple(sentences),
        layout=layout,
    )
    assert prompt.render().startswith(prompt.shared)
    assert prompt.keep(1, 1).shared == prompt.shared[: len(prompt.shared) // 2]
