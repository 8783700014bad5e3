"""Calls written as text, with results as messages of the tool rather than of the user.

A result that looks as if the user had said it is seldom doubted (MATPO, "Formats of tool responses"). Such a message
answers no native call, so it goes only where the server's chat template takes it: vLLM, SGLang, llama.cpp, and in
training; OpenAI's own API refuses it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hira.core.messages import Filled, Message
from hira.core.policy import Completion
from hira.core.tool import Tool
from hira.policies.dialects.dialect import Call, Dialect, Parsed
from hira.policies.dialects.native import DIALECT as NATIVE


@dataclass(frozen=True, slots=True)
class ToolMessages:
    """A dialect of text that writes and reads calls as `dialect` does."""

    dialect: Dialect

    @property
    def name(self) -> str:
        return self.dialect.name

    def instructions(self, tools: Sequence[Tool]) -> Filled:
        return self.dialect.instructions(tools)

    def stops(self, tools: Sequence[Tool], several: int) -> tuple[str, ...]:
        return self.dialect.stops(tools, several)

    def specs(self, tools: Sequence[Tool]) -> tuple[Mapping[str, Any], ...]:
        return self.dialect.specs(tools)

    def parse(self, completion: Completion, tools: Sequence[Tool], several: int = 1) -> Parsed:
        return self.dialect.parse(completion, tools, several)

    def results(self, pairs: Sequence[tuple[Call, str]], notice: Filled | None = None) -> tuple[Message, ...]:
        return NATIVE.results(pairs, notice)

    def write(self, call: Call, tool: Tool) -> str:
        return self.dialect.write(call, tool)


def with_tool_messages(dialect: Dialect) -> Dialect:
    """The dialect with results as tool messages; `native` has no others."""
    return dialect if dialect is NATIVE or isinstance(dialect, ToolMessages) else ToolMessages(dialect)
