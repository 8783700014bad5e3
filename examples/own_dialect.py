"""A dialect of your own: a call is a line such as `@high_water {"harbour": "Husum"}`. A script plays the model.

python examples/own_dialect.py
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hira import Hira, tool
from hira.core.messages import Filled, Message
from hira.core.policy import Completion
from hira.policies.dialects import Call, Parsed, dialect
from hira.testing import ScriptedPolicy
from hira.tools import Tool
from hira.workflows.baselines.single import ReAct

BEGIN, LINE = re.compile(r"^@(?=\w+ )", re.MULTILINE), re.compile(r"@(\w+) (\{.*\})[ \t]*\n?")
HOW = "To call a tool, write one line: @NAME {arguments as JSON}. The tools:\n"


class AtSign:
    name = "at-sign"

    def instructions(self, tools: Sequence[Tool]) -> Filled:
        return Filled(HOW + dialect.format_tools(tools))

    def stops(self, tools: Sequence[Tool], several: int) -> tuple[str, ...]:
        return ()

    def specs(self, tools: Sequence[Tool]) -> tuple[Mapping[str, Any], ...]:
        return ()  # nothing goes into the request: the prompt says it all

    def parse(self, completion: Completion, tools: Sequence[Tool], several: int = 1) -> Parsed:
        text, known = dialect.turn_of(completion, BEGIN), {tool.name: tool for tool in tools}

        def following(position: int) -> dialect.WrittenCall | None:
            if (begun := dialect.find_unquoted(text, position, BEGIN, BEGIN)) is None:
                return None
            if (line := LINE.match(text, begun.start())) is None:
                why = "was cut off" if completion.finish == "length" else "is no @NAME {…} on one line"
                return dialect.WrittenCall(begun.start(), error=f"Your call {why}. Write it again.")
            call, error = dialect.check_call(line[1], line[2], known)
            return dialect.WrittenCall(line.start(), line.end(), line[0], call, error)

        return dialect.read(text, following, several)

    def results(self, pairs: Sequence[tuple[Call, str]], notice: Filled | None = None) -> tuple[Message, ...]:
        return dialect.format_results(pairs, notice)

    def write(self, call: Call, tool: Tool) -> str:
        return f"\n@{call.name} {json.dumps(dict(call.arguments), ensure_ascii=False)}\n"


@tool
def high_water(harbour: str) -> str:
    """Today's time of high water in a harbour."""
    return {"Husum": "13:40", "Cuxhaven": "12:05"}[harbour]


class ReActInLines(ReAct):
    dialect = AtSign()


if __name__ == "__main__":
    model = ScriptedPolicy(['I look it up.\n@high_water {"harbour": "Husum"}', r"\boxed{At 13:40.}"])
    with Hira("offline", policies={"*": model}, tools=[high_water], workflow=ReActInLines()) as hira:
        answer = hira.ask_sync("When is high water in Husum today?")
    for turn in next(iter(answer.rollout.trajectories.values())).turns:
        print(turn.completion.text)
    print("answer:", answer.text)
