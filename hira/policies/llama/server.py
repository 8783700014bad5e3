"""llama.cpp's server as a separate program.

It reads a line of JSON, writes its address once the model is loaded, and ends when standard input is closed, which
happens however the parent process ends.
"""

import json
import os
import sys
import threading
import time
from importlib import import_module
from typing import Any

_CHECK_SECONDS = 1.0


def main() -> int:
    wanted = json.loads(sys.stdin.readline())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # llama.cpp may print; the pipe is for the address alone
    _end_at_hangup()
    for watch in (_watch_input, lambda: _watch_parent(wanted["parent"])):
        threading.Thread(target=watch, daemon=True).start()
    try:
        server = open_server(wanted)
    except (RuntimeError, ValueError) as error:
        sys.stderr.write(f"\n{error}\n")
        return 1
    out.write(f"{server.listening_address}\n")
    out.close()
    threading.Event().wait()
    return 0


def open_server(wanted: dict[str, Any]) -> Any:
    """The server of xllamacpp, listening on a free port of the loopback address."""
    xllamacpp: Any = import_module("xllamacpp")  # no types to import: it is an extra
    params = xllamacpp.CommonParams()
    params.model.path = wanted["path"]
    params.model_alias = {wanted["alias"]}
    params.n_ctx = wanted["window"] * wanted["slots"]
    params.n_parallel = wanted["slots"]
    if wanted["encodes"]:
        params.embedding = True
        params.n_batch = params.n_ubatch = wanted["window"]  # a text is read at once
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = wanted["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [wanted["key"]]
    params.cors_origins = ""
    params.use_jinja = True
    params.ui = False
    params.warmup = False
    params.verbosity = 2  # warnings and errors
    return xllamacpp.Server(params)


def _end_at_hangup() -> None:
    """Let the kernel end this process when standard input is closed: no thread runs while a model is loaded."""
    if not hasattr(os, "O_ASYNC"):
        return
    import fcntl

    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)  # SIGIO, which ends a process


def _watch_input() -> None:
    sys.stdin.read()
    os._exit(0)


def _watch_parent(parent: int) -> None:
    """A process that the parent forked may hold the other end of standard input open after the parent has ended."""
    while os.name == "nt" or os.getppid() == parent:
        time.sleep(_CHECK_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
