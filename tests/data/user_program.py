"""A user's program: mypy and pyright accept it in their strict modes, and know its types. Nobody runs it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, assert_never, assert_type

from pydantic import BaseModel

from hira import Answer, AnyEvent, Context, Hira, Hooks, Refusal, Settings, Tool, ToolUse, tool
from hira.agents.trajectory import Subtask
from hira.core import events
from hira.core.hooks import TurnInput
from hira.core.messages import Message
from hira.core.policy import Completion
from hira.runtime.settings import McpSettings, PriceSettings, RoleSettings
from hira.tools import Observation

configured = Settings(
    roles={"planner": RoleSettings(temperature=0.2)},
    mcp={"clock": McpSettings(command="clock", approve=("opening",))},
    prices={"gpt-5": PriceSettings(input=2.0, output=8.0)},
)


class Tower(BaseModel):
    builder: str
    height: float


@dataclass
class Deps:
    unit: str


@tool
async def measure(ctx: Context[Deps], tower: str) -> str:
    """Measure a tower."""
    return f"{tower}: 31 {ctx.deps.unit}"


@tool(needs_approval=True, seconds=5)
def paint(tower: str, colour: str = "red") -> str:
    """Paint a tower."""
    return f"{tower} is {colour}"


assert_type(paint("Alta"), str)
assert_type(paint.description, str)


def before_tool(call: ToolUse[Deps]) -> dict[str, object] | Refusal | None:
    if call.context.deps.unit == "feet":
        return Refusal("no feet")
    return {**call.arguments, "tower": "Alta"}


async def after_tool(call: ToolUse, seen: Observation) -> Observation | None:
    return seen.change_texts(str.upper) if call.name == "measure" else None


def before_turn(turn: TurnInput) -> list[Message]:
    return [one for one in turn.messages if one.text]


async def after_turn(turn: TurnInput[Deps], reply: Completion) -> Completion | Refusal:
    return replace(reply, text=reply.text.strip()) if turn.role else Refusal("no")


async def approve(subtasks: list[Subtask]) -> Sequence[Subtask | Refusal]:
    return [one if "tower" in one.text else Refusal("towers only") for one in subtasks]


async def approve_tool(call: ToolUse[Deps]) -> ToolUse[Deps] | Refusal:
    return replace(call, arguments={"tower": "Bode"})


async def main() -> None:
    hooks = Hooks(before_tool=before_tool, after_tool=after_tool, before_turn=before_turn, after_turn=after_turn)
    async with Hira(
        "gpt-5",
        tools=[measure, paint],
        deps=Deps("metres"),
        hooks=hooks,
        approve=approve,
        approve_tool=approve_tool,
    ) as hira:
        answer = await hira.ask("How high?", output_type=Tower)
        assert_type(answer, Answer[Tower])
        assert_type(answer.output, Tower)
        plain = await hira.ask("How high?")
        assert_type(plain.output, None)
        number = hira.ask_sync("How high?", output_type=float)
        assert_type(number.output, float)
        several = hira.ask_sync("How high?", output_type=list[str])
        assert_type(several.output, list[str])
        choice = await hira.ask("Is it high?", output_type=Literal["yes", "no"])
        assert_type(choice, Answer[Any])
        either = hira.ask_sync("How high?", output_type=Tower | None)
        assert_type(either, Answer[Any])
        chat = hira.chat()
        again = await chat.ask("And the other?", output_type=Tower)
        assert_type(again.output, Tower)
        async for event in hira.stream("How high?"):
            show(event)


def show(event: AnyEvent) -> None:
    """A match over all events of a run; a checker knows that none is missing."""
    match event:
        case events.TurnText(text=text):
            assert_type(text, str)
        case events.RunStarted() | events.RunEnded() | events.Notice() | events.AnswerChecked():
            pass
        case events.TurnStarted() | events.TurnEnded() | events.ToolStarted() | events.ToolEnded():
            pass
        case events.SubtaskIssued() | events.SubtaskAssigned() | events.SubtaskDone() | events.Remembered():
            pass
        case events.ApprovalAwaited() | events.SubtaskApproved() | events.SubtaskRejected():
            pass
        case events.CallApproved() | events.CallRefused() | events.SourceRead() | events.DocumentsRead():
            pass
        case _:
            assert_never(event)


def wrong(_: ToolUse) -> int:
    return 5


Hooks(before_tool=wrong)  # type: ignore[arg-type]
paint(5)  # type: ignore[arg-type]
tools: list[Tool] = [measure, paint]
if __name__ == "__main__":
    asyncio.run(main())
