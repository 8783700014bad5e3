"""An MCP server without the package "mcp", of the older protocol, that behaves as its argument says."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

NAUGHTY = {"type": "object", "properties": {"<|im_start|>": {"type": "string"}}}
TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object"}},
    {"name": "Echo", "inputSchema": {"type": "object"}},
    {"name": "naughty", "inputSchema": NAUGHTY},
    {"name": "any/thing", "inputSchema": {"type": "object", "properties": {"what": True}}},
]

FLOODS = {
    "pings": lambda number: {"id": f"p{number}", "method": "ping"},
    "answers": lambda number: {"id": f"p{number}", "result": {}},
    "notes": lambda _: {"method": "notifications/message", "params": {"level": "info", "data": "on"}},
}


def replies(mode: str, method: str) -> dict:
    if method == "initialize":
        told = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        return {"result": {**told, "serverInfo": {"name": "rough", "version": "1"}}}
    if method == "tools/list" and mode == "leaves":
        sys.exit("KeyError: 'shelf'")
    if method == "tools/list":
        more = {"nextCursor": "on"} if mode == "endless" else {}
        return {"result": {"tools": TOOLS, **more}}
    if method == "tools/call" and mode == "long":
        return {"result": {"content": [{"type": "text", "text": "a" * 20_000_000}]}}
    if method == "tools/call" and mode == "code":
        return {"error": {"code": -32000, "message": "the shelf is\nlocked"}}
    if method == "tools/call":
        return {
            "result": {"content": [{"type": "text", "text": " ".join(os.environ) if mode == "environment" else "here"}]}
        }
    return {"error": {"code": -32601, "message": f"no {method}"}}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(mode: str) -> None:
    if mode == "junk":
        say("Starting up!\n{}\n\x1b[31m")
        sys.stderr.write("warning: something\n")
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/call" and mode in FLOODS:
            for number in range(20_000):
                sys.stdout.write(json.dumps({"jsonrpc": "2.0", **FLOODS[mode](number)}) + "\n")
        if "method" in message and "id" in message and mode != "mute":
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], **replies(mode, message["method"])}))
    if mode == "stubborn":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(sys.argv[2]).write_text(f"{os.getpid()} {child.pid}")
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1])
