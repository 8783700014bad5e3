"""`auto`: one search and one call, and the hierarchy only where that leaves the answer open."""

import re
from dataclasses import dataclass

from hira.agents.approved import is_approved
from hira.agents.calls import frame_source
from hira.agents.evidence_step import name_search
from hira.agents.experts import EXPERTS
from hira.agents.planner import Attempt
from hira.agents.retrieval import PAGES, look_up_reworded
from hira.agents.run_context import RunContext, find_shortage
from hira.agents.verifier import CheckedAnswer, check_answer
from hira.core.bm25 import BM25, STOP
from hira.core.budget import CallNeed
from hira.core.messages import Filled
from hira.core.policy import Usage
from hira.core.sources import LISTING
from hira.evidence import LexicalVerifier, Sources, is_accepted, is_refusal
from hira.evidence.lexical_verifier import is_calculation
from hira.evidence.passages import Passages, read_words
from hira.evidence.questions import read_question
from hira.evidence.verdicts import Relevance
from hira.journal import NotRecorded
from hira.workflows.baselines.single import REASONER, Rag
from hira.workflows.bound import Sizes
from hira.workflows.hira import HiRA

NEAR = 0.5
"""The share of a claim, rare words weighing more, that one sentence has at least if the claim comes from it. It was
chosen on answers to the public questions that may be looked at."""
SENTENCES = 10
"""The sentences of the first search that the planner reads."""


@dataclass(frozen=True)
class Auto(HiRA):
    """`rag` first, with as many `pages` of a web search as an expert reads. `hira` continues, with the sentences
    nearest to that answer, if the answer is a refusal, if a verifier that counts does not confirm it, or if words show
    that it comes from no passage or needs a computation. The first answer stays unless the second is better confirmed.
    If the search finds nothing about a name, `hira` continues only if a model's other queries find something.

    It has all options of `hira`, and so inherits them. A run without a search, with attached files, with tools or
    experts of the user, or with subtasks that somebody approves starts with `hira`, because `rag` has none of these.
    `hira` does not continue if the budget pays for fewer than three calls: a subtask, its work and the answer.
    """

    pages: int = PAGES
    name: str = "auto"

    @property
    def roles(self) -> frozenset[str]:
        return super().roles | Rag.roles

    async def run(self, question: str, context: RunContext, attempt: Attempt | None = None) -> str:
        record = context.rollout
        if self.needs_experts(context):
            return await super().run(question, context, attempt)
        answer = record.answer = await Rag(self.pages).run(question, context)
        asked = record.question or question
        answers = bool(answer) and not is_refusal(answer)
        checks = context.options.verify != "off" or context.options.verifier is not None
        if context.stopped or (answers and not checks):
            return answer
        first = await check_answer(context)
        if context.stopped or is_settled(answer, asked, first) or (answers and is_overview(asked, record.sources)):
            return answer
        if answer and find_shortage(context, "planner", CallNeed("planner"), CallNeed("planner")):
            what = "the answer after one search is not confirmed, and the budget pays for no more work on it"
            context.note(f"{what}; to continue, resume the run with a larger limit")
            return answer
        second = await self._continue(answer, question, context)
        if second is None:
            return answer
        record.answer = second
        return second if grade(second, await check_answer(context)) > grade(answer, first) else answer

    async def _continue(self, answer: str, whole: str, context: RunContext) -> str | None:
        """Return the answer of `hira`, which reads the first one; None if other queries find nothing either.
        `whole` is the question with the earlier messages."""
        sources, question = context.rollout.sources, context.rollout.question or whole
        try:
            kinds = {word.kind for word in read_question(question).wanted}
            common = [word in STOP for word in re.findall(r"\w+", question.lower())]
            is_english = 4 * sum(common) >= len(common)
            names = "name" in kinds and "number" not in kinds and is_english
            if names and not sources.read:
                await look_up_reworded(context.conversation(REASONER, name_search(question)), question, self.pages)
                if not sources.read:
                    return None
            nearest = " with the sentences nearest to it" if sources.read else ""
            found = "found no answer" if is_refusal(answer) else "has no confirmed answer"
            context.note(f"one search {found}: hira continues{nearest}")
            return await super().run(whole, context, Attempt(answer, condense(f"{question} {answer}", sources)))
        except NotRecorded:
            if context.log.holds("planner"):
                raise
            return None  # a replay has no budget: the run's did not pay for more

    def needs_experts(self, context: RunContext) -> bool:
        """Return whether the run has something that `rag` does not use, or lacks a search."""
        tools = context.tools
        if tools.search is None or "search" in self.without:
            return True
        own = [expert for expert in self.experts if expert not in EXPERTS]
        return bool(tools.extra or tools.scoped or own or context.files or is_approved(context))

    def bound(self, sizes: Sizes) -> dict[str, Usage]:
        rag = {role: usage + sizes.bound_plan() for role, usage in Rag(self.pages).bound(sizes).items()}
        return {**super().bound(sizes), **rag}


def is_overview(question: str, sources: Sources) -> bool:
    """Return whether a question about the documents as a whole has found their list, and so needs no more work."""
    from hira.tools.documents.overview import asks_overview  # few searches find a list

    return any(source.title == LISTING for source in sources.read.values()) and asks_overview(question)


def grade(answer: str, checked: CheckedAnswer) -> int:
    """Return how good an answer is by its check: none or a refusal, contradicted, unconfirmed, confirmed."""
    if not answer or is_refusal(answer) or checked.answers is Relevance.REFUSAL:
        return 0
    if any(citation.verdict.denies for citation in checked.citations):
        return 1
    return 3 if is_accepted(checked.citations) and checked.answers is Relevance.YES else 2


def is_settled(answer: str, question: str, checked: CheckedAnswer) -> bool:
    """Return whether the answer is confirmed, or comes from one passage that speaks of the question, although only
    words checked it and it is no copy. One with a name or a number that this passage lacks does not come from it."""
    graded = grade(answer, checked)
    if graded != 2 or not checked.citations:
        return graded == 3
    main = checked.citations[0]
    if any(citation.by not in ("quote", LexicalVerifier.name) for citation in checked.citations):
        return False
    asks = read_question(question)
    known = {word.key for word in asks.words}
    invented = [word for word in read_words(" ".join(main.missing)) if word.kind != "word" and word.key not in known]
    speaks = 2 * len(checked.lacking) <= len(asks.wanted)
    computed = any(is_calculation(citation.claim) for citation in checked.citations)
    return main.score >= NEAR and speaks and not invented and not computed


def condense(query: str, sources: Sources) -> Filled:
    """Return the sentences of the sources that share most with a query, in their order, framed as their sources."""
    read = [(source, Passages(source.evidence)) for source in sources.read.values()]
    places = [(number, place) for number, (_, text) in enumerate(read) for place in range(len(text.sentences))]
    best = BM25([read[number][1].quote(place) for number, place in places]).best(query, SENTENCES)
    chosen = sorted(places[index] for index in best)
    frames = [
        frame_source(source, "\n".join(text.quote(place) for index, place in chosen if index == number))
        for number, (source, text) in enumerate(read)
        if any(index == number for index, _ in chosen)
    ]
    return Filled("\n\n".join(frames))
