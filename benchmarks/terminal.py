"""What a person sees of `hira ask` while a slow model works: the terminal after 1, 10 and 60 seconds, through tmux.

    python benchmarks/terminal.py                                    # an endpoint that writes two tokens a second
    python benchmarks/terminal.py --base-url http://127.0.0.1:8080/v1  # a real one

Prints Markdown; tmux has to be installed.
"""

import argparse
import asyncio
import itertools
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hira.testing import Endpoint
from hira.testing.faults import Fault, delta
from hira.testing.server import Exchange

WIDTH, HEIGHT = 100, 24
TEXTS = {
    "court.txt": "The court of Varnholm sits in the old granary since 1871. Its archive was moved to Lund in 1902.\n",
    "bridge.txt": "The bridge of Varnholm was built by Ada Krey in 1894. It is 212 metres long.\n",
}
QUESTION = "Who built the bridge of Varnholm, and where does the town's court sit?"
REPLY = "The bridge was built by Ada Krey in 1894 [s2]. The court of the town sits in the old granary [s1]."


async def write_slowly(exchange: Exchange) -> None:
    """Ten seconds of reading are three here; then two tokens a second, thought first."""
    await asyncio.sleep(3)
    await exchange.begin()
    thought = (f"Step {at}: I compare what the two notes say. " for at in itertools.count(1))
    for word in [*" ".join(itertools.islice(thought, 14)).split(), *REPLY.split()]:
        piece = delta(None, reasoning=f"{word} ") if word not in REPLY.split() else delta(f"{word} ")
        await exchange.chunk(b"data: " + json.dumps(piece).encode() + b"\n\n")
        await asyncio.sleep(0.5)
    await exchange.chunk(b"data: " + json.dumps(delta("", "stop")).encode() + b"\n\ndata: [DONE]\n\n")
    await exchange.end()


def tmux(*arguments: str) -> str:
    return subprocess.run(["tmux", "-L", "hira", *arguments], check=True, capture_output=True, text=True).stdout


def watch(base_url: str, model: str, workflow: str, moments: list[float]) -> list[tuple[float, str]]:
    """What stands on the terminal at these seconds."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in TEXTS.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "hira", "ask", QUESTION, "--docs", folder, "--journal", "off",
                   "--base-url", base_url, "--model", model, "--workflow", workflow]  # fmt: skip
        shown = f"env HIRA_API_KEY=none {shlex.join(command)}; sleep 100"
        tmux("new-session", "-d", "-s", "ask", "-x", str(WIDTH), "-y", str(HEIGHT), shown)
        began = time.monotonic()
        try:
            seen = []
            for moment in moments:
                time.sleep(max(0.0, began + moment - time.monotonic()))
                seen.append((moment, tmux("capture-pane", "-p", "-t", "ask").rstrip()))
            return seen
        finally:
            tmux("kill-server")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", default="")
    parser.add_argument("--model", default="")
    parser.add_argument("--workflow", default="rag")
    parser.add_argument("--moments", type=float, nargs="+", default=[1, 10, 60])
    args = parser.parse_args()
    with Endpoint(faults=lambda _: Fault(write_slowly)) as endpoint:
        seen = watch(args.base_url or endpoint.base_url, args.model or endpoint.model, args.workflow, args.moments)
    for moment, text in seen:
        print(f"After {moment:g} s:\n\n```text\n{text}\n```\n")


if __name__ == "__main__":
    main()
