"""A headless Chromium for tests, spoken to over WebDriver with nothing but the standard library."""

import base64
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


def missing() -> str:
    """Why no browser can be driven here, empty if one can."""
    found = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    return ", ".join(f"{name} is not installed" for name, path in found.items() if not path)


@dataclass(frozen=True)
class Browser:
    session: str

    def open(self, path: Path) -> None:
        self.send("POST", "/url", {"url": path.as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        """What the script returns in the page."""
        return self.send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def press(self, *keys: str) -> None:
        """Press keys one after another where the focus is."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.send("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": strokes}]})

    def size(self, width: int, height: int) -> None:
        told = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.devtools("Emulation.setDeviceMetricsOverride", told)

    def prefer(self, scheme: str) -> None:
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", {"features": wanted})

    def devtools(self, command: str, told: dict[str, Any]) -> Any:
        return self.send("POST", "/goog/cdp/execute", {"cmd": command, "params": told})

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("GET", "/screenshot")))

    def send(self, method: str, path: str, body: Any = None) -> Any:
        return _send(method, f"{self.session}{path}", body)


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, gone when the context is left."""
    command = [str(shutil.which("chromedriver")), "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as driver:
        try:
            assert driver.stdout
            port = next(found[1] for line in driver.stdout if (found := re.search(r"successfully on port (\d+)", line)))
            options = {"binary": shutil.which("chromium"), "args": [*FLAGS, f"--user-data-dir={profile}"]}
            wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
            made = _send("POST", f"http://127.0.0.1:{port}/session", wanted)
            session = f"http://127.0.0.1:{port}/session/{made['sessionId']}"
            try:
                yield Browser(session)
            finally:
                _send("DELETE", session)
        finally:
            driver.terminate()


def _send(method: str, url: str, body: Any = None) -> Any:
    request = urllib.request.Request(  # noqa: S310 - the driver of this machine
        url, None if body is None else json.dumps(body).encode(), {"content-type": "application/json"}, method=method
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as reply:
        return json.load(reply)["value"]
