"""Deep search (HiRA's use of WebThinker): searches and opens pages inside its own reasoning."""

from hira.agents.expert import Account, Task, reason
from hira.agents.run_context import RunContext
from hira.core.prompts import Prompt

DEEP_SEARCH = Prompt(__file__, "deep_search")


class DeepSearch:
    name = "deep_search"
    description = "explores many pages, follows links and compares what they say, at high cost"
    ability = "search"
    cost = 3
    needs = frozenset({"search"})
    loops = True

    async def work(self, task: Task, context: RunContext) -> Account:
        toolbox = context.tools
        own = toolbox.extra_for(self.name)
        tools = [tool for tool in (toolbox.search, toolbox.browse, toolbox.files, *own) if tool]
        return await reason(context.conversation(self.name, task.id), task, DEEP_SEARCH, tools)
