"""A proxy in front of a model server that makes every system ask alike, and keeps what the model replied.

Each request gets temperature 0 and at most `CAP` tokens, whoever sends it. `GET /search?q=…` serves the passages that
the systems measured beside hira search, and counts the searches.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

CAP = 400
"""Tokens of one reply."""
PATIENCE = 900.0
FIXED = {"temperature": 0, "seed": 1, "cache_prompt": True}


class Recorder(ThreadingHTTPServer):
    """The proxy. `turns` and `searches` are what was asked since `clear`."""

    def __init__(self, upstream: str, passages: Callable[[str], str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream)
        self.passages = passages
        self.turns: list[dict[str, Any]] = []
        self.searches: list[str] = []
        self._busy = threading.Condition()
        self._open = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def clear(self) -> None:
        self.turns, self.searches = [], []

    @contextmanager
    def turn(self) -> Iterator[None]:
        """While a turn is under way, so that `settled` waits for its record."""
        with self._busy:
            self._open += 1
        try:
            yield
        finally:
            with self._busy:
                self._open -= 1
                self._busy.notify_all()

    def settled(self) -> list[dict[str, Any]]:
        """The turns, once all of them are recorded: a client has its reply a moment before."""
        with self._busy:
            self._busy.wait_for(lambda: not self._open)
        return self.turns


@contextmanager
def recording(upstream: str, passages: Callable[[str], str]) -> Iterator[Recorder]:
    """A running recorder in front of the base URL `upstream` (without `/v1`)."""
    with Recorder(upstream, passages) as recorder:
        thread = threading.Thread(target=recorder.serve_forever, daemon=True)
        thread.start()
        try:
            yield recorder
        finally:
            recorder.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the base class gives it
        """Keep the terminal for the results."""

    def do_GET(self) -> None:
        if self.path.startswith("/search?"):
            query = parse_qs(urlsplit(self.path).query)["q"][0]
            self.server.searches.append(query)
            self._send(200, "text/plain; charset=utf-8", self.server.passages(query).encode())
        else:
            self._relay("GET", b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.path.endswith("completions"):
            self._relay("POST", body)
            return
        asked = json.loads(body)
        wanted = asked.pop("max_completion_tokens", None) or asked.get("max_tokens") or CAP
        asked |= {**FIXED, "max_tokens": min(wanted, CAP)}
        if asked.get("stream"):
            asked |= {"stream_options": {"include_usage": True}, "timings_per_token": True}
        began = time.monotonic()
        with self.server.turn():
            status, lines = self._relay("POST", json.dumps(asked).encode())
            turn = read_turn(asked, status, lines)
            self.server.turns.append({**turn, "seconds": round(time.monotonic() - began, 2)})

    def _relay(self, method: str, body: bytes) -> tuple[int, list[bytes]]:
        """Send it on and bring back the reply, line by line where it is a stream."""
        where = self.server.upstream
        connection = HTTPConnection(where.hostname or "", where.port or 80, timeout=PATIENCE)
        connection.request(method, where.path.rstrip("/") + self.path, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        kind = reply.headers.get("Content-Type", "application/json")
        if not kind.startswith("text/event-stream"):
            text = reply.read()
            connection.close()
            self._send(reply.status, kind, text)
            return reply.status, [text]
        try:
            return reply.status, self._stream(reply, kind)
        finally:
            connection.close()

    def _stream(self, reply: HTTPResponse, kind: str) -> list[bytes]:
        self.send_response(reply.status)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        lines = []
        try:
            for line in reply:
                lines.append(line)
                self.wfile.write(line)
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass  # who asked has seen enough; what came until then is the turn
        self.close_connection = True
        return lines

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def read_turn(asked: dict[str, Any], status: int, lines: Sequence[bytes]) -> dict[str, Any]:
    """A turn as it is kept: what was asked, the raw reply, and its tokens as the server counted them."""
    turn: dict[str, Any] = {"messages": asked.get("messages") or asked.get("prompt"), "status": status}
    turn |= {name: asked[name] for name in ("tools", "stop", "response_format") if asked.get(name)}
    if asked.get("stream") and status == 200:
        chunks = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
        choices = [chunk["choices"][0] for chunk in chunks if chunk.get("choices")]
        deltas = [one.get("delta", {}) for one in choices]
        text = "".join(
            delta.get("content") or one.get("text") or "" for delta, one in zip(deltas, choices, strict=True)
        )
        calls = [call for delta in deltas for call in delta.get("tool_calls") or ()]
        finish = next((one["finish_reason"] for one in reversed(choices) if one.get("finish_reason")), None)
        usage = next((chunk["usage"] for chunk in reversed(chunks) if chunk.get("usage")), None)
        usage = usage or count_of_left(chunks, len(lines))
    else:
        reply = json.loads(lines[0] or b"{}")
        if status != 200:
            return {**turn, "error": reply.get("error"), "text": "", "prompt_tokens": 0, "reply_tokens": 0}
        choice = reply["choices"][0]
        message = choice.get("message") or {"content": choice.get("text")}
        text, calls = message.get("content") or "", message.get("tool_calls") or []
        finish, usage = choice.get("finish_reason"), reply.get("usage", {})
    counts = {"prompt_tokens": usage.get("prompt_tokens", 0), "reply_tokens": usage.get("completion_tokens", 0)}
    return {**turn, "text": text, "tool_calls": calls, "finish": finish, **counts}


def count_of_left(chunks: Sequence[dict[str, Any]], lines: int) -> dict[str, int]:
    """The usage of a stream that its reader left, which has none: by llama.cpp's timings, else each token is an event,
    followed by an empty line."""
    timed = next((chunk["timings"] for chunk in reversed(chunks) if chunk.get("timings")), None)
    if timed is None:
        return {"completion_tokens": lines // 2}
    return {"prompt_tokens": timed["cache_n"] + timed["prompt_n"], "completion_tokens": timed["predicted_n"]}
