"""Python for a role: code runs in a separate process that can reach neither the network nor other files."""

from hira.tools.python.layers import Layer, Mode, refusal, sandbox_layers
from hira.tools.python.sandbox import Outcome, PythonSandbox
from hira.tools.python.tool import open_python, python_tool
from hira.tools.python.usage import Limits

__all__ = [
    "Layer",
    "Limits",
    "Mode",
    "Outcome",
    "PythonSandbox",
    "open_python",
    "python_tool",
    "refusal",
    "sandbox_layers",
]
