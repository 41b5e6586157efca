"""Where a chain of thought states its answer (IRCoT, section 3.1; the rule is that of its released code)."""

import re

_STATED = re.compile(r".* answer is:? (.*)")


def stated_answer(sentence: str) -> str | None:
    r"""The answer that a sentence or a whole chain states, or None where it states none.

    The rule is the authors' regular expression `.* answer is:? (.*)\.?` as their code applies it, from the start of
    the text and within its first line: the answer is what follows the last " answer is: " or " answer is ", and one
    full stop at its end is taken off. So the letters are lower case, something stands before "answer" and a space
    before the answer itself: "The answer is: X." states X, while "Answer is: yes." and "the answer is:Germany." state
    nothing. One thing differs: what states an empty answer ("So the answer is: .") states none.
    """
    match = _STATED.match(sentence)
    return (match[1].strip().removesuffix(".").rstrip() or None) if match else None
