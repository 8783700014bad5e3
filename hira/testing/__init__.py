"""Test doubles for agents: a scripted policy, an endpoint that misbehaves on request. No network, no model."""

from hira.testing.endpoint import Endpoint, Received
from hira.testing.script import Reply, ScriptError, calling
from hira.testing.scripted import ScriptedPolicy

__all__ = ["Endpoint", "Received", "Reply", "ScriptError", "ScriptedPolicy", "calling"]
