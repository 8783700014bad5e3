"""A chat template is a program by the author of the model. Before this process renders it, a child with limits does."""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import hira
from hira.core.errors import UsageError

CPU_SECONDS = 5
WALL_SECONDS = 60.0
MEMORY = 8 << 30
"""Bytes of address space, most of them of libraries that are mapped and never read."""
NO_MEMORY = 3
_START = "from hira.policies.local.template_check import main; main()"
_TOOL = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
_TURNS: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "One?"},
    {
        "role": "assistant",
        "content": "Two.",
        "tool_calls": [
            {"id": "call00001", "type": "function", "function": {"name": "look", "arguments": {"at": "three"}}}
        ],
    },
    {"role": "tool", "content": "Four.", "tool_call_id": "call00001", "name": "look"},
    {"role": "assistant", "content": "<think>\nFive?\n</think>\n\nSix."},
)


def check_template(tokenizer: Any, where: str) -> None:
    """Raise `UsageError` for a chat template that renders without end or takes all memory. Blocks for a second."""
    named = tokenizer.chat_template
    texts = tuple(named.values()) if isinstance(named, dict) else (named,)
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    if why := try_rendering(json.dumps([texts, special])):
        raise UsageError(
            f"the model's chat template {why}", where=where, fix="use another model, or repair its template"
        )


@lru_cache(maxsize=64)
def try_rendering(asked: str) -> str:
    """What is wrong with the templates; kept, since one template renders for many conversations."""
    command = [sys.executable, "-P", "-c", _START]
    environ = {"PYTHONPATH": str(Path(hira.__file__).parent.parent), "PATH": ""}
    try:
        ended = subprocess.run(  # noqa: S603 - our own module
            command, input=asked.encode(), env=environ, check=False, capture_output=True, timeout=WALL_SECONDS
        ).returncode
    except subprocess.TimeoutExpired:
        return f"needs more than {WALL_SECONDS:g} seconds to render four messages"
    if ended == NO_MEMORY:
        return "needs too much memory to render four messages"
    return f"needs more than {CPU_SECONDS} seconds to render four messages" if ended < 0 else ""


def main() -> None:
    """Render all beginnings of a conversation with each template. One that raises is asked again by who uses it."""
    from transformers.utils.chat_template_utils import render_jinja_template

    texts, special = json.loads(sys.stdin.buffer.read())
    _limit_process()
    for text in texts:
        for many in range(1, 2 * len(_TURNS) + 1):
            for tools in (None, [{"type": "function", "function": _TOOL}]):
                _render(render_jinja_template, text, (_TURNS * 2)[:many], tools, special)


def _render(
    render: Any, text: str, messages: tuple[dict[str, Any], ...], tools: Any, special: Mapping[str, str]
) -> None:
    told = [{"role": "system", "content": "Zero."}, *messages]
    for conversation in (told, told[1:]):
        try:
            render([conversation], tools=tools, chat_template=text, add_generation_prompt=True, **special)
        except MemoryError:
            sys.exit(NO_MEMORY)
        except Exception:  # noqa: BLE001, S112 - a template raises what it likes
            continue


def _limit_process() -> None:
    if sys.platform != "win32":
        import resource
        import time

        for kind, most in (
            (resource.RLIMIT_CPU, int(time.process_time()) + CPU_SECONDS),
            (resource.RLIMIT_AS, MEMORY),
            (resource.RLIMIT_CORE, 0),
        ):
            with suppress(ValueError):  # a lower bound is set already
                resource.setrlimit(kind, (most, most))
