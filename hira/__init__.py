"""hira: ask hard questions of any model, get answers bound to evidence, and train the agents you run.

    >>> from hira import Hira
    >>> answer = Hira(model="gpt-5", docs="papers/").ask_sync("…")

Nothing is loaded before it is used: `import hira` costs a few milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hira.agents.function_expert import expert
    from hira.agents.trajectory import Rollout
    from hira.api import Hira, ask, ask_sync
    from hira.core.errors import HiraError
    from hira.core.events import AnyEvent, Event
    from hira.core.hooks import Hooks, Refusal, ToolUse
    from hira.core.policy import Policy
    from hira.core.tool import Context, Tool, tool
    from hira.runtime.answer import Answer
    from hira.runtime.chat import Chat
    from hira.runtime.settings import Settings
    from hira.workflows.workflow import Workflow

__version__ = "0.2.0"
__all__ = [
    "Answer", "AnyEvent", "Chat", "Context", "Event", "Hira", "HiraError", "Hooks", "Policy", "Refusal", "Rollout",
    "Settings", "Tool", "ToolUse", "Workflow", "__version__", "ask", "ask_sync", "expert", "tool",
]  # fmt: skip

_HOMES = {
    "Answer": "runtime.answer",
    "AnyEvent": "core.events",
    "Chat": "runtime.chat",
    "Context": "core.tool",
    "Event": "core.events",
    "Hira": "api",
    "HiraError": "core.errors",
    "Hooks": "core.hooks",
    "Policy": "core.policy",
    "Refusal": "core.hooks",
    "Rollout": "agents.trajectory",
    "Settings": "runtime.settings",
    "Tool": "core.tool",
    "ToolUse": "core.hooks",
    "Workflow": "workflows.workflow",
    "ask": "api",
    "ask_sync": "api",
    "expert": "agents.function_expert",
    "tool": "core.tool",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hira' has no attribute {name!r}")
    return getattr(import_module(f"hira.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
