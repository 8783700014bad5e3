"""The code expert (HiRA's computational reasoning agent): thinks and runs Python; variables last for one subtask."""

from contextlib import nullcontext

from hira.agents.expert import Account, Task, reason
from hira.agents.run_context import RunContext
from hira.core.prompts import Prompt

CODE = Prompt(__file__, "code")


class Code:
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
