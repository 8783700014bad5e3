"""The experts that only give tools to the reasoning of a role: deep search, code and the reader."""

from contextlib import nullcontext

from hira.agents.expert import Account, Task, reason
from hira.agents.run_context import RunContext
from hira.core.prompts import Prompt

DEEP_SEARCH = Prompt(__file__, "deep_search")
CODE = Prompt(__file__, "code")
READER = Prompt(__file__, "reader")


class DeepSearch:
    """HiRA's use of WebThinker: searches and opens pages inside its own reasoning."""

    name = "deep_search"
    description = "explores many pages, follows links and compares what they say, at high cost"
    ability = "search"
    cost = 3
    needs = frozenset({"search"})
    loops = True

    async def work(self, task: Task, context: RunContext) -> Account:
        box = context.tools
        tools = [tool for tool in (box.search, box.browse, box.files, *box.extra_for(self.name)) if tool]
        return await reason(context.conversation(self.name, task.id), task, DEEP_SEARCH, tools)


class Code:
    """HiRA's computational reasoning agent: thinks and runs Python, whose variables last for one subtask."""

    name = "code"
    description = "computes exact results with Python: arithmetic, statistics, data files, dates, units, simulations"
    ability = "code"
    cost = 2
    needs = frozenset({"python"})
    loops = True

    async def work(self, task: Task, context: RunContext) -> Account:
        toolbox, conversation = context.tools, context.conversation(self.name, task.id)
        async with toolbox.python(task.id) if toolbox.python else nullcontext() as python:
            tools = [tool for tool in (python, toolbox.files, *toolbox.extra_for(self.name)) if tool]
            account = await reason(conversation, task, CODE, tools)
        if python and (unmade := conversation.unmade.pop(python.name, [])):
            context.unmade[task.id] = unmade
        return account


class Reader:
    """Reads the files that came with the question and uses the tools that the user brought, in a run that has neither
    Python nor a search. Where it has one of these, the experts for it get the files and the tools as well."""

    name = "reader"
    description = "reads the attached files and uses the tools that the user provided"
    ability = "reading"
    cost = 2
    needs = frozenset({"given"})
    loops = True

    async def work(self, task: Task, context: RunContext) -> Account:
        tools = [tool for tool in (context.tools.files, *context.tools.extra_for(self.name)) if tool]
        return await reason(context.conversation(self.name, task.id), task, READER, tools)
