"""The process that parses files for `FileReader`: one request a line, one reply a line, as JSON."""

import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hira.core.errors import ToolError
from hira.tools.documents.parse import parse_file


def main() -> None:
    """Answer requests until the parent closes the pipe. What a library prints is no reply."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    cpu_seconds, memory = map(int, sys.argv[1:])
    limit_process(memory)
    for line in sys.stdin.buffer:
        allow_seconds(cpu_seconds)
        request = json.loads(line)
        try:
            reply = json.dumps(answer_request(request)).encode()
        except MemoryError:
            error = f"{Path(request['path']).name} cannot be read: there is not enough memory for its text"
            reply = json.dumps({"error": error, "kind": ToolError.__name__}).encode()
        replies.write(reply + b"\n")
        replies.flush()


def answer_request(request: dict[str, Any]) -> dict[str, Any]:
    """The file's title and parts, or the error that its reading ended with."""
    try:
        document = parse_file(Path(request["path"]), limit=request["limit"])
    except ToolError as error:
        return {"error": str(error), "kind": type(error).__name__}
    return {"title": document.title, "parts": [asdict(part) for part in document.parts]}


def limit_process(memory: int) -> None:
    """Bound the memory of this process; no core is written when it breaks a bound."""
    if sys.platform != "win32":
        import resource

        for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def allow_seconds(seconds: int) -> None:
    """Let the next file take so many seconds of processor time, on top of what the earlier ones took."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        most = int(time.process_time()) + seconds + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
