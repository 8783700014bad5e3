"""Failures of endpoints as hira's errors: what failed, where, and what to do. They never contain the key."""

import asyncio
import math
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from hira.core.errors import AccessDenied, BadReply, ContextOverflow, EndpointError, RateLimited, ToolsRefused
from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.policies.names import is_loopback

RETRYABLE = frozenset({408, 409, 425, 429, 499, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529, 530, 598, 599})
OVERFLOW = compile_lazily(
    r"context_length_exceeded|exceed_context_size|maximum context|context (?:length|window|size)|prompt is too long"
    r"|too many (?:input )?tokens|input (?:length|is too long)|longer than the (?:model|maximum)|model token limit"
    r"|token count.{0,20} exceeds|maximum prompt length|must have less than \d+ tokens|inputs\W{1,2}tokens \+",
    re.IGNORECASE,
)
_UNSEEN = "check that the server runs and that this is its port"
_TOO_LARGE = compile_lazily(r"request[ _]too[ _]large", re.IGNORECASE)
_NO_CREDIT = compile_lazily(
    r"credit balance|insufficient[ _](?:credits?|balance|funds|quota)|exceeded your current quota|out of credits"
    r"|billing[ _]hard[ _]limit",
    re.IGNORECASE,
)
_BAD_KEY = compile_lazily(
    r"api[ _-]?key (?:is )?(?:not valid|invalid|expired|missing)|(?:invalid|incorrect|missing|expired) api[ _-]?key",
    re.IGNORECASE,
)
_FILTERED = compile_lazily(
    r"content[ _](?:filter|management policy)|flagged as potentially|data_inspection_failed|PolicyViolation",
    re.IGNORECASE,
)
_WINDOW = compile_lazily(
    r"(?:maximum context (?:length|size)|context (?:length|window|size)) (?:is|of)\D{0,20}(\d[\d,_]*)"
    r"|context (?:size|length) \((\d[\d,_]*)|> ?(\d[\d,_]*) maximum|tokens allowed \((\d[\d,_]*)"
    r"|(?:model length of|prompt length is|limit:?|less than|must be <=|cannot exceed|\[1,|with) (\d[\d,_]*)",
    re.IGNORECASE,
)
_ASKED = compile_lazily(
    r"resulted in (\d[\d,_]*)|\((\d[\d,_]*) in the messages|(?:has|contains) (?:at least )?(\d[\d,_]*) input"
    r"|request \((\d[\d,_]*) tokens|too long: (\d[\d,_]*)|token count \((\d[\d,_]*)"
    r"|requested (\d[\d,_]*)\b(?! tokens \()"
    r"|given: (\d[\d,_]*)|contains (\d[\d,_]*) tokens|received (\d[\d,_]*)|(?:input|length) \(?(\d[\d,_]*)"
    r"(?: tokens)?\)",
    re.IGNORECASE,
)
_PAUSE = compile_lazily(
    r"(?:try again|retry) (?:in|after) (?:(?P<h>\d+) ?h)?(?:(?P<m>\d+) ?m(?!s))?(?:(?P<s>\d+(?:\.\d+)?) ?s)?"
    r"(?:(?P<ms>\d+(?:\.\d+)?) ?ms)?|retryDelay\W{1,6}(?P<delay>\d+(?:\.\d+)?)s",
    re.IGNORECASE,
)
_TOOL = r"(?:tools?|tool[ _-]?(?:use|using|calls?|calling|choice)|function[ _-]?call(?:s|ing)?)\b"
_NO = r"\b(?:not|never|no longer|isn't|aren't|unsupported)\b"
_NO_TOOLS = compile_lazily(
    rf"enable-auto-tool-choice|tool-call-parser|--jinja"
    rf"|\b{_TOOL}.{{0,40}}(?:{_NO}.{{0,20}}(?:support|enabled|available|allowed|permitted|implemented)|\bunsupported\b)"
    rf"|(?:\bnot|n't|found that) (?:currently |yet )?support(?:ed)?\b.{{0,40}}\b{_TOOL}"
    r"|(?:unsupported|unrecogni[sz]ed|unknown|extra|unexpected)\b.{0,60}[\s'\"`.:\[]tools\b",
    re.IGNORECASE,
)
_WELL = frozenset({"0", "200"})
_SAID = ("error", "errors", "message", "detail", "msg", "error_message", "status_msg", "base_resp")
_CODES = {
    "insufficient_quota": 402, "rate_limit": 429, "overloaded": 529, "server_error": 500, "timeout": 504,
    "context": 400, "auth": 401, "api_key": 401, "permission": 403, "not_found": 404, "unavailable": 503,
}  # fmt: skip
_PHRASES = {
    "rate limit": 429, "too many requests": 429, "throttl": 429, "overloaded": 529, "timed out": 504,
    "not found": 404, "does not exist": 404, "unavailable": 503,
}  # fmt: skip
"""The meaning of an error without a number, by a word in its codes or in its message."""
_TITLE = compile_lazily(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = compile_lazily(r"<(?:script|style).*?</(?:script|style)>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_LONGEST_PAUSE = 366 * 86400.0
_TRIES_HERE = 2
"""On this machine nothing is in between: if nobody listens, the server is not started, or is just starting."""


class EmptyReply(BadReply):
    """A reply without text and without calls. `completion` is the reply, for callers that can use it."""

    def __init__(self, completion: Completion) -> None:
        super().__init__("the model's reply is empty", retryable=True)
        self.completion = completion


def gist(text: str, limit: int = 200) -> str:
    """One short line of what a server said; of a page of HTML its title or its words."""
    if "<html" in text[:2000].lower() or "<!doctype" in text[:2000].lower():
        title = _TITLE.search(text)
        text = title[1] if title else _TAG.sub(" ", text)
    line = " ".join("".join(char if char.isprintable() else " " for char in text[:5000]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def read_string(value: Any) -> str:
    """A field that should be a string; empty if it is something else."""
    return value if isinstance(value, str) else ""


def read_dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def read_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def message_in(body: Any) -> str:
    if isinstance(body, Mapping):
        for name in _SAID:
            if body.get(name) and body[name] is not True:
                return message_in(body[name])
        return str(dict(body))
    if isinstance(body, list) and body:
        first = body[0]
        field = ".".join(map(str, first.get("loc", ()))) if isinstance(first, Mapping) else ""
        return f"{field}: {message_in(first)}" if field else message_in(first)
    return "" if body is None else str(body)


def codes_in(body: Any) -> str:
    """Type, code and parameter of an error object, as one searchable text."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return ""
    return " ".join(str(error[name]) for name in ("type", "code", "param") if error.get(name) is not None)


def failure(
    status: int, body: Any, headers: Mapping[str, str], *, where: str = "", keyed: bool = True
) -> EndpointError:
    """The error for a response with this status; `body` is JSON where it was JSON, else the text."""
    message, codes = gist(message_in(body)), codes_in(body)
    what = f"the endpoint answered {status}" + (f": {message}" if message else "")
    if request := headers.get("x-request-id"):
        what += f" (request {request})"
    more: dict[str, Any] = {"where": where, "status": status}
    everything = f"{codes} {message}"
    too_large = status in {413, 429} and _TOO_LARGE.search(everything)  # waiting does not help
    if too_large or (status in {400, 413, 422, 500} and OVERFLOW.search(everything)):
        return overflow(what, message_in(body), body, **more)
    pause = _pause_in(str(body)) if status == 429 else None
    # Google writes the same about a limit per minute, with the time at which it ends
    if status == 402 or (status in {400, 403, 429} and not pause and _NO_CREDIT.search(everything)):
        fix = "the account of this key has no credit left: add some, or change the key"
        return RateLimited(what, fix=fix, **more)
    if status in {401, 403} or (status == 400 and _BAD_KEY.search(everything)):
        missing = "this endpoint needs a key: set OPENAI_API_KEY, or api_key="
        fix = "check that the key is right and may use this model" if keyed else missing
        return AccessDenied(what, fix=fix, **more)
    if status == 429:
        wait = retry_after(headers) or pause
        return RateLimited(what, fix="wait, or send fewer requests at once", retryable=True, retry_after=wait, **more)
    is_redirect = 300 <= status < 400
    if _NO_TOOLS.search(everything) and not is_redirect:
        return tools_refused(what, **more)
    fix, wait = _way_out(status, everything), retry_after(headers)
    if is_redirect:
        what = f"the endpoint redirects to {gist(headers.get('location', 'nowhere'))}, which is not followed"
        fix, wait = "set the base URL to the new address", None
    return EndpointError(what, fix=fix, retryable=status in RETRYABLE, retry_after=wait, **more)


def tools_refused(what: str, *, where: str = "", status: int = 0) -> ToolsRefused:
    fix = "run with HIRA_DIALECT=tags, or start vLLM with --enable-auto-tool-choice --tool-call-parser PARSER"
    return ToolsRefused(what, where=where, fix=fix, status=status)


def _way_out(status: int, message: str) -> str:
    if _FILTERED.search(message):
        return "rephrase the question, or use another model for this role"
    if status == 501:
        return "this server does not serve a model there: check the base URL"
    if status >= 500 or status in RETRYABLE:
        return "the server has an error: try again later" if status >= 500 else "try again later"
    if status == 407:
        return "the proxy needs a name and a password: set HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT"
    if status in {404, 405, 410}:
        return "check the base URL and the name of the model"
    return "hira doctor --probe tests what the endpoint can do"


def _pause_in(message: str) -> float | None:
    """The pause that the text of a refusal asks for, in seconds; None if it names no time."""
    match = _PAUSE.search(message)
    if match is None:
        return None
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "delay": 1.0}
    return sum(float(match[name] or 0) * unit for name, unit in units.items()) or None


def overflow(told: str, message: str, body: Any, **more: Any) -> ContextOverflow:
    """The error for a prompt that is too long, with the window's size where a field or the message names it."""
    error = ContextOverflow(told, fix="use a model with a longer context window, or send a shorter request", **more)
    named = read_dict(body.get("error", body) if isinstance(body, Mapping) else {})  # llama.cpp names both
    error.window = _read_size(named.get("n_ctx"), _WINDOW, message)
    error.asked = _read_size(named.get("n_prompt_tokens"), _ASKED, message)
    return error


def _read_size(named: Any, pattern: "re.Pattern[str]", message: str) -> int:
    match = pattern.search(message)
    return number(str(named) if named is not None else next(filter(None, match.groups())) if match else "")


def number(written: str) -> int:
    digits = written.replace(",", "").replace("_", "")
    return int(digits) if digits.isdecimal() else 0


def failure_in(reply: Any) -> EndpointError | None:
    """Return the error that was sent as a reply, None for a proper reply."""
    if isinstance(reply, list) and len(reply) == 1:  # Google's
        reply = reply[0]
    if not isinstance(reply, Mapping):
        return None
    choices = reply.get("choices")
    if choices:
        first = choices[0] if isinstance(choices, list) else None
        told = [said for said in (first, reply) if isinstance(said, Mapping) and isinstance(said.get("error"), Mapping)]
        if not told or not told[0]["error"]:
            return None
        reply = told[0]  # of a gateway whose provider failed
    elif not _tells_of_error(reply):
        return None
    codes, message = codes_in(reply), gist(message_in(reply))
    words = ((codes.lower(), _CODES), (message.lower(), _PHRASES))
    status = next((status for text, table in words for word, status in table.items() if word in text), 0)
    if named := re.search(r"\b([45]\d\d)\b", codes):
        status = int(named[1])
    elif OVERFLOW.search(message):
        status = 400
    if status:
        return failure(status, reply, {})
    what = f"the endpoint sent an error: {message}" + (f" ({codes})" if codes else "")
    return BadReply(what, fix="try again later, or read the server's log", retryable=True)


def _tells_of_error(reply: Mapping[str, Any]) -> bool:
    """Return whether a reply without choices reports an error, in one of the servers' ways."""
    if reply.get("object") == "error" or reply.get("success") is False or reply.get("status") == "error":
        return True
    codes = [reply.get("code"), read_dict(reply.get("base_resp")).get("status_code")]
    numbers = {str(code) for code in codes if code is not None}
    if numbers and numbers <= _WELL:  # some vendors report success in every piece of a stream
        return bool(reply.get("error"))
    if "message" in reply and "code" in reply:
        return True
    return any(reply.get(name) for name in _SAID if name != "message") or "detail" in reply


def no_connection(error: BaseException, *, base_url: str, where: str = "") -> EndpointError:
    """The error for a request that never got a response."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes and not isinstance(cause, asyncio.CancelledError):
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    message = gist(str(causes[-1]) or type(causes[-1]).__name__, 120)
    if "<class" in message or "h11" in message:  # a message about h11's internal states
        message = "the server closed the connection before it had answered"
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        fix = "for your own certificate, name its authority in SSL_CERT_FILE"
        return EndpointError(f"the endpoint's certificate is not trusted: {message}", where=where, fix=fix)
    texts = " ".join(str(cause) for cause in causes)
    if any(isinstance(cause, ssl.SSLError) for cause in causes) or "SSL handshake" in texts:
        fix = f"if this port uses plain HTTP, write {base_url.replace('https://', 'http://', 1)}"
        return EndpointError(f"no TLS connection: {message}", where=where, fix=fix)
    if any("getaddrinfo" in str(cause) or type(cause).__name__ == "gaierror" for cause in causes):
        fix = "check the host's name in the base URL, and the network"
        return EndpointError(f"the endpoint's host is not known: {message}", where=where, fix=fix, retryable=True)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes) or "onnect call failed" in texts:
        what = "nothing listens there: the connection was refused"
        refused = EndpointError(what, where=where, fix=_UNSEEN, retryable=True)
        refused.tries = _TRIES_HERE if is_loopback(urlsplit(base_url).hostname or "") else 0
        return refused
    fix = _UNSEEN if isinstance(causes[-1], TimeoutError) else ""
    return EndpointError(f"the connection failed: {message}", where=where, fix=fix, retryable=True)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The pause that the server asks for, in seconds; None if it names none, or a time in the past."""
    millis = _finite(headers.get("retry-after-ms", ""))
    if millis is not None:
        return min(max(0.0, millis / 1000), _LONGEST_PAUSE)
    header = headers.get("retry-after", "")
    seconds = _finite(header)
    if seconds is None:
        try:
            until = parsedate_to_datetime(header)
        except (ValueError, OverflowError):
            return None
        seconds = ((until if until.tzinfo else until.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    return min(seconds, _LONGEST_PAUSE) if seconds > 0 else None


def _finite(text: str) -> float | None:
    """Parse the number of a header; infinite and invalid ones mean nothing."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
