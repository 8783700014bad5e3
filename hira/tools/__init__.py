"""What roles may call. `@tool` makes one of any typed function; the others are made by the functions of this package."""

from hira.tools.tool import Observation, Passage, Tool, tool

__all__ = ["Observation", "Passage", "Tool", "tool"]
