"""Text from tools is data: it can form no token of any dialect or chat template, and hides nothing.

There are two strengths. `clean` is for the results of tools: `Prompt.fill` passes every value through it unless hira
wrote it (`Filled`), and so do the dialects with every result. `sanitize` is for the user's words and for what roles of
this run wrote about them: they may be about code or markup, so only tokens that act anywhere in a text are broken.

Marks are broken by look-alikes (`‹` for `<`), so the text stays readable. Keys and passwords are kept out of everything
that is shown, sent and recorded (`redact`).
"""

import re
from collections.abc import Container, Mapping
from typing import Any
from urllib.parse import unquote

from hira.core.messages import Filled
from hira.core.patterns import ESCAPES, INVISIBLE, JOINERS, compile_lazily

LONGEST_TITLE = 200
_NUMBER = compile_lazily(r"&#0*(\d{8})\d*")
_ESCAPES = compile_lazily(ESCAPES)
_INVISIBLE = compile_lazily(INVISIBLE)
_JOINERS = compile_lazily(rf"{JOINERS}+")
_HALVES = compile_lazily("[\ud800-\udfff]")
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

_MARK_OF_HEAD = compile_lazily(r"\[s\d+\] ")
_MARK = compile_lazily(r"[\[［【]\s*+(/?\s*+[sｓ]\s*+\d+(?:\s*+[,;]\s*+[sｓ]?\d+)*+)\s*+[\]］】]", re.IGNORECASE)
_QUOTES = compile_lazily('["＂“”„‟]{3,}')

# Markdown and HTML of answers. Possessive quantifiers (`*+`) keep every pattern linear.
_KEPT = compile_lazily("\x00(\\d+)\x00")
_TARGET = r"""\(\s*+<?+((?:[^\s()<>]|\([^\s()<>]*\))*+)>?+(?:\s++(?:"[^"]*"|'[^']*'|\([^()]*\)))?+\s*+\)"""
_IMAGE = compile_lazily(rf"!\[([^\[\]]*)\]{_TARGET}")
_LINK = compile_lazily(rf"\[([^\[\]]*)\]{_TARGET}")
# text after brackets that is not a link, such as the arguments of a call in prose
_LINKING = compile_lazily(r"\]\((?!(?!\s*+www\.)[\w\s.,;=+*#%-]*+\))", re.IGNORECASE)
_DEFINED = compile_lazily(r"\[([^\[\]\n]{0,1000})\]:(?=\s*+<?+([^\s<>\[\]]*+)(.?))")
_DEFINING = compile_lazily(r"\]:(?=\s*+<?+([^\s<>\[\]]*+)(.?))")
_AUTOLINK = compile_lazily(r"<((?:[a-z][a-z0-9+.-]{1,31}:(?!:)|[^\s<>@:/]++@)[^\s<>]*+)(>?)", re.IGNORECASE)
_OUTWARD = compile_lazily(r"//|www\.|[a-z][a-z0-9+.-]*:.", re.IGNORECASE)
_ID = compile_lazily(r"\s*s\d+(?:\s*[,;]\s*s\d+)*\s*")
_TAG = compile_lazily(r"<[a-z/!?][^>]*+>?", re.IGNORECASE)
# a tag that acts or hides what follows; an attribute or a quotation; an address that takes in a piece of code
_ACTING = compile_lazily(
    r"""<[!?]|</(?![a-z])|["'=]|<[^\s<>\x00]*+\x00"""
    r"|</?(?:audio|canvas|datalist|dialog|iframe|math|noembed|noframes|noscript|plaintext|script|select|style|svg"
    r"|template|textarea|title|video|xmp)(?![\w:.-])",
    re.IGNORECASE,
)
_MARKUP = compile_lazily(r"<(?=[a-z/!?])|!(?=\[)|\](?=[(:])", re.IGNORECASE)
_BROKEN_MARKUP = {"<": "‹", "!": "! ", "]": "›"}
_ROUNDS = 4


def clip_title(title: str) -> str:
    """Return a title on one line, of at most `LONGEST_TITLE` characters: a page, a file or a server may choose any."""
    flat = " ".join(title[: 4 * LONGEST_TITLE].split())
    return flat if len(flat) <= LONGEST_TITLE else f"{flat[: LONGEST_TITLE - 1].rstrip()}…"


def flatten_name(name: str) -> str:
    """Return the name of a file on one line and without control tokens, because anyone may have chosen it."""
    return " ".join(clean(printable(name)).split())


def is_text(text: str) -> bool:
    """Return whether a text can be sent and stored: it has no lone surrogate, as file names that are not UTF-8 have."""
    return not _HALVES.search(text)


def printable(text: str) -> str:
    """Return the text with a replacement character for each lone surrogate, and so for each byte that was not UTF-8."""
    return _HALVES.sub("\ufffd", text)


def clean(text: str) -> str:
    """Return the text of a tool without escapes and invisible characters, every control token broken. Idempotent."""
    if text.isascii() and not _MARKED.search(text):
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
    if text.isascii() and not _MARKED.search(text):
        return Filled(text)
    return Filled(_LIVE_BRACKETED.sub(_break_brackets, _LIVE.sub(_look_alike, text)))


def fence(head: str, text: str) -> Filled:
    """Return a text between triple quotes below its head, `[s1] A title`. Nothing in the text closes the quotes or
    opens those of another source, and the head stays on one line.
    """
    mark = _MARK_OF_HEAD.match(head)
    kept = mark[0] if mark else ""
    title = " ".join(_break_fences(head[len(kept) :]).split())
    return Filled(f'{kept}{title}\n"""\n{_break_fences(text)}\n"""')


def _break_fences(text: str) -> str:
    """Clean the text, and break ids in brackets and runs of quotes by look-alikes."""
    return _QUOTES.sub(lambda run: "'" * len(run[0]), _MARK.sub(r"(\1)", clean(text)))


def _keep_joiner(match: re.Match[str]) -> str:
    """Return the joiner if it joins two non-ASCII characters or selects a variant of the one before it, else ""."""
    text, run = match.string, match[0]
    before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
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
    runs or hides something is broken by look-alikes. Code stays as it is if every renderer takes it for code.
    Idempotent: what is broken may change what the rest means, so the result is read again until nothing changes.
    """
    text = text.replace("\x00", "")
    for _ in range(_ROUNDS):
        before, text = text, _break_outside_code(text, read)
        if text == before:
            return text
    return _MARKUP.sub(lambda mark: _BROKEN_MARKUP[mark[0]], text)


def _break_outside_code(text: str, read: Container[str]) -> str:
    if _break_markup(text, read, []) == text:
        return text
    from hira.core.markdown_code import find_code  # few answers have markup

    kept: list[str] = []
    parts: list[str] = []
    end = 0
    for begin, stop in find_code(text):
        parts += text[end:begin], _put_by(text[begin:stop], kept)
        end = stop
    return _KEPT.sub(lambda place: kept[int(place[1])], _break_markup("".join([*parts, text[end:]]), read, kept))


def _put_by(text: str, kept: list[str]) -> str:
    """Return the mark that replaces a text which stays as it is."""
    kept.append(text)
    return f"\x00{len(kept) - 1}\x00"


def _break_markup(text: str, read: Container[str], kept: list[str]) -> str:
    """Break what loads or leads elsewhere; code is kept aside in `kept`, and so are the targets of links that stay."""
    marked = bool(kept)

    def is_kept(target: str, after: str = "") -> bool:
        if "\x00" in target or after in ("[", "]"):
            return False
        # as a browser reads it; anything else is a place in the same text
        plain = unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", target))
        return target in read or not _OUTWARD.match(re.sub(r"[\x00-\x20]", "", plain).replace("\\", "/"))

    def write_link(link: re.Match[str]) -> str:
        words, target = link[1], link[2]
        if is_kept(target) and "](" not in target:
            return f"[{words}{_put_by(f']({target})', kept)}"
        return f"[{words}]" if _ID.fullmatch(words) else words

    def write_address(link: re.Match[str]) -> str:
        return link[1] if link[2] and link[1] in read else f"‹{link[1]}{'›' if link[2] else ''}"

    text = _LINK.sub(write_link, _IMAGE.sub(r"\1", text))
    text = _LINKING.sub("] (", text)
    text = _DEFINED.sub(lambda name: name[0] if is_kept(name[2], name[3]) else f"‹{name[1]}›:", text)
    text = _DEFINING.sub(lambda end: end[0] if is_kept(end[1], end[2]) else "›:", text)
    text = _AUTOLINK.sub(write_address, text)
    text = _TAG.sub(lambda tag: _look_alike(tag) if _ACTING.search(tag[0]) else tag[0], text)
    return text if marked else _KEPT.sub(lambda place: kept[int(place[1])], text)


def shorten_references(text: str) -> str:
    """Cut HTML's numeric references to eight digits, which name no character: Python raises for thousands of digits."""
    return _NUMBER.sub(r"&#\1", text)


def unescape(text: str) -> str:
    """`html.unescape` for any text."""
    import html  # its table of names is large, and few texts need it

    return html.unescape(shorten_references(text))


_USERINFO = re.compile(r"(?<=://)[^/?#\s]*@(?!https?://)")


def redact(value: Any, secrets: frozenset[str]) -> Any:
    """Mask every secret in the texts of a JSON value, also in disguise (`mask`).

    Returns the value itself if it holds none.
    """
    if not secrets:
        return value
    if isinstance(value, str):
        from hira.core.masking import mask  # few runs have secrets

        return mask(value, secrets)
    if isinstance(value, Mapping):
        masked = {redact(key, secrets): redact(element, secrets) for key, element in value.items()}
        return value if masked == value else masked
    if isinstance(value, list | tuple):
        elements = [redact(element, secrets) for element in value]
        return value if elements == list(value) else elements
    return value


def without_userinfo(text: str) -> str:
    """Remove users and passwords from the URLs of a text.

    >>> without_userinfo("https://me:hidden@example.org/v1")
    'https://example.org/v1'
    """
    return _USERINFO.sub("", text)


def passwords_in(text: str) -> set[str]:
    """Return the passwords of the text's URLs, as written and unquoted; without a password the user counts as one."""
    parts = (match[0][:-1].partition(":") for match in _USERINFO.finditer(text))
    passwords = {password or user for user, _, password in parts} - {""}
    return passwords | {unquote(password) for password in passwords}
