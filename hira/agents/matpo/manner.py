"""What planner and worker of MATPO have in common: a loop of turns, and the summary that closes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hira.agents.loop import CONCLUDE, Loop, Step
from hira.agents.run_context import Conversation
from hira.core.errors import EndpointError
from hira.core.events import Notice
from hira.core.messages import Filled
from hira.core.prompts import Prompt
from hira.policies.dialects.headed import under
from hira.policies.dialects.tool_messages import with_tool_messages
from hira.tools import Tool

WHY = Prompt(__file__, "matpo_why")
Speaker = Literal["user", "tool"]


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """`summary` closes every conversation with one more turn, which sums it up. `results` says whose messages results
    are. `window` are the tokens of a conversation, of which `reply` are kept free for its last turn."""

    summary: bool = True
    results: Speaker = "user"
    window: int = 40_960
    reply: int = 4_096

    def loop(
        self,
        conversation: Conversation,
        tools: Sequence[Tool],
        asking: Callable[[Filled], Filled],
        *,
        limit: int,
        several: int = 1,
        final: bool = False,
    ) -> Loop:
        """The loop of an agent. `asking` words the request for its summary, with a sentence on why it has to end."""
        if self.results == "tool":
            part = conversation.part
            conversation.part = replace(part, dialect=with_tool_messages(part.dialect))

        def conclude(reason: str) -> Filled:
            if not self.summary:
                return CONCLUDE.fill(reason=reason)
            return asking(WHY.fill(reason=reason) if reason else Filled(""))

        room = self.window - self.reply
        return Loop(conversation, tools, limit, several, final, conclude=conclude, window=room)

    async def closed(self, loop: Loop, step: Step) -> Step:
        """The step with which the conversation ends: its summary. One that was forced is its summary already.

        A summary that fails, or that is none, loses nothing that was said before it.
        """
        if step.forced or not self.summary:
            return replace(step, text=step.text or loop.said)
        try:
            summed = await loop.close("")
        except EndpointError as error:
            conversation = loop.conversation
            conversation.team.events(Notice(f"{conversation.name}: no summary: {error.what}"))
            return step
        if under(summed.text, "Conclusion"):
            return summed
        return replace(step, text="\n\n".join(dict.fromkeys(text for text in (step.text, summed.text) if text)))
