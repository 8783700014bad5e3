"""An encoder and a reranker: any server with `/v1/embeddings` and `/v1/rerank`, or a GGUF file of an encoder."""

import asyncio
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hira.core import tokens
from hira.core.errors import EndpointError, UsageError
from hira.core.sanitize import clean
from hira.policies.failures import read_list, retry_after
from hira.tools.documents.pieces import EncoderFailed

if TYPE_CHECKING:
    import httpx
    import numpy as np

    from hira.policies.llama.process import LlamaServer, ServerConfig

SECONDS = 60.0
"""The longest wait for an answer."""
BATCH = 32
"""Texts in one request."""
LONGEST, SHORTEST = 4_000, 250
"""Characters of a text that are sent. Encoders read about 512 tokens; what a server refuses as too long is halved, down
to `SHORTEST`."""
_TRIES = 3
_PAUSE = 1.0
_PATIENCE = 10.0
_BUSY = frozenset({429, 500, 502, 503, 504})
_REFUSED = frozenset({400, 413, 422})
_TOO_LONG = re.compile(r"too (?:large|long)|less than|at most|maximum|exceed", re.IGNORECASE)
_EXCERPT = 120

Spend = Callable[[int], None]
"""Charges these tokens to the budget of a run. Raises an error of the run if they are more than is left."""


class RequestRefused(EncoderFailed):
    """The server does not accept a field of the request, or one of its values."""


class TextTooLong(RequestRefused):
    """The server says that a text has more tokens than the model reads."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Vectors of length 1, a row for each text, from the model that the server names."""

    vectors: "np.ndarray"
    model: str


@dataclass(slots=True)
class Endpoint:
    """Requests to `/embeddings` or `/rerank` of one server. `what` names it in messages, and an answer may
    take this many `seconds`. With `config`, llama.cpp's server of a GGUF file is started with the first request, and
    ends with `aclose`."""

    what: str
    model: str
    base_url: str
    key: str = ""
    seconds: float = SECONDS
    client: "httpx.AsyncClient | None" = None
    config: "ServerConfig | None" = None
    _server: "LlamaServer | None" = None

    async def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer as JSON. A busy server is asked again, twice. Raises `EncoderFailed`."""
        for attempt in range(_TRIES):
            status, text, wait = await self._send(path, body)
            if status == HTTPStatus.OK:
                with suppress(ValueError):
                    if isinstance(answer := json.loads(text), dict):
                        return answer
                shown = _shorten(text, self.key)
                raise EncoderFailed(f"{self.name} answered with {shown} instead of JSON; check its address")
            too_long = status in {*_REFUSED, HTTPStatus.INTERNAL_SERVER_ERROR} and _TOO_LONG.search(text)
            if status not in _BUSY or too_long or wait > _PATIENCE or attempt == _TRIES - 1:
                break
            await asyncio.sleep(wait or _PAUSE * (attempt + 1))
        what = f"{self.name} answered with status {status}: {_shorten(text, self.key)}"
        if too_long:
            raise TextTooLong(what)
        raise (RequestRefused if status in _REFUSED else EncoderFailed)(what)

    @property
    def name(self) -> str:
        if self.config:
            return f"the {self.what} {self.config.alias!r} with llama.cpp on this machine"
        return f"the {self.what} {self.model!r} at {urlsplit(self.base_url).netloc.rpartition('@')[2]}"

    async def aclose(self) -> None:
        client, self.client = self.client, None
        if client:
            await client.aclose()
        server, self._server = self._server, None
        if server:
            from hira.policies.llama.process import release_server

            release_server(server)

    async def _send(self, path: str, body: Mapping[str, Any]) -> tuple[int, str, float]:
        import httpx

        from hira.policies.transport import transport_for

        if self.config:
            from hira.policies.llama.process import lease_server

            if self._server is None or self._server.ended:
                await self.aclose()
                self._server = lease_server(self.config)
            try:
                self.base_url, self.key = await self._server.base_url(), self._server.key
            except EndpointError as error:
                raise EncoderFailed(f"{self.name}: {error.what}") from None
        if self.client is None:
            self.client = httpx.AsyncClient(transport=transport_for(self.base_url), timeout=self.seconds)
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            async with asyncio.timeout(self.seconds):
                url = f"{self.base_url.rstrip('/')}{path}"
                response = await self.client.post(url, json={"model": self.model, **body}, headers=headers)
        except (TimeoutError, httpx.TimeoutException):
            raise EncoderFailed(f"{self.name} did not answer within {self.seconds:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EncoderFailed(f"{self.name} cannot be reached ({type(error).__name__})") from None
        return response.status_code, response.text, retry_after(response.headers) or 0.0


def _shorten(text: str, key: str) -> str:
    masked = text.replace(key, "…") if key else text
    return repr(" ".join(clean(masked).split())[:_EXCERPT]) if text.strip() else "nothing"


@dataclass(slots=True)
class Encoder:
    """Turns texts into vectors. Raises `UsageError` if numpy is not installed.

    Some models encode a question otherwise than a passage. The request says which it is (`input_type`), unless the
    server refuses the field.
    """

    endpoint: Endpoint
    _plain: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if find_spec("numpy") is None:
            raise UsageError("`embed` needs numpy", fix="pip install 'hira[embed]'")

    async def encode(self, texts: Sequence[str], *, question: bool = False, spend: Spend | None = None) -> Encoded:
        """Encode at most `BATCH` texts. Raises `EncoderFailed` if there is not one usable vector for each."""
        sent = [text[:LONGEST] for text in texts]
        if spend:
            spend(sum(map(tokens.count, sent)))
        answer = await self._ask(sent, question=question)
        return Encoded(self._read_vectors(answer, len(sent)), str(answer.get("model") or self.endpoint.model))

    async def _ask(self, sent: list[str], *, question: bool) -> Mapping[str, Any]:
        """Ask for the vectors; without the kind of text, or with shorter texts, of a server that refuses them."""
        kind = {} if self._plain else {"input_type": "query" if question else "document"}
        try:
            return await self.endpoint.post("/embeddings", {"input": sent, **kind})
        except TextTooLong:
            half = max(map(len, sent)) // 2
            if half < SHORTEST:
                raise
            return await self._ask([text[:half] for text in sent], question=question)
        except RequestRefused:
            if not kind:
                raise
            answer = await self.endpoint.post("/embeddings", {"input": sent})
            self._plain = True
            return answer

    def _read_vectors(self, answer: Mapping[str, Any], count: int) -> "np.ndarray":
        import numpy as np

        data = read_list(answer.get("data"))
        if len(data) != count:
            raise EncoderFailed(f"{self.endpoint.name} answered with {len(data)} vectors for {count} texts")
        try:
            if all("index" in entry for entry in data):
                data = sorted(data, key=lambda entry: entry["index"])
            vectors = np.asarray([entry["embedding"] for entry in data], dtype=np.float32)
        except (TypeError, ValueError, KeyError):
            raise EncoderFailed(f"{self.endpoint.name} did not answer with vectors of one length") from None
        if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
            raise EncoderFailed(f"{self.endpoint.name} did not answer with vectors of one length")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


@dataclass(slots=True)
class Reranker:
    """Orders passages by how well they fit a question."""

    endpoint: Endpoint

    async def order(self, question: str, texts: Sequence[str], *, spend: Spend | None = None) -> list[int]:
        """Return the numbers of the texts, best first; those that the server leaves out follow in their order."""
        sent = [text[:LONGEST] for text in texts]
        if spend:
            spend(sum(map(tokens.count, [question, *sent])))
        answer = await self.endpoint.post("/rerank", {"query": question, "documents": sent})
        try:
            scores = {int(entry["index"]): float(entry["relevance_score"]) for entry in answer["results"]}
        except (TypeError, ValueError, KeyError):
            raise EncoderFailed(f"{self.endpoint.name} answered without scores of passages") from None
        if not all(0 <= number < len(texts) and math.isfinite(score) for number, score in scores.items()):
            raise EncoderFailed(f"{self.endpoint.name} answered with scores of passages that it was not sent")
        best = sorted(scores, key=lambda number: -scores[number])
        return [*best, *(number for number in range(len(texts)) if number not in scores)]
