"""The reader: the files that came with the question and the tools that the user brought, for a run that has neither
Python nor a search. Where one of these is there, the experts for it are given files and tools as well."""

from hira.agents.expert import Account, Task, reason
from hira.agents.run_context import RunContext
from hira.core.prompts import Prompt

READER = Prompt(__file__, "reader")


class Reader:
    name = "reader"
    description = "reads the attached files and uses the tools that the user provided"
    ability = "reading"
    cost = 2
    needs = frozenset({"given"})
    loops = True

    async def work(self, task: Task, context: RunContext) -> Account:
        toolbox = context.tools
        tools = [tool for tool in (toolbox.files, *toolbox.extra_for(self.name)) if tool]
        return await reason(context.conversation(self.name, task.id), task, READER, tools)
