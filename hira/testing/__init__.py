"""Test doubles for agents: a scripted policy, an endpoint that misbehaves, a small web. No network, no model."""

from hira.testing.endpoint import Endpoint
from hira.testing.script import Reply, ScriptedPolicy, ScriptError, calling, make_context
from hira.testing.server import Received
from hira.testing.web import FakeWeb, Served

__all__ = [
    "Endpoint", "FakeWeb", "Received", "Reply", "ScriptError", "ScriptedPolicy", "Served", "calling", "make_context",
]  # fmt: skip
