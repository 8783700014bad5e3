"""Search-o1 (2501.05366), one chain of reasoning whose search results are condensed (HiRA, Table 1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hira.agents.loop import Loop, ask_for_text
from hira.agents.run_context import RunContext
from hira.core.errors import EndpointError, Stop
from hira.core.messages import Filled
from hira.core.policy import Usage
from hira.core.prompts import Prompt, is_copied
from hira.core.sanitize import sanitize
from hira.core.tokens import clip
from hira.policies.dialects import Call
from hira.policies.dialects.answer import strip_thought
from hira.workflows.baselines.single import REASONER, begin_loop, require_search

if TYPE_CHECKING:
    from hira.workflows.bound import Sizes

SEARCH_O1 = Prompt(__file__, "search_o1")
CONDENSE = Prompt(__file__, "search_o1_condense")
READER = "reader"
PAGES = 10
"""Pages that are read for a query (Search-o1: top 10)."""
EARLIER = 4_000
"""Tokens of the reasoning so far that the reader is shown; beyond, the middle is cut."""


async def search_and_condense(loop: Loop, call: Call, question: str) -> str:
    """Search, and condense the results for the reasoning so far. Pass them on unchanged if the reader fails, or merely
    repeats the query or the model's own words."""
    from hira.agents.retrieval import look_up  # a role with tools searches itself

    conversation = loop.conversation
    query = str(call.arguments["query"])
    seen = await look_up(conversation, query, PAGES)
    documents = Filled("\n\n".join(dict.fromkeys(tool_use.text for tool_use in seen)))
    if not any(tool_use.observation.passages for tool_use in seen):
        if not any(tool_use.ok for tool_use in seen):
            loop.forget(call)
        return documents
    *earlier, _ = loop.transcript  # the last entry is this call
    reasoning = clip("\n\n".join(filter(None, earlier)), EARLIER, middle=True)
    reader = conversation.context.conversation(READER, str(loop.calls.used))
    given = {"task": sanitize(question), "reasoning": sanitize(reasoning), "query": sanitize(query)}
    try:
        condensed = strip_thought(await ask_for_text(reader, CONDENSE.fill(documents=documents, **given)))
    except (EndpointError, Stop) as error:
        if not isinstance(error, Stop):
            conversation.context.note(f"the reader failed, so the search results are passed on unchanged: {error.what}")
        return documents
    replies = [message.text for message in conversation.messages if message.role == "assistant"]
    return documents if is_copied(condensed, " ".join([*replies, query])) else sanitize(condensed)


def bound_reader(searches: int, sizes: "Sizes") -> Usage:
    """The most that the reader takes: it is asked once a search, and shown all that the search brought."""
    return Usage(1, sizes.prompt + EARLIER + (PAGES + 1) * sizes.result, sizes.reply).times(searches)


@dataclass(frozen=True)
class SearchO1:
    """Each result is condensed before it is inserted into the reasoning.

    `searches` at most (the published code's default: 10).
    """

    roles: ClassVar[frozenset[str]] = frozenset({REASONER, READER})
    takes_tools: ClassVar[frozenset[str]] = frozenset()

    searches: int = 10
    name: str = "search-o1"

    async def run(self, question: str, context: RunContext) -> str:
        search = require_search(context)
        loop = begin_loop(context, SEARCH_O1, [search], question, limit=self.searches)
        return (await loop.run(lambda call: search_and_condense(loop, call, question))).answer

    def bound(self, sizes: "Sizes") -> Mapping[str, Usage]:
        return {REASONER: sizes.bound_loop(self.searches, sizes.reply), READER: bound_reader(self.searches, sizes)}
