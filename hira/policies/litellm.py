"""Models through litellm: a hundred providers, at the price of a heavy import. Names begin with `litellm/`."""

import asyncio
import os
import re
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hira.core.errors import AccessDenied, BadReply, EndpointError, TimedOut, UsageError
from hira.core.policy import Completion, Delta, Request, Watch
from hira.core.sanitize import without_userinfo
from hira.policies.chat import Accepted, body_of, check, learn_from_error, refusals_of
from hira.policies.failures import failure, gist, overflow
from hira.policies.reply import completion_of, parts_of
from hira.policies.waiting import USUAL

MALICIOUS = frozenset({"1.82.7", "1.82.8"})
# sent in place of a key, so that litellm does not look for one
NO_KEY = "none"
NEEDS_KEY = "set HIRA_API_KEY: keys from the environment are not sent to a base URL"
READS_KEYS = "litellm reads keys from the environment, such as ANTHROPIC_API_KEY; or set HIRA_API_KEY"

CLAUDE_CACHING: dict[str, Any] = {
    "cache_control_injection_points": [{"location": "message", "role": "system"}, {"location": "message", "index": -1}]
}
"""Claude caches a prompt only up to a mark: one after the tools and the system prompt, which other conversations share,
and one at the end, where the next turn continues. OpenAI and Gemini need no mark."""

_NO_KEY_SET = re.compile(r"\bmissing\b.{0,40}\bapi[ _]?key", re.IGNORECASE)
_KINDS = {"AuthenticationError": 401, "PermissionDeniedError": 403, "NotFoundError": 404, "RateLimitError": 429}


class LiteLLMPolicy:
    """A model that litellm knows, such as "anthropic/claude-opus-4-1".

    Asked without streaming, because litellm makes a stream that breaks off look like a whole reply. Without a key
    litellm takes the provider's from the environment, but never for a `base_url`: that may be anyone's. A call may take
    `seconds`.
    """

    def __init__(
        self, model: str, base_url: str = "", api_key: str = "", *, key_origin: str = "", seconds: float = USUAL.reply
    ) -> None:
        self._litellm = load()
        self._model, self.model = model, f"litellm/{model}"
        self._seconds = seconds
        self._refused = refusals_of(base_url, self.model)
        self._caching = CLAUDE_CACHING if "claude" in model.lower() else {}
        self._keyless = bool(base_url) and not api_key
        self._place = {"base_url": base_url or None, "api_key": api_key or (NO_KEY if base_url else None)}
        key = f"key from {key_origin}" if key_origin and api_key else "a key" if api_key else "litellm's own key"
        place = f" at {without_userinfo(base_url)}" if base_url else ""
        self.where = f"through litellm{place}, model {model!r}, {'no key' if self._keyless else key}"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        try:
            return await self._ask(request, watch)
        except EndpointError as error:
            error.where = self.where
            raise

    async def _ask(self, request: Request, watch: Watch | None) -> Completion:
        check(request, self._refused)
        body = body_of(request, self._model, accepted=Accepted())
        try:
            async with asyncio.timeout(self._seconds):
                reply = await self._litellm.acompletion(
                    **body, **self._place, **self._caching, num_retries=0, drop_params=True
                )
        except TimeoutError:
            raise TimedOut(f"no reply came within {self._seconds:g} seconds", retryable=True) from None
        except Exception as error:
            raise learn_from_error(self._failure(error), request, self._refused) from error
        parts = parts_of(reply.model_dump())
        parts.usage = {**(parts.usage or {}), "cost": self._cost(reply)}
        completion = completion_of(parts, request)
        if watch is not None and completion.text:
            watch(Delta(completion.text))
        return completion

    async def aclose(self) -> None:
        pass

    def _cost(self, reply: Any) -> float | None:
        """US dollars by litellm's table, None for a model that it has no price for."""
        try:
            cost = self._litellm.completion_cost(completion_response=reply, model=self._model)
        except Exception:  # noqa: BLE001 - no price is no fault; litellm raises plain Exception for it
            return None
        return float(cost) if cost else None

    def _failure(self, error: Exception) -> EndpointError:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        status = next((_KINDS[kind] for kind in kinds if kind in _KINDS), int(getattr(error, "status_code", 0) or 0))
        message = str(error).partition("\nTraceback")[0]
        what = gist(message.partition(": ")[2] or message)
        if _NO_KEY_SET.search(what):  # for some providers litellm calls it a failed connection
            kinds, status = set(), 401
        if "ContextWindowExceededError" in kinds:
            return overflow(what, str(error), None, status=status)
        if "BadRequestError" in kinds and "LLM Provider NOT provided" in str(error):
            return EndpointError(what, fix="name it litellm/PROVIDER/MODEL")
        if kinds & {"APIConnectionError", "Timeout", "ServiceUnavailableError", "InternalServerError"}:
            return EndpointError(what, status=status, retryable=True)
        if kinds & {"APIResponseValidationError", "JSONSchemaValidationError"}:
            return BadReply(what, status=status, retryable=True)
        response = getattr(error, "response", None)
        endpoint_error = failure(status or 500, what, getattr(response, "headers", None) or {})
        if isinstance(endpoint_error, AccessDenied):
            endpoint_error.fix = NEEDS_KEY if self._keyless else READS_KEYS
        return endpoint_error


def load() -> Any:
    """litellm, kept from fetching its price table and from printing advice. Two of its releases stole keys: refused."""
    try:
        release = version("litellm")
    except PackageNotFoundError:
        raise UsageError("models named litellm/… need litellm", fix="pip install 'hira[litellm]'") from None
    if release in MALICIOUS:
        fix = "uninstall it, change every key that was on this machine, then: pip install 'hira[litellm]'"
        raise UsageError(f"litellm {release} is a malicious release and is not loaded", fix=fix)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        litellm: Any = import_module("litellm")  # no types to import: it is an extra
    litellm.suppress_debug_info = True
    return litellm
