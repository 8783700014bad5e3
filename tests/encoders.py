"""An encoder for tests, over real HTTP: words of one meaning share a dimension; and its ways to fail."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from hira.testing.server import Exchange, HttpServer, Received

MEANINGS = (("car", "automobile"), ("doctor", "physician"), ("fast", "rapid"), ("boat", "vessel"), ("bread", "loaf"))


def encode(text: str) -> list[float]:
    return [float(sum(text.lower().count(word) for word in meaning)) + 0.01 for meaning in MEANINGS]


@dataclass
class EncoderServer:
    """A server on this machine. `answer` changes what it answers with; it may wait, and return None to break off."""

    model: str = "meanings"
    answer: Callable[[dict[str, Any]], Any] = lambda answer: answer
    status: int = 200
    refuses_input_type: bool = False
    window: int = 100_000
    message: str = "no such thing"
    asked: list[Received] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/v1"

    @property
    def texts(self) -> list[str]:
        """The passages that were encoded."""
        bodies = [one.body for one in self.asked if one.path == "/v1/embeddings"]
        return [text for body in bodies if body.get("input_type") != "query" for text in body["input"]]

    def __enter__(self) -> Self:
        self.server = HttpServer(self._respond)
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()

    async def _respond(self, received: Received, exchange: Exchange) -> None:
        self.asked.append(received)
        if self.status != 200 or (self.refuses_input_type and "input_type" in received.body):
            await exchange.json(self.status if self.status != 200 else 400, {"error": {"message": self.message}})
            return
        if max(map(len, received.body.get("input", [""]))) > self.window:
            await exchange.json(413, {"error": f"inputs must have less than {self.window} characters"})
            return
        told = self.answer(self._rank(received.body) if received.path == "/v1/rerank" else self._encode(received.body))
        if asyncio.iscoroutine(told):
            told = await told
        if told is None:
            await exchange.reset()
        else:
            await exchange.json(200, told)

    def _encode(self, body: dict[str, Any]) -> dict[str, Any]:
        data = [{"index": number, "embedding": encode(text)} for number, text in enumerate(body["input"])]
        return {"object": "list", "data": data[::-1], "model": self.model, "usage": {"prompt_tokens": 1}}

    def _rank(self, body: dict[str, Any]) -> dict[str, Any]:
        scores = [len(text) for text in body["documents"]]  # the longest passage is the best
        return {"results": [{"index": number, "relevance_score": score} for number, score in enumerate(scores)]}


@contextmanager
def serve_vectors(model: str, compute: Callable[[Sequence[str], bool], list[list[float]]]) -> Iterator[str]:
    """Serve a model of this process with `/v1/embeddings`; yield the base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            vectors = compute(body["input"], body.get("input_type") == "query")
            data = [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]
            answer = json.dumps({"data": data, "model": model}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
