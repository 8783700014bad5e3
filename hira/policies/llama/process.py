"""llama.cpp's server as a child process that all runs of this process share."""

import asyncio
import atexit
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from hira.core.errors import EndpointError
from hira.core.policy import Tell

PROGRAM = Path(__file__).with_name("server.py")
TELL_AFTER, TELL_EVERY = 1.0, 15.0
"""Seconds of loading before the first notice, and between two notices."""
ENDING = 1.0
"""The longest time, in seconds, that a process takes to end after its connection is lost."""
_SHOWN = 300
_LOG_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The configuration of the server: `window` is in tokens for each of the `slots`, which answer concurrently. One
    that `encodes` returns vectors instead of text."""

    path: str
    alias: str
    window: int
    slots: int
    threads: int
    encodes: bool = False


class LlamaServer:
    """One server. It loads its model in the background; `base_url` is known once it has."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.key = secrets.token_hex(16)
        self.leases = 0
        self._failure = ""
        self._gigabytes = Path(config.path).stat().st_size / 1e9
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter and a file of this package
            [sys.executable, "-P", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C must not reach it: the run still needs it for the closing answer
            text=True,
        )
        self._ready: Future[str] = Future()
        self._ready.set_running_or_notify_cancel()  # one cancelled run must not cancel it for the others
        threading.Thread(target=self._start, daemon=True, name="llama.cpp").start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    async def ends_soon(self) -> bool:
        """Return whether the process has ended or does within a moment: its connections are closed a little earlier."""
        with suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, ENDING)
        return self.ended

    @property
    def slots(self) -> asyncio.Semaphore:
        """How many requests of this event loop the server answers at once; the others wait here and not in it."""
        loop = asyncio.get_running_loop()
        return self._slots.setdefault(loop, asyncio.Semaphore(self.config.slots))

    async def base_url(self, tell: Tell | None = None) -> str:
        """Wait until the model is loaded; `tell` gets notices. Raises `EndpointError` if the server ends."""
        ready = asyncio.wrap_future(self._ready)
        waited, wait = 0.0, TELL_AFTER
        while not (await asyncio.wait([ready], timeout=wait))[0]:
            waited, wait = waited + wait, TELL_EVERY
            if tell:
                what = f"llama.cpp is loading {self.config.alias} ({self._gigabytes:.1f} GB), {waited:.0f} s so far"
                tell(what, self.config.alias)
        if not self._failure:
            return ready.result()
        what = f"llama.cpp cannot serve the model: {self._failure}"
        raise EndpointError(what, fix="check that the file is complete and the memory is sufficient")

    def why_it_ended(self) -> str:
        """The last error of the server's own log, else how its process ended."""
        self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - _LOG_BYTES))
        lines = self._log.read().decode("utf-8", "replace").splitlines()
        errors = [line.partition(" E ")[2].strip() for line in lines if " E " in line]
        code = self._process.poll()
        ended = f"signal {-code}" if code and code < 0 else f"exit code {code}"
        last = next(iter(errors), "") or next((line for line in reversed(lines) if line.strip()), "")
        return f"{last[:_SHOWN]} ({ended})" if last else ended

    def close(self) -> None:
        with suppress(OSError), self._process:  # unwritten requests are lost
            self._process.kill()
        self._log.close()

    def _start(self) -> None:
        """Pass the configuration and wait for the address. Runs in a separate thread."""
        assert self._process.stdin  # noqa: S101 - it is a pipe
        assert self._process.stdout  # noqa: S101 - it is a pipe
        address = ""
        with suppress(OSError, ValueError):  # the process has ended, or was closed meanwhile
            wanted = {**asdict(self.config), "key": self.key, "parent": os.getpid()}
            self._process.stdin.write(json.dumps(wanted) + "\n")
            self._process.stdin.flush()
            address = self._process.stdout.readline().strip()
        if not address:
            self._process.wait()
            self._failure = "it was closed"
            with suppress(OSError, ValueError):  # then its log is closed, too
                self._failure = self.why_it_ended()
        self._ready.set_result(f"{address}/v1")


_LOCK = threading.Lock()
_SERVERS: dict[ServerConfig, LlamaServer] = {}


def lease_server(config: ServerConfig) -> LlamaServer:
    """The server of this configuration, started if none runs. Each lease has to be released once."""
    with _LOCK:
        server = _SERVERS.get(config)
        if server is None or server.ended:
            server = _SERVERS[config] = LlamaServer(config)
        server.leases += 1
        return server


def release_server(server: LlamaServer) -> None:
    """End the server with its last lease."""
    with _LOCK:
        server.leases -= 1
        if server.leases:
            return
        if _SERVERS.get(server.config) is server:
            del _SERVERS[server.config]
    server.close()


@atexit.register
def _close_all() -> None:
    with _LOCK:
        for server in _SERVERS.values():
            server.close()
        _SERVERS.clear()
