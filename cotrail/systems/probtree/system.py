"""ProbTree: a question's tree, answered from below by the likeliest of several answers (Cao et al., 2023)."""

from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, plain
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, LimitReached, Part, System, expect
from cotrail.systems.parts.in_parallel import in_parallel
from cotrail.systems.parts.most import Most
from cotrail.systems.parts.words import worded
from cotrail.systems.probtree.answering import OWN, STOP, Answering
from cotrail.systems.probtree.decomposition import tree_of
from cotrail.systems.probtree.settings import ProbTreeSettings
from cotrail.systems.probtree.tree import GrowingTree, QuestionTree
from cotrail.systems.spec import Needs, SystemSpec


def probtree(question: Question, shots: Shots, settings: ProbTreeSettings) -> System:
    """Decompose the question into a tree, and answer its questions from below, by the likeliest answer to each."""
    tree, limit = GrowingTree(question.text), ""
    answering = Answering(question, tree, shots, settings)
    try:
        written = yield from decompose(question, shots, settings)
        tree.grow(tree_of(question.text, written, settings.max_questions))
        while tree.root.answer is None:
            yield from in_parallel(answering.answer(node) for node in tree.ready)
    except LimitReached as reached:
        limit = reached.limit
        yield from answering.last()
    answered = tuple(tree.answered(range(len(tree.nodes))))
    return Answer(
        text=answered[-1][1].text,
        sentences=tuple(f"{node.asked} {answer.text}".strip() for node, answer in answered),
        paragraphs=tuple(tree.paragraphs),
        details=QuestionTree(nodes=tuple(tree.nodes)),
        limit=limit,
    )


def decompose(question: Question, shots: Shots, settings: ProbTreeSettings) -> Part[Generated]:
    """The decomposition of the question, as the model writes it."""
    words = worded(shots, OWN, "decompose", question=Asked(question.text))
    step = Reason(
        prompt=Prompt(turns=(plain(*words),)),
        max_tokens=settings.max_tree_tokens,
        until="stop",
        stop=STOP,
        temperature=settings.temperature,
        scored=True,
    )
    return expect((yield step), Generated)


def needs(settings: ProbTreeSettings) -> Needs:
    """The probabilities of what the model writes, and a corpus where answers are from paragraphs."""
    return Needs(words=OWN, corpus=settings.open, capabilities=frozenset({"scores"}))


def most(question: Question, settings: ProbTreeSettings) -> tuple[Most, ...]:  # noqa: ARG001
    """See `SystemSpec`: every question has three answers at most, and searches for itself and what it refers to."""
    questions, form = settings.max_questions, AnswerForm.PROMPT
    searches = questions + questions * (questions - 1) // 2
    own = {name: len(words.split()) for name, words in OWN.items()}
    paragraphs = questions * settings.search.count * settings.search.paragraph_words
    words = max(own.values()) + (paragraphs if settings.open else questions * settings.max_tokens)
    answers = Most(kind="reason", times=3 * questions + 1, output=settings.max_tokens, words=words, form=form)
    tree = Most(kind="reason", times=1, output=settings.max_tree_tokens, words=own["decompose"], form=form)
    return (tree, answers, *([Most(kind="retrieve", times=searches)] if settings.open else ()))


SPECS = (
    SystemSpec(
        name="probtree",
        version=1,
        title="ProbTree",
        paper="Cao et al., 2023, https://arxiv.org/abs/2311.13982",
        ablations={
            "without what the model knows (closed book)": {"sources": "open"},
            "without paragraphs (open book)": {"sources": "closed"},
        },
        settings=ProbTreeSettings,
        open=probtree,
        needs=needs,
        details=QuestionTree,
        most=most,
    ),
)
