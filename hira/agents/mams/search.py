"""The Search agent of MaMs: a, p' = A_search(q, s). It plans and acts, or ends (MaMs, section 3.4 and Algorithm 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hira.agents.calls import Seen, use_all
from hira.agents.expert import format_files
from hira.agents.loop import Loop
from hira.agents.mams.chunking import Key, Read, size
from hira.agents.mams.shown import format_calls, memory, plan, report
from hira.agents.mams.state import Plan, State
from hira.agents.run_context import Conversation, RunContext
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tokens import clip
from hira.evidence import Source
from hira.policies.dialects import Call
from hira.policies.dialects.section import section, without
from hira.tools import Tool

SEARCH = Prompt(__file__, "mams_search")
BEGIN = Prompt(__file__, "mams_begin")
UNREAD = Prompt(__file__, "mams_unread")
TOLD = 120
"""Characters of a failure that the plan keeps."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the Search agent does next: `calls` to make, or none, and it ends with `text`. `plan` is what it plans."""

    plan: Plan
    calls: tuple[Call, ...]
    text: str
    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Observed:
    """O_t: what the calls brought, and a line a call for the plan."""

    read: Mapping[Key, Read]
    done: tuple[str, ...]


async def decide(
    team: RunContext, question: str, state: State, tools: Sequence[Tool], *, turn: int, left: int, several: int
) -> Decision:
    """One turn of the Search agent, in a conversation of its own: it sees the state and no turn before it.

    If it calls nothing while nothing is known, it is asked once whether it means that: small models plan and stop.
    """
    conversation = team.conversation("search", str(turn))
    loop = Loop(conversation, tools, limit=several, several=several)
    prompt = SEARCH.fill(
        today=team.rollout.today,
        question=sanitize(question),
        files=format_files(team.files),
        memory=memory(state.memory),
        sources=_sources(team, state),
        plan=plan(state.plan),
        done=format_calls(state.plan),
        report=report(state.report),
        call=conversation.part.dialect.instructions(tools),
        several=several,
        left=left,
    )
    conversation.say(user(prompt))
    step = await loop.think()
    if not (step.calls or step.forced) and state == State():
        conversation.say(user(BEGIN.fill()))
        step = await loop.think()
    written = section(step.text, "plan")
    if written is None and step.calls:
        written = step.text.strip()
    planned = Plan(written or state.plan.text, state.plan.done)
    return Decision(planned, step.calls, without(step.answer, "plan"), conversation)


async def act(team: RunContext, decision: Decision, tools: Sequence[Tool], *, window: int) -> Observed:
    """Make the calls side by side. Of a single text more than the `window` in tokens is cut."""
    named = {tool.name: tool for tool in tools}
    calls = decision.calls
    seen = await use_all(decision.conversation, [(named[call.name], call.arguments) for call in calls])
    read: dict[Key, Read] = {}
    lines: list[str] = []
    for call, one in zip(calls, seen, strict=True):
        shown = [(team.read(passage.source), passage.text) for passage in one.observation.passages]
        own = one.ok and not shown and call.name in {tool.name for tool in team.tools.extra_for("search")}
        if own and one.observation.text:
            shown = [(Source("", call.name, one.observation.text), one.observation.text)]
        read |= {(source.id, text): (source, clip(text, window)) for source, text in shown}
        lines.append(f"- {call.name}: {_spelled(call.arguments)} — {_brought(one, [source for source, _ in shown])}")
    return Observed(read, tuple(lines))


def within(read: Mapping[Key, Read], window: int) -> tuple[dict[Key, Read], tuple[str, ...]]:
    """The texts that fit into the window, in their order and at least one, and what the plan is told of the others."""
    kept: dict[Key, Read] = {}
    left: list[str] = []
    room = window
    for key, (source, text) in read.items():
        room -= size(source, text)
        if kept and room < 0:
            left.append(source.id or source.title)
        else:
            kept[key] = (source, text)
    return kept, (str(UNREAD.fill(sources=", ".join(dict.fromkeys(left)))),) if left else ()


def _brought(seen: Seen, sources: Sequence[Source]) -> str:
    """What a call brought, in a few words: the ids of the sources, or why there are none."""
    if named := list(dict.fromkeys(source.id for source in sources if source.id)):
        return ", ".join(named)
    told = " ".join(seen.text.split())
    return told if len(told) <= TOLD else f"{told[:TOLD]} …"


def _spelled(arguments: Mapping[str, object]) -> str:
    return " ".join(" ".join(map(str, arguments.values())).split())


def _sources(team: RunContext, state: State) -> str:
    """The sources of the notes, a line each, so that a page of which an extract was seen can be opened."""
    cited = dict.fromkeys(source for entry in state.memory for source in entry.sources)
    read = [team.rollout.sources.read[one] for one in cited if one in team.rollout.sources]
    lines = [
        f"- {one.id}: {' '.join(one.title.split())} ({one.location})" + (", an extract" if one.kind == "hit" else "")
        for one in read
    ]
    return "\n".join(lines) or memory(())
