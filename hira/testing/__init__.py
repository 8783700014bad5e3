"""Test doubles for agents: a scripted policy, an endpoint that misbehaves on request. No network, no model."""

from hira.testing.script import Reply, ScriptError, calling
from hira.testing.scripted import ScriptedPolicy

__all__ = ["Reply", "ScriptError", "ScriptedPolicy", "calling"]
