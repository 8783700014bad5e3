"""Tools of MCP servers, started as a process (stdio) or reached by URL (streamable HTTP): `pip install 'hira[mcp]'`.

The package "mcp" takes more than a second to import; it is loaded when the first server is opened.
"""

from hira.tools.mcp.session import Server, require
from hira.tools.mcp.tools import mcp_tools

__all__ = ["Server", "mcp_tools", "require"]
