"""Python for a role: code runs in a separate process that can reach neither the network nor other files."""

from hira.tools.python.layers import Mode, SandboxLayer, refusal, sandbox_layers
from hira.tools.python.sandbox import Outcome, PythonSandbox
from hira.tools.python.tool import open_python, python_tool
from hira.tools.python.usage import PythonLimits

__all__ = [
    "Mode",
    "Outcome",
    "PythonLimits",
    "PythonSandbox",
    "SandboxLayer",
    "open_python",
    "python_tool",
    "refusal",
    "sandbox_layers",
]
