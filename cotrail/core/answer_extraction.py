"""How questions ask for an answer and chains of thought state one (IRCoT, section 3.1, and its released code)."""

import json
import re
from typing import Any

from cotrail.common.printable_text import storable

YES_OR_NO = "Yes or no: "
"""The prefix of a question whose answer is yes or no, as in the prompt of Wei et al. (2022)."""

OPENING = "So the answer is"
"""The beginning of a sentence that states an answer."""

STEP_BY_STEP = "Let's think step by step."
"""The beginning of a chain of thought without demonstrations (Kojima et al., 2022), and of those of Auto-CoT."""

_STATED = re.compile(r"\A.* answer is:? (.*)")


def stated_answer(sentence: str, *, empty: bool = False) -> str | None:
    r"""The answer that a sentence or a whole chain states, or None where it states none.

    The rule is the authors' regular expression `.* answer is:? (.*)\.?` as their code applies it, from the start of the
    text and within its first line: the answer is what follows the last " answer is: " or " answer is ", and one full
    stop at its end is taken off. So the letters are lower case, something stands before "answer" and a space before the
    answer itself: "The answer is: X." states X, while "Answer is: yes." and "the answer is:Germany." state nothing.

    Systems without a rule of their authors' read more: `cotrail.systems.parts.answers.behind_answer_is`.

    empty: whether an empty answer ("So the answer is: .") is one, as for the authors' code; else it states none.
    """
    match = _STATED.match(sentence)
    answer = match[1].strip().removesuffix(".").rstrip() if match else None
    return answer if answer or empty else None


def released_answer(text: str, *, chain: bool) -> str:
    r"""The answer in a reader's text, as the released code of IRCoT extracts it.

    A text that is JSON is decoded: of what is in quotation marks that is the inside, of a list of one span that
    span; a list of several stays a list, and numbers are written as JSON has them. chain: whether the answer is what
    the text states, or all of it, in either case without a full stop at its end. It is looked for in the text's JSON,
    where quotation marks and letters beyond ASCII are escaped, and what isn't JSON itself stays so: `Jos\u00e9`.
    Their `llm_qa_model.py`, `participant_qa.py`, `ircot.py` (AnswerExtractor) and `model_search.py`, one after another.
    """
    decoded = _decoded(text)
    answer_text = json.dumps(text if decoded is None else decoded)
    if chain:
        answer_text = _extracted(answer_text)
    match _decoded(answer_text):
        case str() as answer:
            answer_text = answer
        case [span]:
            answer_text = str(span)
        case list() as spans:
            answer_text = json.dumps([str(span) for span in spans], ensure_ascii=False)
    return storable(answer_text)


def _extracted(json_text: str) -> str:
    """The answer that a text's JSON states, or all of it."""
    if json_text.startswith('"') and json_text.endswith('"'):
        json_text = json_text[1:-1]
    match = _STATED.match(json_text)
    answer = (match[1] if match else json_text).removesuffix(".")
    if _decoded(answer) is not None:
        return answer
    try:
        return json.dumps(json.loads(answer.encode().decode("unicode_escape")))
    except (ValueError, RecursionError):
        return answer


def _decoded(text: str) -> Any:
    """The text as JSON; None where it isn't any, or null."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
