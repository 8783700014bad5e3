"""One role that reasons to the run's answer by itself, with tools inside its reasoning or with none."""

from collections.abc import Sequence

from hira.agents.expert import format_files
from hira.agents.loop import Loop, Perform
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Finding, Subtask
from hira.core.errors import EndpointError, UsageError
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.tools import Tool

DIRECT = Prompt(__file__, "direct")
CODEACT = Prompt(__file__, "codeact")
REACT = Prompt(__file__, "react")
READ = Prompt(__file__, "baseline_read")
REASONER = "reasoner"
"""The role that answers in every baseline but Plan-and-Solve, so that one `--role` casts it in all of them."""
SHOWN = 5
"""Sources of which a run that its endpoint ended tells what it had read."""
QUOTED = 200
WHERE_TO_SEARCH = "give documents (--docs) or a search backend (--search)"


def require_tool(tool: Tool | None, what: str, fix: str = WHERE_TO_SEARCH) -> Tool:
    """The tool. Raises `UsageError`, before any work, where this run does not have it."""
    if tool is None:
        raise UsageError(f"this workflow needs {what}, but this run has none", fix=fix)
    return tool


def begin_loop(team: RunContext, prompt: Prompt, tools: Sequence[Tool], question: str, *, limit: int = 1) -> Loop:
    """The role, told its task. The prompt takes what it has slots for of `today`, `tools`, `limit`, `task`, `files`
    and `known`, which is empty: nobody worked before it."""
    loop = Loop(team.conversation(REASONER), tools, limit=limit, final=True, task=question)
    values = {
        "today": team.rollout.today,
        "tools": loop.conversation.part.dialect.instructions(tools),
        "limit": limit,
        "task": sanitize(question),
        "files": format_files(team.files),
        "known": Filled(""),
    }
    loop.conversation.say(user(prompt.fill(**{name: value for name, value in values.items() if name in prompt.slots})))
    return loop


async def run_to_answer(loop: Loop, question: str, perform: Perform | None = None) -> str:
    """The answer of a role that was told its task. If its endpoint fails, what it had read is left as a finding."""
    try:
        step = await loop.run(perform)
    except EndpointError:
        keep_read(loop.conversation.team, question)
        raise
    if not step.answer:
        keep_read(loop.conversation.team, question)
    return step.answer


def keep_read(team: RunContext, question: str) -> None:
    """Where nobody has found anything, enter the beginnings of what was read last, quoted so that it can be checked."""
    if any(finding.ok for finding in team.rollout.findings):
        return
    read = [source for source in team.rollout.sources.read.values() if source.evidence.strip()][-SHOWN:]
    quotes = [f"“{_beginning(source.evidence)}” [{source.id}]" for source in read]
    if quotes:
        told = str(READ.fill(quotes=Filled("\n".join(quotes))))
        team.rollout.findings.append(Finding(Subtask("1", question), REASONER, "", told))


def _beginning(text: str) -> str:
    """The first words of a text in one line, without marks that would end a quotation."""
    line = next((line.strip() for line in text.splitlines() if len(line.split()) > 4), text.strip().split("\n")[0])
    line = line.partition("”")[0].partition('"')[0].lstrip("#*->| ")
    return line if len(line) <= QUOTED else line[:QUOTED].rsplit(" ", 1)[0]
