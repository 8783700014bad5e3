"""Calls as JSON blocks: an object with `name` and `arguments`, in a fence or bare."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from hira.core.messages import Filled, assistant
from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.core.prompts import Prompt
from hira.core.tool import Tool
from hira.policies.dialects.answer import verbatim
from hira.policies.dialects.dialect import example, format_results, format_tools, no_specs
from hira.policies.dialects.lenient import decode_first
from hira.policies.dialects.protocol import RESULT, Call, Dialect, Parsed
from hira.policies.dialects.text_calls import find_calls, read_turn, text_of_turn

INSTRUCTIONS = Prompt(__file__, "instructions", "json_tools")

_BESIDE = compile_lazily(r"(?:[\s,\[\]]|```\w*)*")
_ACTING = compile_lazily(r"<(?=\s*/?\s*tool_response\b)", re.IGNORECASE)


class Json:
    name = "json"
    specs = staticmethod(no_specs)
    results = staticmethod(format_results)

    def instructions(self, tools: Sequence[Tool]) -> Filled:
        if not tools:
            return Filled("")
        shown = self.write(example(tools[0]), tools[0]).strip()
        return INSTRUCTIONS.fill(tools=Filled(format_tools(tools)), example=Filled(shown))

    def stops(self, tools: Sequence[Tool], several: int) -> tuple[str, ...]:
        """The tag of a result: a fence would stop a turn where its call begins."""
        del several
        return (RESULT,) if tools else ()

    def parse(self, completion: Completion, tools: Sequence[Tool], several: int = 1) -> Parsed:
        spoken = verbatim(completion).partition(RESULT)[0]
        plain = Parsed(spoken.strip(), (), assistant(spoken))
        parsed = read_turn(plain, completion, tools, several, self.write)
        text = text_of_turn(plain, completion)
        span = find_calls(text, tools, cut=completion.finish == "length", several=several) if parsed.calls else None
        if span and _follows_instructions(text[span.start : span.end], span.calls):
            closed = "\n```" if text.count("```", span.start, span.end) % 2 else ""
            rest = "" if text[span.end :].strip() else text[span.end :]
            return replace(parsed, message=assistant(text[: span.end] + closed + rest))
        return parsed

    def write(self, call: Call, tool: Tool) -> str:
        del tool
        written = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
        return "\n```json\n" + _ACTING.sub(r"\\u003c", written) + "\n```\n"


def _follows_instructions(written: str, calls: Sequence[Call]) -> bool:
    """Return whether calls follow the instructions, so that the conversation can keep them unchanged."""
    position = 0
    for call in calls:
        gap = _BESIDE.match(written, position)
        try:
            value, position = decode_first(written, gap.end() if gap else position)
        except json.JSONDecodeError:
            return False
        if value != {"name": call.name, "arguments": call.arguments}:
            return False
    return bool(_BESIDE.fullmatch(written, position))


DIALECT: Dialect = Json()
