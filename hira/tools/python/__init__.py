"""Python for a role: code runs in a separate process that can reach neither the network nor other files.

Each name is loaded at its first use: most runs describe the tool and never open a session.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hira.tools.python.layers import IMAGE, Mode, PythonLimits, SandboxLayer, refusal, sandbox_layers
    from hira.tools.python.sandbox import Outcome, PythonSandbox
    from hira.tools.python.tool import open_python
    from hira.tools.python.trial import TRIES, SandboxTrial, try_programs, try_sandbox

__all__ = [
    "IMAGE", "TRIES", "Mode", "Outcome", "PythonLimits", "PythonSandbox", "SandboxLayer", "SandboxTrial",
    "open_python", "refusal", "sandbox_layers", "try_programs", "try_sandbox",
]  # fmt: skip

_HOMES = {
    **dict.fromkeys(("IMAGE", "Mode", "PythonLimits", "SandboxLayer", "refusal", "sandbox_layers"), "layers"),
    **dict.fromkeys(("Outcome", "PythonSandbox"), "sandbox"),
    "open_python": "tool",
    **dict.fromkeys(("TRIES", "SandboxTrial", "try_programs", "try_sandbox"), "trial"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
