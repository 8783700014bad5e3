"""What the journal holds of a run, read back: for the terminal, for the page, for checking, for training."""

from hira.runtime.trace.reading import Reading, ReadSubtask, ReadTool, ReadTurn, read

__all__ = ["ReadSubtask", "ReadTool", "ReadTurn", "Reading", "read"]
