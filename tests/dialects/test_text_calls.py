"""Calls that models write into their text, by the format of each family, and what is no call."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hira.core.policy import Completion, Delta
from hira.policies.dialects import DIALECTS, NATIVE, Dialect
from hira.policies.dialects.text_calls import HeldText, find_calls
from hira.tools import Observation, Tool

Calls = list[tuple[str, dict[str, Any]]]
Render = Callable[[Calls], str]


async def _nothing(_: Any) -> Observation:
    return Observation()


def made(name: str, **fields: str) -> Tool:
    properties = {key: {"type": kind} for key, kind in fields.items()}
    return Tool(name, name, {"type": "object", "properties": properties, "required": list(fields)}, _nothing)


TOOLS = [made("search", query="string"), made("weather", city="string", days="integer"), made("python", code="string")]


def listed(calls: Calls, name: str, arguments: str) -> str:
    return json.dumps([{name: one, arguments: given} for one, given in calls], ensure_ascii=False)


def each(form: str, between: str = "") -> Render:
    """A format of one text for each call, with its NAME and its JSON in it."""
    return lambda calls: between.join(
        form.replace("NAME", name).replace("JSON", json.dumps(given, ensure_ascii=False)) for name, given in calls
    )


def tagged(call: str, parameter: str, end: str) -> Render:
    def render(calls: Calls) -> str:
        said = ""
        for name, values in calls:
            inner = "".join(
                parameter.replace("KEY", key).replace("VALUE", value if isinstance(value, str) else json.dumps(value))
                for key, value in values.items()
            )
            said += call.replace("NAME", name) + inner + end
        return said

    return render


def within(begin: str, render: Render, end: str) -> Render:
    return lambda calls: begin + render(calls) + end


def pythonic(calls: Calls) -> str:
    return ", ".join(
        f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given in calls
    )


OBJECT = each('{"name": "NAME", "arguments": JSON}', "\n")
JSON_FORMATS: dict[str, Render] = {
    "a block": within("```json\n", OBJECT, "\n```"),
    "bare": OBJECT,
    "a list": lambda calls: listed(calls, "name", "arguments"),
    "parameters": lambda calls: listed(calls, "name", "parameters"),
    "with the tool's description": each('{"name": "NAME", "description": "What it does.", "parameters": JSON}', "\n"),
    "tool and args": each('{"tool": "NAME", "args": JSON}', "\n"),
    "tool_name and input": each('{"tool_name": "NAME", "input": JSON}', "\n"),
    "function and arguments": each('{"function": "NAME", "arguments": JSON}', "\n"),
    "OpenAI's wire": within('{"tool_calls": [', each('{"function": {"name": "NAME", "arguments": JSON}}', ","), "]}"),
    "the name as a key": each('{"NAME": JSON}', "\n"),
    "Hermes": each('<tool_call>\n{"name": "NAME", "arguments": JSON}\n</tool_call>', "\n"),
    "Jamba": lambda calls: f"<tool_calls>{listed(calls, 'name', 'arguments')}</tool_calls>",
    "MiniMax M1": within("<tool_calls>\n", OBJECT, "\n</tool_calls>"),
    "Granite": lambda calls: f"<|tool_call|>{listed(calls, 'name', 'arguments')}",
    "Nemotron": lambda calls: f"<TOOLCALL>{listed(calls, 'name', 'arguments')}</TOOLCALL>",
    "Phi 4": lambda calls: f"functools{listed(calls, 'name', 'arguments')}",
    "InternLM": each('<|action_start|><|plugin|>{"name": "NAME", "parameters": JSON}<|action_end|>'),
    "Llama 3": within("<|python_tag|>", each('{"name": "NAME", "parameters": JSON}', "; "), "<|eom_id|>"),
    "JSON in tags": each("<name>NAME</name><arguments>JSON</arguments>", "\n"),
    "Llama with a function": each("<function=NAME>JSON</function>"),
    "Mistral, a list": lambda calls: f"[TOOL_CALLS] {listed(calls, 'name', 'arguments')}",
    "Mistral, by name": each("[TOOL_CALLS]NAMEJSON"),
    "Mistral, with ARGS": each("[TOOL_CALLS]NAME[ARGS]JSON"),
    "Mistral, with ids": each("[TOOL_CALLS]NAME[CALL_ID]a1b2c3d4e[ARGS]JSON"),
    "DeepSeek V3": within(
        "<｜tool▁calls▁begin｜>",
        each("<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nJSON\n```<｜tool▁call▁end｜>", "\n"),
        "<｜tool▁calls▁end｜>",
    ),
    "DeepSeek V3.1": within(
        "<｜tool▁calls▁begin｜>",
        each("<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>JSON<｜tool▁call▁end｜>"),
        "<｜tool▁calls▁end｜>",
    ),
    "Kimi K2": within(
        "<|tool_calls_section_begin|>",
        each("<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>JSON<|tool_call_end|>"),
        "<|tool_calls_section_end|>",
    ),
    "Harmony": each(
        "<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>JSON<|call|>", "<|start|>assistant"
    ),
    "Harmony, the name first": each(
        "<|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>JSON<|call|>"
    ),
    "Python's syntax": within("[", pythonic, "]"),
    "Llama 4": within("<|python_start|>[", pythonic, "]<|python_end|>"),
    "LFM2": within("<|tool_call_start|>[", pythonic, "]<|tool_call_end|>"),
    "ReAct": each("Action: NAME\nAction Input: JSON", "\n"),
}
XML_FORMATS: dict[str, Render] = {
    "Qwen3-Coder": tagged(
        "<tool_call>\n<function=NAME>\n", "<parameter=KEY>\nVALUE\n</parameter>\n", "</function>\n</tool_call>"
    ),
    "Seed": tagged(
        "<seed:tool_call>\n<function=NAME>\n", "<parameter=KEY>VALUE</parameter>\n", "</function>\n</seed:tool_call>"
    ),
    "MiniMax M2": within(
        "<minimax:tool_call>\n",
        tagged('<invoke name="NAME">\n', '<parameter name="KEY">VALUE</parameter>\n', "</invoke>\n"),
        "</minimax:tool_call>",
    ),
    "DeepSeek V3.2": within(
        "<｜DSML｜function_calls>\n",
        tagged(
            '<｜DSML｜invoke name="NAME">\n',
            '<｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter>\n',
            "</｜DSML｜invoke>\n",
        ),
        "</｜DSML｜function_calls>",
    ),
    "names in tags": tagged("<name>NAME</name>\n<arguments>\n", "    <KEY>VALUE</KEY>\n", "</arguments>\n"),
    "GLM 4.5": tagged("<tool_call>NAME\n", "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n", "</tool_call>"),
    "GLM 4.7": tagged("<tool_call>NAME", "<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>", "</tool_call>"),
}
FORMATS = JSON_FORMATS | XML_FORMATS


def read(text: str, several: int = 9) -> Calls:
    found = find_calls(text, TOOLS, several=several)
    assert found, text
    assert not found.error, found.error
    return [(call.name, dict(call.arguments)) for call in found.calls]


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)
PLAIN = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="<>"), min_size=1, max_size=30
)


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_rendered_is_read_back_whatever_the_arguments_are(form: str) -> None:
    @given(PLAIN if form in XML_FORMATS else TEXT.filter(bool), st.integers(0, 99), st.booleans())
    @example("tower" if form in XML_FORMATS else "a <tool_response> token", 3, True)
    def check(value: str, days: int, twice: bool) -> None:
        calls: Calls = [("weather", {"city": value, "days": days}), *([("search", {"query": "x"})] if twice else [])]
        assert read(FORMATS[form](calls)) == calls

    check()


ONE: Calls = [("search", {"query": "tower height"})]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS.keys())
@pytest.mark.parametrize(
    "form", ["a block", "a list", "Hermes", "Kimi K2", "ReAct", "Python's syntax", "Qwen3-Coder", "GLM 4.5"]
)
def test_every_dialect_reads_other_formats_and_keeps_the_call_in_its_own(form: str, dialect: Dialect) -> None:
    parsed = dialect.parse(Completion(f"I look it up.\n{FORMATS[form](ONE)}"), TOOLS)
    assert parsed.text == "I look it up."
    assert [(call.name, call.arguments) for call in parsed.calls] == ONE
    if dialect is NATIVE:
        (kept,) = parsed.message.calls
        assert (kept.name, json.loads(kept.arguments)) == ONE[0]
        assert kept.id == parsed.calls[0].id != ""
    else:
        again = dialect.parse(Completion(parsed.message.text), TOOLS)
        assert (again.text, again.calls) == (parsed.text, parsed.calls)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("{'name': 'search', 'arguments': {'query': 'tower height',}}", ONE),
        ('{"name": "search", "arguments": {"query": "tower height"}', ONE),
        ('{name: "search", arguments: {query: "tower height"}}', ONE),
        (
            '{"name": "python", "arguments": {"code": "print(1)\nprint(2)"}}',
            [("python", {"code": "print(1)\nprint(2)"})],
        ),
        ('{"name": "search", "arguments": "tower height"}', ONE),
        ('{"name": "search", "arguments": "{\\"query\\": \\"tower height\\"}"}', ONE),
        ('{"name": "search", "query": "tower height"}', ONE),
        ('{"name": "Search", "arguments": {"query": "tower height"}}', ONE),
        ('{"name": "search", "arguments": {"type": "object", "properties": {"query": "tower height"}}}', ONE),
        ("Thought: hm\nAction: search\nAction Input: tower height\nObservation: 31 m", ONE),
        ('Action: search\nParameters:\n- query: "tower height"\n\nNext thought: none.', ONE),
        ("Action: weather\nAction Input:\ncity: Bern\ndays: 3\n", [("weather", {"city": "Bern", "days": 3})]),
        ('search("tower height")', ONE),
        ("```tool_code\nsearch(query='tower height')\n```", ONE),
        ('python(code="""print(1)\nprint(2)""")', [("python", {"code": "print(1)\nprint(2)"})]),
    ],
)
def test_what_is_broken_or_loose_is_read_where_it_is_clear(text: str, calls: Calls) -> None:
    assert read(text) == calls


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Ada", "born": 1815}',
        '{"name": "python"}',
        '{"answer": {"name": "search", "arguments": {"query": "x"}}}',
        'The page holds `{"name": "search", "arguments": {"query": "x"}}`.',
        'It is shown as:\n```text\nas in {"name": "search", "arguments": {"query": "x"}}\n```',
        'As an example: {"name": "fly", "arguments": {}} is how a call looks.',
        "You can use search(query) for that.",
        "Action: none is needed.",
        'The record is {"name": "Ida", "arguments": {"pro": 1}',
        '{"name": "Ida", "role": {"title": "chair"}',
        "",
    ],
)
@pytest.mark.parametrize("name", ["native", "json"])
def test_an_answer_is_no_call(text: str, name: str) -> None:
    parsed = DIALECTS[name].parse(Completion(text), TOOLS)
    assert (parsed.text, parsed.calls, parsed.error) == (text, (), "")


@pytest.mark.parametrize(
    ("text", "cut", "says"),
    [
        ('<tool_call>{"name": "fly", "arguments": {}}</tool_call>', False, "no tool named 'fly'. Available: search"),
        ("<tool_call>I am not sure</tool_call>", False, "cannot be read"),
        ('{"name": "search", "arguments": {"query": "tower}', False, "not valid JSON"),
        ('{"name": "search", "arguments": {"query": "tow', True, "cut off"),
        ('{"name": "Who led it?", "arguments": {"query": "Who led it?"}', False, "no tool named 'Who led it?'"),
        ('```json\n{"name": "Who led it?", "arguments": {"query": ["Who"', False, "no tool named"),
        ("<function=python><parameter=code>print(", True, "cut off"),
        ('{"name": "search", "arguments": {"q": "x"}}', False, "lacks query"),
        ('{"name": "weather", "arguments": {"city": "Bern", "days": None}}', False, "lacks days"),
    ],
)
def test_a_call_that_cannot_be_read_is_told_to_the_model(text: str, cut: bool, says: str) -> None:
    found = find_calls(text, TOOLS, cut=cut)
    assert found
    assert not found.calls
    assert says in found.error


def test_a_call_behind_thought_that_never_ended_is_read() -> None:
    for completion in (Completion("", reasoning=f"I look. {OBJECT(ONE)}"), Completion(f"<think>I look. {OBJECT(ONE)}")):
        assert [(call.name, call.arguments) for call in NATIVE.parse(completion, TOOLS).calls] == ONE


MEGABYTE = 1_000_000
HOSTILE = (
    '{"name": ', '{"name": "search", "arguments": ', '{"a": "b" ', "{x", "[", "`", "``` ", "<tool_call>", "[TOOL_CALLS]",
    "<function=search><parameter=query>", "<｜tool▁call▁begin｜>", "Action: search\n", 'search("x", ',
    "to=search<|channel|>", "\n\n ", "<|", "<invoke name=", '{"name":"Ada","arguments":{}} x ',
    "<tool_call>search<arg_key>",
)  # fmt: skip


@pytest.mark.heavy(seconds=1)
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_reply_is_read_in_few_steps(piece: str) -> None:
    text = (piece * (MEGABYTE // len(piece) + 1))[:MEGABYTE]
    steps = 0

    def count(*_: Any) -> None:
        nonlocal steps
        steps += 1

    for turn in (text, "{'name': 'search', " + text[: MEGABYTE // 10]):
        sys.setprofile(count)
        try:
            find_calls(turn, TOOLS, several=3)
        finally:
            sys.setprofile(None)
    assert steps < 4 * MEGABYTE


@given(st.lists(st.sampled_from([form(ONE) for form in FORMATS.values()]) | TEXT, max_size=4), st.booleans())
def test_no_text_of_a_model_breaks_the_reader(parts: list[str], cut: bool) -> None:
    text = "\n".join(parts)
    found = find_calls(text[: len(text) * 2 // 3], TOOLS, cut=cut, several=2)
    assert found is None or bool(found.calls) != bool(found.error)


def streamed(text: str, size: int) -> str:
    shown: list[str] = []
    held = HeldText(lambda delta: shown.append(delta.text), TOOLS)
    for at in range(0, len(text), size):
        held(Delta(text[at : at + size]))
    held.end()
    return "".join(shown)


@pytest.mark.parametrize("form", FORMATS)
def test_a_call_that_streams_in_is_not_shown(form: str) -> None:
    for size in (1, 3):
        assert streamed(f"I look it up.\n\n{FORMATS[form](ONE)}", size).strip() == "I look it up."


@pytest.mark.parametrize("text", ['{"name": "Ada", "born": 1815}', "a < b, and `x` [s1]\nActions follow."])
def test_an_answer_streams_in_whole(text: str) -> None:
    assert [streamed(text, size) for size in (1, 3)] == [text] * 2
