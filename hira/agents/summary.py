"""The summary of a long conversation: one call sums up the messages that no longer fit. It is never evidence."""

import json

from hira.agents.history import LONGEST_SUMMARY, SUMMARY, Earlier
from hira.agents.role import EVIDENCE
from hira.agents.run_context import RunContext, find_shortage
from hira.core.budget import CallNeed
from hira.core.errors import EndpointError, Stop
from hira.core.events import Remembered
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.policies.names import OFFLINE

PROMPT = Prompt(__file__, "summary")


async def sum_up(context: RunContext, earlier: Earlier) -> Earlier:
    """Return the earlier turns with the messages that no longer fit in a summary; unchanged while all fit, with the
    model `offline`, and after a failed call."""

    def leave_out(why: str) -> Earlier:
        context.note(f"the oldest messages of the conversation are left out: {why}", important=True)
        return earlier

    lines = earlier.list_older()
    if not lines or context.config_of(EVIDENCE).policy.model == OFFLINE:
        return earlier
    conversation = context.conversation(EVIDENCE, "history", temperature=0.0)
    known = json.dumps(earlier.summary, ensure_ascii=False) if earlier.summary else ""
    conversation.say(user(PROMPT.fill(summary=sanitize(known), lines=sanitize("\n".join(lines)))))
    need = CallNeed(EVIDENCE, 2 * conversation.tokens(()), conversation.config.price)  # as much is left for the answer
    if shortage := find_shortage(context, conversation.name, need):
        return leave_out(shortage)
    try:
        completion = await conversation.turn(closing=True)
    except (EndpointError, Stop) as error:
        return leave_out(error.what)
    summary = " ".join(completion.text.split())[:LONGEST_SUMMARY]
    if not summary:
        return leave_out("the model wrote no summary")
    context.rollout.summary = summary
    context.events(Remembered(SUMMARY, summary, ""))
    return earlier.condense(summary)
