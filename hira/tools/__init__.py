"""What roles may call. `@tool` makes one of any typed function; the rest of the package makes the built-in ones."""

from hira.core.tool import Observation, Passage, Tool, tool
from hira.tools.toolbox import Toolbox

__all__ = ["Observation", "Passage", "Tool", "Toolbox", "tool"]
