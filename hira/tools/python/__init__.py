"""Python for a role: code runs in a separate process that can reach neither the network nor other files.

The sandbox is loaded at its first use: most runs describe the tool and never open a session.
"""

from typing import TYPE_CHECKING, Any

from hira.tools.python.layers import IMAGE, Mode, PythonLimits, SandboxLayer, refusal, sandbox_layers
from hira.tools.python.tool import open_python

if TYPE_CHECKING:
    from hira.tools.python.sandbox import PythonSandbox

__all__ = [
    "IMAGE", "Mode", "PythonLimits", "PythonSandbox", "SandboxLayer", "open_python", "refusal", "sandbox_layers"
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name != "PythonSandbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hira.tools.python.sandbox import PythonSandbox

    return PythonSandbox
