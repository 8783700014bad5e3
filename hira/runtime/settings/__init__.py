"""Settings: read once, at the edge, from flags, environment and files, each value with its origin.

    flags > environment > profile > ./hira.toml > $XDG_CONFIG_HOME/hira/hira.toml > defaults

A profile is a file of the same form that a training run writes (`--profile RUN`): its model, adapters and workflow.

A model is not chosen here: `model == ""` lets `hira.runtime.endpoints` look for a local server, then takes `offline`.

    model = "qwen3-32b"
    base_url = "http://127.0.0.1:8000/v1"
    docs = ["papers"]

    [roles.planner]
    model = "gpt-5"
    base_url = "https://api.openai.com/v1"

    [prices."qwen3-32b"]
    input = 0.1
    output = 0.4

    [workflows.mars]
    turns = 5

    [search_keys]
    serper = "…"

    [mcp.files]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem", "."]
"""

from hira.runtime.settings.fields import (
    ALSO_CALLED,
    DOCUMENTS,
    FILE,
    JOURNAL,
    MCP_CONSENT,
    MEMORY,
    OFF,
    PREFERRED,
    PROFILE,
    SEARCH_KEYS,
    SERVE_KEY,
    SERVED,
    TRUST,
    Continuation,
    Dialect,
    ExpertSettings,
    KeySettings,
    McpSettings,
    PriceSettings,
    RoleSettings,
    Settings,
    TimeoutSettings,
    list_retrievers,
)
from hira.runtime.settings.reading import find_kept_file, load
from hira.tools.python.layers import Mode as Sandbox

__all__ = [
    "ALSO_CALLED", "DOCUMENTS", "FILE", "JOURNAL", "MCP_CONSENT", "MEMORY", "OFF", "PREFERRED", "PROFILE",
    "SEARCH_KEYS", "SERVED", "SERVE_KEY", "TRUST", "Continuation", "Dialect", "ExpertSettings", "KeySettings",
    "McpSettings", "PriceSettings", "RoleSettings", "Sandbox", "Settings", "TimeoutSettings", "find_kept_file",
    "list_retrievers", "load",
]  # fmt: skip
