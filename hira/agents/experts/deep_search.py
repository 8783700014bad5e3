"""Deep search (HiRA's use of WebThinker): searches and opens pages inside its own reasoning."""

from hira.agents.expert import Account, Task, reason
from hira.prompts import Prompt
from hira.team import Team

DEEP_SEARCH = Prompt(__file__, "deep_search")


class DeepSearch:
    name = "deep_search"
    description = (
        "explores: searches, opens pages and follows links for as long as it takes, comparing what it finds. "
        "Slow and costly; for what lies deep, is spread over several pages, or was not found by looking it up"
    )
    ability = "search"
    cost = 3
    needs = frozenset({"search"})
    loops = True

    async def work(self, task: Task, team: Team) -> Account:
        toolbox = team.tools
        own = toolbox.extra_for(self.name)
        tools = [tool for tool in (toolbox.search, toolbox.browse, toolbox.files, *own) if tool]
        return await reason(team.conversation(self.name, task.id), task, DEEP_SEARCH, tools)
