"""Building of demonstrations from annotated questions (IRCoT, section 4.1 and the released `prompt_generator`)."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace
from sentencex import segment

from cotrail.common.json_files import decode, lines
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.demonstrations import AnswerForm, Demonstration, Demonstrations
from cotrail.core.questions import GoldParagraph, Paragraph, Question, title_question
from cotrail.data.datasets.spec import AnnotatedQuestion
from cotrail.errors import DemonstrationError

# Files of chains of thought by annotators: JSON Lines of `{"id": "...", "chain": ["sentence", ...]}`.

ChainSentences = tuple[str, ...]
"""The sentences in their order; the last one states the answer."""


class _AnnotatedLine(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    chain: ChainSentences


def read_chains(path: Path) -> dict[str, ChainSentences]:
    """Read the chains of a file by question id, in its order; DemonstrationError names the line that can't be used."""
    chains: dict[str, ChainSentences] = {}
    for place, raw in lines(path, DemonstrationError):
        line = decode(raw, _AnnotatedLine, place, DemonstrationError)
        if line.id in chains:
            raise DemonstrationError(f"{place}: the question {line.id!r} was annotated before; leave one chain for it")
        answer_of(line.chain, place)
        chains[line.id] = line.chain
    if not chains:
        raise DemonstrationError(f'{path} holds no annotations: give lines of {{"id": "...", "chain": ["..."]}}')
    return chains


def answer_of(chain: ChainSentences, place: str) -> str:
    """The answer that the chain's last sentence states; DemonstrationError, with the place, if it states none."""
    if not chain or not all(sentence.strip() for sentence in chain):
        raise DemonstrationError(f"{place}: the chain or one of its sentences is empty; fill it in or take it out")
    answer = stated_answer(" ".join(chain[-1].split()))
    if answer is None:
        raise DemonstrationError(
            f"{place}: the last sentence, {chain[-1][:60]!r}, states no answer; end the chain in a sentence such as "
            "'So the answer is: 1882.'"
        )
    return answer


def with_chains(
    questions: Sequence[AnnotatedQuestion], chains: Mapping[str, ChainSentences], path: Path
) -> tuple[AnnotatedQuestion, ...]:
    """Attach the chains of the file `path` to their questions; only questions with a chain, in the file's order.

    Raises DemonstrationError, which lists the ids of unknown questions.
    """
    by_id = {each.question.id: each for each in questions}
    if unknown := [repr(id_) for id_ in chains if id_ not in by_id]:
        raise DemonstrationError(
            f"{path}: the question file has no question {', '.join(unknown)}; correct the ids or give the file that "
            "the annotated questions are from"
        )
    return tuple(replace(by_id[id_], chain=chain) for id_, chain in chains.items())


Style = Literal["codex", "flan_t5"]
"""Prompt style: `codex` for completion models, `flan_t5` for models that expect an instruction before each question."""

FormName = Literal["cot", "direct", "titles"]
"""The answer forms that demonstrations are built in."""

DISTRACTORS = (0, 1, 2, 3)
"""Possible numbers of distractors next to the gold paragraphs; with 0 there is no context at all, no gold either."""

DISTRACTOR_WORDS = 250
"""A distractor has fewer words than this."""

_STEPWISE = "Answer the following question by reasoning step-by-step."
_PLAIN = "Answer the following question."

INSTRUCTIONS: dict[Style, dict[AnswerForm, str]] = {
    "codex": dict.fromkeys(AnswerForm, ""),
    "flan_t5": {AnswerForm.COT: _STEPWISE, AnswerForm.DIRECT: _PLAIN, AnswerForm.TITLES: _PLAIN},
}
"""The line before each question, as in the released files."""


class DemonstrationShape(Struct, frozen=True, kw_only=True):
    """Shape of demonstrations. Those of titles show the pinned passage alone, for any number of distractors."""

    form: AnswerForm
    style: Style
    distractors: int

    @property
    def filename(self) -> str:
        """The authors' name for such a file."""
        if self.form is AnswerForm.TITLES:
            return f"no_context_open_llm_retrieval_{self.style}.txt"
        context = f"gold_with_{self.distractors}_distractors" if self.distractors else "no"
        return f"{context}_context_{self.form}_qa_{self.style}.txt"


def shapes(questions: Iterable[AnnotatedQuestion]) -> Iterator[DemonstrationShape]:
    """All shapes that the authors released; titles only if every question pins a passage."""
    pinned = all(each.question.pinned for each in questions)
    for style in get_args(Style):
        for form in (AnswerForm.COT, AnswerForm.DIRECT):
            yield from (DemonstrationShape(form=form, style=style, distractors=number) for number in DISTRACTORS)
        if pinned:
            yield DemonstrationShape(form=AnswerForm.TITLES, style=style, distractors=0)


def build_demonstrations(
    questions: Sequence[AnnotatedQuestion], shape: DemonstrationShape, seed: int
) -> Demonstrations:
    """Build a demonstration of each question, in their order.

    A demonstration depends on its question and the seed alone: all forms and styles show the same paragraphs in the
    same order, and a larger number of distractors extends a smaller one. The pinned passage (IIRC) comes first for
    `codex` and last for `flan_t5`, as in the released files.
    Raises DemonstrationError where a question lacks what the shape needs.
    """
    return Demonstrations(items=tuple(_demonstration(each, shape, seed) for each in questions))


def choose_distractors(annotated: AnnotatedQuestion, number: int, seed: int) -> tuple[GoldParagraph, ...]:
    """Draw up to `number` distractors of the question, each cut at a sentence's end to fewer than 250 words.

    Those without a title or a text are skipped, and so are those whose first sentence is too long.
    """
    gold = {(each.title, each.text) for each in annotated.question.gold}
    others = (each for each in annotated.distractors if (each.title, each.text) not in gold)
    cut = (GoldParagraph(title=_line(each.title), text=cut_text(each.text)) for each in others)
    usable = dict.fromkeys(each for each in cut if each.title and each.text)
    return tuple(_shuffled(usable, f"distractors\0{seed}\0{annotated.question.id}")[:number])


def cut_text(text: str) -> str:
    """The longest sequence of first sentences with fewer than 250 words together, on one line."""
    beginning, words = "", 0
    for sentence in segment("en", _line(text)):
        words += len(sentence.split())
        if words >= DISTRACTOR_WORDS:
            break
        beginning += sentence
    return beginning.strip()


def _demonstration(annotated: AnnotatedQuestion, shape: DemonstrationShape, seed: int) -> Demonstration:
    question = annotated.question
    question_text, answer = _line(question.text), answer_of(annotated.chain, f"question {question.id}")
    match shape.form:
        case AnswerForm.COT:
            answer = " ".join(" ".join(annotated.chain).split())
        case AnswerForm.TITLES:
            titles = _gold_titles(question)
            question_text = title_question(question_text, len(titles))
            answer = ", ".join(titles) if shape.style == "flan_t5" else json.dumps(titles, ensure_ascii=False)
    instruction = INSTRUCTIONS[shape.style][shape.form]
    return Demonstration(
        id=question.id,
        paragraphs=tuple(
            Paragraph(id=f"{question.id}/{number}", title=each.title, text=each.text)
            for number, each in enumerate(_shown(annotated, shape, seed), start=1)
        ),
        question=f"{instruction}\n{question_text}" if instruction else question_text,
        answer=answer,
    )


def _shown(annotated: AnnotatedQuestion, shape: DemonstrationShape, seed: int) -> list[GoldParagraph]:
    question = annotated.question
    pinned = [_whole(question.pinned, question)] if question.pinned else []
    if not shape.distractors or shape.form is AnswerForm.TITLES:
        return pinned
    gold = [_whole(paragraph, question) for paragraph in question.gold]
    distractors = choose_distractors(annotated, shape.distractors, seed)
    shuffled = _shuffled(dict.fromkeys([*gold, *distractors]), f"order\0{seed}\0{question.id}")
    return [*pinned, *shuffled] if shape.style == "codex" else [*shuffled, *pinned]


def _whole(paragraph: GoldParagraph, question: Question) -> GoldParagraph:
    whole = GoldParagraph(title=_line(paragraph.title), text=_line(paragraph.text))
    if not whole.title or not whole.text:
        raise DemonstrationError(
            f"question {question.id}: a gold or pinned paragraph has no title or no text; annotate another question"
        )
    return whole


def _gold_titles(question: Question) -> list[str]:
    """Titles of the pages that the question needs in addition to the pinned one."""
    pinned = question.pinned.title if question.pinned else None
    titles = list(dict.fromkeys(_line(paragraph.title) for paragraph in question.gold if paragraph.title != pinned))
    if pinned is None or not titles:
        lacks = "pins no passage" if pinned is None else "needs no other page"
        raise DemonstrationError(
            f"question {question.id} {lacks}: demonstrations of titles are for questions that pin a passage and need "
            "other pages (IIRC)"
        )
    return titles


def _shuffled(paragraphs: Iterable[GoldParagraph], salt: str) -> list[GoldParagraph]:
    """Shuffle by hash: the order depends on the salt and on each paragraph alone."""

    def key(paragraph: GoldParagraph) -> bytes:
        return hashlib.sha256(f"{salt}\0{paragraph.title}\0{paragraph.text}".encode()).digest()

    return sorted(paragraphs, key=key)


def _line(text: str) -> str:
    return " ".join(filter(None, (line.strip() for line in text.splitlines())))
