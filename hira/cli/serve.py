"""`hira serve`: an endpoint that speaks OpenAI's chat and Responses APIs, and the live page."""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from hira.cli import OK
from hira.cli.many import short_pauses
from hira.cli.running import announce_model
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.runtime.settings import SERVE_KEY, KeySettings, Settings

HOST, PORT, MOST = "127.0.0.1", 8811, 65_535


@dataclass(frozen=True, slots=True)
class ServeOptions:
    settings: Mapping[str, Any]
    host: str = ""
    port: int = PORT
    serve_key: str | None = None
    debug: bool = False


def serve(options: ServeOptions, shell: Shell) -> int:
    settings = _add_key(shell.load_settings(options.settings), options.serve_key, shell)
    host, port = options.host or HOST, options.port
    if not 0 <= port <= MOST:
        raise UsageError(f"there is no port {port}", fix=f"name a port from 1 to {MOST}, or 0 for any free port")
    if not is_loopback(host) and not settings.keys:
        what = f"{host} can be reached from other machines, and no key protects it"
        raise UsageError(what, fix=f"set {SERVE_KEY} or give --api-key @FILE, or serve on 127.0.0.1, the default")
    try:
        import uvicorn

        from hira.server.app import application
        from hira.server.connections import limit_connections
        from hira.server.state import LOCAL
    except ImportError:
        fix = "pip install 'hira[serve]'"
        raise UsageError("hira serve needs starlette and uvicorn, which are not installed", fix=fix) from None
    listening = _open_socket(host, port)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"

    async def run() -> None:
        async with application(settings, hosts=LOCAL | {host} if is_loopback(host) else None) as app:
            config = uvicorn.Config(
                app,
                timeout_graceful_shutdown=3,
                log_level="warning",
                access_log=options.debug,
                **limit_connections(),
            )
            server = uvicorn.Server(config)
            if line := announce_model(app.state.session):
                shell.remark(line)
            if not is_loopback(host):
                shell.remark(f"{host} can be reached from other machines; the connection is not encrypted")
            shell.remark(f"a page to watch runs: {address}/")
            shell.remark(f"an OpenAI-compatible endpoint: {address}/v1, models: {', '.join(app.state.models)}")
            looking = asyncio.create_task(_report_unready(app.state.session.settings, shell))
            with short_pauses(), suppress(asyncio.CancelledError):
                await server.serve(sockets=[listening])
                await asyncio.sleep(0)  # uvicorn repeats the signal; it arrives here, so that the journal is closed
            looking.cancel()

    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # both end it in the same way
    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        pass  # a second signal: do not wait until everything is closed
    finally:
        signal.signal(signal.SIGTERM, before)
    shell.remark("stopped")
    return OK


async def _report_unready(settings: Settings, shell: Shell) -> None:
    """Report the models that cannot be asked, while the server runs: they may come up later."""
    from hira.server.app import unready

    for line in await unready(settings):
        shell.remark(line)


def _add_key(settings: Settings, key: str | None, shell: Shell) -> Settings:
    """The settings with the key of --api-key, or of the environment. Raises `UsageError` for an empty key."""
    if key is None:
        key = shell.environ.get(SERVE_KEY)
    elif key.startswith("@"):
        key = shell.read_text(key[1:], "--api-key").strip()
    elif key:
        shell.remark(f"others on this machine see the key in the list of processes; use {SERVE_KEY} or --api-key @FILE")
    if key is not None:
        if not key.strip():
            raise UsageError("--api-key is empty", fix="give a long random text; is a shell variable unset?")
        keys = {**settings.keys, "--api-key": KeySettings.model_validate({"key": key})}
        settings = settings.with_values({"keys": keys}, "--api-key")
    if empty := [name for name, client_key in settings.keys.items() if not client_key.key.get_secret_value()]:
        raise UsageError(f"the key {empty[0]!r} is empty", fix=f"write [keys.{empty[0]}] key = … in hira.toml")
    return settings


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _open_socket(host: str, port: int) -> socket.socket:
    """Open the socket first, so that a port in use is reported before anything else."""
    family, both = (socket.AF_INET6, socket.has_dualstack_ipv6()) if ":" in host else (socket.AF_INET, False)
    try:
        return socket.create_server((host, port), family=family, backlog=512, dualstack_ipv6=both)
    except OSError as error:
        what = f"port {port} of {host} cannot be used: {os.strerror(error.errno or 0)}"
        raise UsageError(what, fix="choose another with --port") from None
