"""Text from tools is data: it can form no token of any dialect or chat template, and hides nothing.

There are two strengths. `clean` is for the results of tools: `Prompt.fill` passes every value through it unless hira
wrote it (`Filled`), and so do the dialects with every result. `sanitize` is for the user's words and for what roles of
this run wrote about them: they may be about code or markup, so only tokens that act anywhere in a text are broken.

Marks are broken by look-alikes (`‹` for `<`), so the text stays readable. Keys and passwords are kept out of everything
that is shown, sent and recorded (`redact`).
"""

import json
import re
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from hira.core.messages import Filled
from hira.core.patterns import compile_lazily

LONGEST_TITLE = 200
_NUMBER = compile_lazily(r"&#0*(\d{8})\d*")
_ESCAPES = compile_lazily(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b.?")
# controls, zero-width characters, bidirectional overrides, byte-order marks, fillers, variation selectors, tags; and
# lone surrogates, which cannot be sent
_INVISIBLE = compile_lazily(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_HALVES = compile_lazily("[\ud800-\udfff]")
# scripts and emoji need these between their characters; elsewhere, and in runs, they only hide something
_JOINERS = compile_lazily("[\u200c\u200d\ufe0e\ufe0f]+")
_NAMES = r"""think thinking answer tool_calls? tool_responses? tool_results? tool_name tool function_calls?
function_results? function invoke parameters? parameter use_mcp_tool server_name arguments memory report plan user_input
information sources? documents? results? system user assistant (?:begin|end|start)_\w+ \w+_(?:id|begin|start|end|token)
bos eos pad unk sop s eo[adhp] response observation (?:unused|reserved|special|extra_id|tokens_unused)_?\d+""".split()
# characters that a tokenizer may fold to `<`, `>`, `|`, `[`, `]` and `\` count as these
_L, _R, _BAR = "<＜﹤", ">＞﹥", "|｜"
_PIPED = compile_lazily(rf"[{_L}]\s*(?:/\s*)?[{_BAR}][^{_L}{_R}\n]{{0,80}}?[{_BAR}]\s*[{_R}]")
_NAMED = compile_lazily(
    rf"[{_L}]\s*(?:/\s*)?(?:[{_BAR}]\s*)?(?:\w{{1,20}}:)?(?:{'|'.join(_NAMES)})(?:[\s=/{_BAR}][^{_L}{_R}]*)?[{_R}]",
    re.IGNORECASE,
)
_HALF = compile_lazily(
    rf"[{_L}](?=\s*(?:/\s*)?(?:[{_BAR}]|(?:begin|end|start)_\w))|(?<=[{_BAR}])\s*[{_R}]", re.IGNORECASE
)
_BRACKETED = compile_lazily(
    r"[\[［]\s*((?:/\s*)?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|AVAILABLE_TOOLS|SYS"
    r"|(?-i:THINK|ARGS|CALL_ID|IMG|gMASK|sMASK)))\s*[\]］]"
    r"|[<＜]{2}\s*((?:/\s*)?SYS)\s*[>＞]{2}|[\]\[](~!?b|e~)[\[\]]",
    re.IGNORECASE,
)
_QUOTE, _COLON = "[\"'＂]", "\\s*[:：]\\s*"
_NAME_KEY = "name|tool|(?:tool|function)_name|function|action"
_ARGUMENTS_KEY = rf"{_QUOTE}(arguments|parameters|args|(?:tool_|action_)?input|kwargs){_QUOTE}"
_JSON_CALL = compile_lazily(
    rf"""({_QUOTE}(?:{_NAME_KEY}){_QUOTE}{_COLON}{_QUOTE}[^"'＂\\\n]{{1,80}}{_QUOTE}\s*,\s*){_ARGUMENTS_KEY}(?={_COLON})"""
    rf"|(\{{\s*){_ARGUMENTS_KEY}(?={_COLON}\{{)",
    re.IGNORECASE,
)
_BOXED = compile_lazily(r"(?<![\\＼﹨])[\\＼﹨]++(?=boxed\b|fbox\b)")
_LIVE = compile_lazily(
    rf"[{_L}][{_BAR}]/?[^\s{_L}{_R}{_BAR}]{{1,60}}[{_BAR}][{_R}]|[{_L}]/?(?=｜)|(?<=｜)[{_R}]"
    rf"|[{_L}]\s*(?:begin|end)_\w+_(?:call|subtask|link|query|result)\s*[{_R}]"
    rf"|[{_L}]\s*(?:/\s*)?(?:use_mcp_tool|tool_response)\s*[{_R}]|[{_L}](?:start|end|begin)_of_\w+[{_R}]"
    rf"|(?-i:[{_L}]/?(?:s|bos|eos|pad|unk|sop|eot_id|im_start|im_end|think|thinking|tool_calls?|tool_responses?)[{_R}])",
    re.IGNORECASE,
)
_LIVE_BRACKETED = compile_lazily(
    r"\[(/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|AVAILABLE_TOOLS|THINK|[gs]MASK))\]|<<(/?SYS)>>"
    r"|[\]\[](~!?b|e~)[\[\]]"
)
# in an ASCII text each of the patterns above needs one of these characters: most texts have none
_MARKED = re.compile(r"""[\x00-\x08\x0b-\x1f\x7f<>|\[\]\\"']""")
_BROKEN = str.maketrans(_L + _R, "‹‹‹›››")

# Text that is certainly code in Markdown: a fence that begins a line, a span within a line but not in a table row.
_CODE = compile_lazily(
    r"^(`{3,})[^`\n]*\n.*?^ {0,3}\1`*[ \t]*$|(?<![\\`])(`+)(?!`)[^|\n]*?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE
)
_KEPT = compile_lazily("\x00(\\d+)\x00")
_TITLE = r"""(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?\s*"""
_TARGET = rf"\(\s*<?((?:[^\s()<>]|\([^()]*\))*)>?{_TITLE}\)"
_IMAGE = compile_lazily(rf"!\[([^\[\]]*)\]{_TARGET}")
_LINK = compile_lazily(rf"\[([^\[\]]*)\]{_TARGET}")
# the first characters of a target show where it leads; reading all of it from every bracket takes quadratic time
_AHEAD = r"\s*<?([^\s<>]{0,2000})"
_LINKING = compile_lazily(rf"\](?=\({_AHEAD})")
_DEFINED = compile_lazily(rf"\[([^\[\]\n]{{0,1000}})\]:(?={_AHEAD})")
_DEFINING = compile_lazily(rf"\]:(?={_AHEAD})")
_BEGUN = r"(?:[a-z][a-z0-9+.-]{1,31}:(?!:)|[^\s<>‹@:/]+@)"
_AUTOLINK = compile_lazily(rf"<({_BEGUN}[^\s<>]*)>", re.IGNORECASE)
_AUTOLINKING = compile_lazily(rf"<(?={_BEGUN})", re.IGNORECASE)
_OUTWARD = compile_lazily(r"//|www\.|[a-z][a-z0-9+.-]*:.", re.IGNORECASE)
_BEGINNING, _ROUNDS = 300, 8
_HIDING = compile_lazily(r"[\x00-\x20&\\]")
_ID = compile_lazily(r"\s*s\d+(?:\s*[,;]\s*s\d+)*\s*")
_SWALLOWING = "iframe|math|noembed|noframes|noscript|plaintext|script|select|style|svg|template|textarea|title|xmp"
_LOADING = "|".join(
    """a applet area audio base body button details embed form frame frameset html image img input link meta object
    picture source track video""".split()
)
_ACTING = r"(?:on\w++|(?=\w*?src)\w++|\w*href|style|\w*action|background|poster|data|ping|is)"
_HTML = compile_lazily(
    rf"<(?=[!?]|/?(?:{_SWALLOWING})(?:[\s/>]|\Z)|(?:{_LOADING})[\s/][^<>]*="
    rf"""|[a-z][\w:.-]*[\s/](?:[^<>"']|"[^"<]*"|'[^'<]*')*?(?:\b{_ACTING}\s*=|"[^"<]*(?:<|\Z)|'[^'<]*(?:<|\Z)))"""
    r"([^<>]*)(>?)",
    re.IGNORECASE,
)
# the rest of a tag around a broken one, but not a bare tag or type
_OPEN = compile_lazily(r"<(?=[a-z])(?![a-z][\w:.-]*\s*/?>)", re.IGNORECASE)
# a line that may begin a block of HTML, in which backticks mean nothing
_BLOCK = compile_lazily(r"^(?:[^\S\n]|[>*+\d.)-])*+<[a-z/!?]", re.IGNORECASE | re.MULTILINE)


def clip_title(title: str) -> str:
    """Return a title on one line, of at most `LONGEST_TITLE` characters, because prompts and lists show it, and a page,
    a file or a server may choose any title."""
    flat = " ".join(title[: 4 * LONGEST_TITLE].split())
    return flat if len(flat) <= LONGEST_TITLE else f"{flat[: LONGEST_TITLE - 1].rstrip()}…"


def is_text(text: str) -> bool:
    """Return whether a text can be sent and stored: it has no lone surrogate, as file names that are not UTF-8 have."""
    return not _HALVES.search(text)


def printable(text: str) -> str:
    """Return the text with a replacement character for each lone surrogate, and so for each byte that was not UTF-8."""
    return _HALVES.sub("\ufffd", text)


def clean(text: str) -> str:
    """Return the text of a tool without escapes and invisible characters, every control token broken. Idempotent."""
    if _is_plain(text):
        return text
    for end in ("\r\n", "\r", "\u2028", "\u2029"):
        text = text.replace(end, "\n")
    text = _JOINERS.sub(_keep_joiner, _INVISIBLE.sub("", _ESCAPES.sub("", text)))
    for pattern in (_PIPED, _NAMED, _HALF):
        text = pattern.sub(_look_alike, text)
    text = _JSON_CALL.sub(r"\1\3“\2\4”", _BRACKETED.sub(_break_brackets, text))
    return _BOXED.sub("", text)


def sanitize(text: str) -> Filled:
    """Make words of the user or of a role of this run ready for a prompt: break only tokens that act anywhere.

    Those are the tokens of the dialects and of chat templates. Tags, types and LaTeX stay, because no calls or answers
    are parsed from such a text. Idempotent.
    """
    if _is_plain(text):
        return Filled(text)
    return Filled(_LIVE_BRACKETED.sub(_break_brackets, _LIVE.sub(_look_alike, text)))


def _is_plain(text: str) -> bool:
    return text.isascii() and not _MARKED.search(text)


def _keep_joiner(found: re.Match[str]) -> str:
    """Return the joiner if it joins two non-ASCII characters or selects a variant of the one before it, else ""."""
    text, run = found.string, found[0]
    before, after = text[max(0, found.start() - 1) : found.start()], text[found.end() : found.end() + 1]
    if not before or before.isascii():
        return run if after == "\u20e3" and run == "\ufe0f" else ""
    kept = run in ("\ufe0e", "\ufe0f")
    joins = run in ("\u200c", "\u200d", "\ufe0f\u200d") and after and not after.isascii() and after not in "＼﹨"
    return run if kept or joins else ""


def _look_alike(token: re.Match[str]) -> str:
    return token[0].translate(_BROKEN)


def _break_brackets(token: re.Match[str]) -> str:
    return f"‹{token[1] or token[2] or token[3]}›"


def presentable(text: str, read: Container[str]) -> str:
    """Return a model's answer without anything that loads or leads elsewhere when it is rendered as Markdown or HTML.

    Of a picture, only its words stay; the same holds for a link to an address that was not `read`. HTML that loads,
    runs or hides something is broken by look-alikes. Code between backticks stays as it is. Idempotent: what is broken
    or left out may bring to light a mark that the text on both sides of it makes.
    """
    for _ in range(_ROUNDS):
        text, before = _present(text, read), text
        if text == before:
            break
    return text


def _present(text: str, read: Container[str]) -> str:
    code: list[str] = []

    def put_by(match: re.Match[str]) -> str:
        code.append(match[0])
        return f"\x00{len(code) - 1}\x00"

    def is_kept(target: str) -> bool:
        return target in read or not _leads_out(target)

    def write_words(link: re.Match[str]) -> str:
        if is_kept(link[2]):
            return link[0]
        return f"[{link[1]}]" if _ID.fullmatch(link[1]) else link[1]

    text = _CODE.sub(put_by, text.replace("\x00", ""))
    text = _LINK.sub(write_words, _IMAGE.sub(r"\1", text))
    text = _LINKING.sub(lambda end: end[0] if is_kept(end[1].rstrip(")")) else "] ", text)
    text = _DEFINED.sub(lambda name: name[0] if is_kept(name[2]) else f"‹{name[1]}›:", text)
    text = _DEFINING.sub(lambda end: end[0] if is_kept(end[1]) else "›:", text)
    text = _AUTOLINK.sub(lambda link: link[1] if link[1] in read else f"‹{link[1]}›", text)
    text = _AUTOLINKING.sub("‹", text)
    if _BLOCK.search(text):
        code = [_break_tags(one) for one in code]
    return _KEPT.sub(lambda place: code[int(place[1])], _break_tags(text))


def _break_tags(text: str) -> str:
    """Break every HTML tag that loads, runs or hides something."""
    broken = _HTML.sub(lambda tag: f"‹{tag[1]}{'›' if tag[2] else ''}", text)
    return broken if broken == text else _OPEN.sub("‹", broken)


def shorten_references(text: str) -> str:
    """Cut HTML's numeric references to eight digits, which name no character, because Python raises when it converts a
    number of thousands of digits."""
    return _NUMBER.sub(r"&#\1", text)


def unescape(text: str) -> str:
    """`html.unescape` for any text."""
    import html  # its table of names is large, and few texts need it

    return html.unescape(shorten_references(text))


def _leads_out(target: str) -> bool:
    """Return whether a link's target is an address, as a browser reads it, rather than a place in the same text.

    The beginning shows it; a longer target that is not plain hides something.
    """
    if not _HIDING.search(target):
        return bool(_OUTWARD.match(target[:_BEGINNING]))
    if len(target) > _BEGINNING:
        return True
    plain = unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", target))
    return bool(_OUTWARD.match(re.sub(r"[\x00-\x20]", "", plain).replace("\\", "/")))


MASK = "[secret]"
_USERINFO = re.compile(r"(?<=://)[^/?#\s]*@(?!https?://)")


def redact(value: Any, secrets: frozenset[str]) -> Any:
    """Mask every secret in the texts of a JSON value, also in the form that URLs or JSON give it.

    Returns the value itself if it holds none.
    """
    if not secrets:
        return value
    if isinstance(value, str):
        return _mask(value, _forms(secrets))
    if isinstance(value, Mapping):
        masked = {redact(key, secrets): redact(one, secrets) for key, one in value.items()}
        return value if masked == value else masked
    if isinstance(value, list | tuple):
        items = [redact(one, secrets) for one in value]
        return value if items == list(value) else items
    return value


def _mask(text: str, forms: Iterable[str]) -> str:
    for form in forms:
        if form in text:
            text = text.replace(form, MASK)
    return text


@lru_cache(maxsize=8)
def _forms(secrets: frozenset[str]) -> tuple[str, ...]:
    """Return the forms that the secrets may take, longest first; cached, because every text is searched for them."""
    forms = {form for one in secrets for form in (one, quote(one, safe=""), json.dumps(one)[1:-1])}
    return tuple(sorted(forms, key=len, reverse=True))


def without_userinfo(text: str) -> str:
    """Remove users and passwords from the URLs of a text.

    >>> without_userinfo("https://me:hidden@example.org/v1")
    'https://example.org/v1'
    """
    return _USERINFO.sub("", text)


def passwords_in(text: str) -> set[str]:
    """Return the passwords of the text's URLs, as written and unquoted; without a password the user counts as one."""
    parts = (found[0][:-1].partition(":") for found in _USERINFO.finditer(text))
    found = {password or user for user, _, password in parts} - {""}
    return found | {unquote(one) for one in found}
