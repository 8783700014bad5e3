"""The steps of MarsRL, each a separate function, so that training can sample groups of any one of them (section 3.1).

Step 1 is the Solver's. Verifier1 and Corrector1 work on its solution, Verifier2 and Corrector2 on a Corrector's
refinement: the same role with the same prompt, distinguished by the names of their conversations, such as
`2/verifier1/verifier`.
"""

from dataclasses import dataclass

from hira.agents.calls import CallResult, use
from hira.agents.loop import ask_for_text
from hira.agents.retrieval import look_up_question
from hira.agents.run_context import Conversation, RunContext
from hira.agents.trajectory import Trajectory
from hira.core.concurrency import together
from hira.core.messages import Filled, assistant, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.policies.dialects.answer import find_final_answer, strip_thought
from hira.policies.dialects.report import read_verdict

SOLVER = Prompt(__file__, "marsrl_solver")
VERIFIER = Prompt(__file__, "marsrl_verifier")
CORRECTOR = Prompt(__file__, "marsrl_corrector")
DOCUMENTS = Prompt(__file__, "marsrl_documents")
NOTHING = Filled("")


@dataclass(frozen=True, slots=True)
class MarsProblem:
    """The input of all three roles: the question, and a paragraph of search results, empty without any. `reply` is the
    most tokens of each reply, None for the endpoint's own limit."""

    question: str
    documents: Filled = NOTHING
    reply: int | None = None


@dataclass(frozen=True, slots=True)
class Solution:
    """A solution in full. `refined` if a Corrector wrote it; `complete` unless it was cut off at the length limit."""

    text: str
    refined: bool = False
    complete: bool = True

    @property
    def answer(self) -> str:
        return find_final_answer(self.text)


@dataclass(frozen=True, slots=True)
class Review:
    """The Verifier's review: `correct` is None if it contains no readable verdict, `report` is its whole text."""

    correct: bool | None
    report: str


async def pose(question: str, context: RunContext, *, search: bool = True, reply: int | None = None) -> MarsProblem:
    """The problem with the attached files and, if `search` is wanted and there is something to search, what one search
    for the question brings. No role reasons with tools."""
    # nobody speaks in this conversation, so it is in no record
    conversation = Conversation(context, Trajectory("solver", "solver"), context.config_of("solver"))
    files = context.tools.files
    seen: list[CallResult] = []
    if files:
        seen += await together([use(conversation, files, {"path": str(path)}) for path in context.files])
    if search and context.tools.search:
        seen += await look_up_question(conversation, question)
    findings = dict.fromkeys(tool_use.text for tool_use in seen if tool_use.observation.passages)
    documents = DOCUMENTS.fill(documents=Filled("\n\n".join(findings))) if findings else NOTHING
    return MarsProblem(question, documents, reply)


async def solve(problem: MarsProblem, context: RunContext, step: int = 1) -> Solution:
    conversation = context.conversation("solver", f"{step}", reply=problem.reply)
    prompt = SOLVER.fill(question=sanitize(problem.question), documents=problem.documents)
    completion = await ask_for_text(conversation, prompt)
    return Solution(strip_thought(completion), complete=completion.finish != "length")


async def verify(problem: MarsProblem, solution: Solution, context: RunContext, step: int) -> Review:
    """Verifier1's review of the Solver's solution, Verifier2's of a refined one."""
    name = f"{step}/verifier{2 if solution.refined else 1}"
    conversation = context.conversation("verifier", name, reply=problem.reply)
    prompt = VERIFIER.fill(
        question=sanitize(problem.question), documents=problem.documents, solution=sanitize(solution.text)
    )
    conversation.say(user(prompt))
    completion = await conversation.turn()
    conversation.say(assistant(completion.text))
    return Review(read_verdict(completion), strip_thought(completion))


async def correct(problem: MarsProblem, solution: Solution, review: Review, context: RunContext, step: int) -> Solution:
    """Corrector1's refinement of the Solver's solution, Corrector2's of a refined one, by the whole report."""
    name = f"{step}/corrector{2 if solution.refined else 1}"
    conversation = context.conversation("corrector", name, reply=problem.reply)
    prompt = CORRECTOR.fill(
        question=sanitize(problem.question),
        documents=problem.documents,
        solution=sanitize(solution.text),
        report=sanitize(review.report),
    )
    completion = await ask_for_text(conversation, prompt)
    return Solution(strip_thought(completion), refined=True, complete=completion.finish != "length")
