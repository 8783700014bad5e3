"""A recorded run, read back from the journal: for the terminal, the page, checks and training."""

from hira.runtime.trace.reading import Reading, ReadSubtask, ReadTool, ReadTurn, read

__all__ = ["ReadSubtask", "ReadTool", "ReadTurn", "Reading", "read"]
