"""Tools that roles may call. `@tool` turns any typed function into one; the rest of the package has built-in ones."""

from hira.core.tool import Observation, Passage, Tool, tool
from hira.tools.toolbox import Toolbox

__all__ = ["Observation", "Passage", "Tool", "Toolbox", "tool"]
