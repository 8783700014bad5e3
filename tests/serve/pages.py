"""How the tests drive the live page."""

import time
from collections.abc import Callable
from typing import Any

from browser import Browser

ASK = "document.getElementById('question').value = arguments[0]; document.getElementById('ask').requestSubmit()"


def go(driven: Browser, url: str) -> None:
    """Open the page, and wait until it has loaded or asks for a key."""
    driven.send("POST", "/url", {"url": url})
    until(
        driven,
        "return document.querySelectorAll('#workflows input').length > 10 || document.querySelector('#key').open",
    )


def until(driven: Browser, script: str, what: Callable[[Any], bool] = bool) -> Any:
    """Run the script until `what` accepts its result, and return that result."""
    deadline = time.monotonic() + 20
    while not what(found := driven.run(script)):
        assert time.monotonic() < deadline, f"{script}: {found!r}, {driven.run('return document.body.innerText')!r}"
        time.sleep(0.05)
    return found
