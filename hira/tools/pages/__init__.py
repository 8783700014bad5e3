"""A web page as its readable text, by a small extractor without dependencies, and whether that text is its content."""

import re
from dataclasses import dataclass
from typing import Literal

from hira.tools.pages.article import readable
from hira.tools.pages.tree import (
    Link,
    Tree,
    flat,
    join_parts,
    links_of,
    resolve_url,
    tags,
    walk,
    without_unread,
)

__all__ = ["Link", "Page", "State", "extract"]

State = Literal["ok", "blocked", "empty", "script", "paywall"]
SHORT = 1500
"""A text with more characters is an article, whatever words it contains."""
TINY = 150
_LONG_SENTENCE = 30
_LOOKED_AT = 50_000
_WALL = re.compile(
    r"""are\ you\ a\ (?:ro)?bot|not\ a\ (?:ro)?bot|captcha|(?:verify|confirm)\ (?:that\ )?you\ are\ (?:a\ )?human
    |made\ by\ a\ human|checking\ (?:if\ the\ site|your\ browser)|unusual\ traffic|too\ many\ requests
    |access\ (?:to\ this\ page\ .{0,20})?denied|request\ (?:was\ |has\ been\ )?blocked|you\ have\ been\ blocked
    |just\ a\ moment\.\.\.|attention\ required!|40[13]\s?[:—-]?\s?(?:forbidden|unauthorized)
    |incapsula\ incident|(?:security|human)\ (?:check|challenge|verification)
    |kein\ roboter|zugriff\ verweigert|pas\ un\ robot|acc[èe]s\ (?:refus[ée]|interdit)
    |no\ (?:eres|soy|es)\ un\ robot|acceso\ denegado|не\ робот|доступ\ (?:запрещ[её]н|ограничен)
    |安全验证|安全驗證|验证码|驗證碼|不是机器人|不是機器人|拒绝访问|アクセスが拒否|ロボットではない""",
    re.IGNORECASE | re.VERBOSE,
)
_ADDRESSES_READER = re.compile(
    r"""\b(?:you|your|we|our|please|this\ (?:site|website|page|server)|cookies?|javascript|browser|security|requests?
    |robots?|reference|incident|ip|ray\ id|sie|ihr|bitte|vous|votre|veuillez|usted|su|por\ favor|вы)\b|ваш""",
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+")
_NEEDS_SCRIPT = re.compile(
    r"(?:enable|requires?|turn on|without|activate)\s+(?:\w+\s+){0,3}javascript"
    r"|javascript\s+(?:is|must be|has been)\s+(?:\w+\s+)?(?:disabled|required|enabled|needed|off)",
    re.IGNORECASE,
)
_NO_SCRIPT = re.compile(r"<noscript\b(?:(?!</noscript).){0,300}?javascript", re.IGNORECASE | re.DOTALL)
_PAYWALL = re.compile(
    r"""(?:subscribe|sign\ in|log\ in|register)(?:\ now|\ today|\ for\ free)?\ to
      \ (?:continue|keep|read|unlock|access|view)
    |to\ (?:continue|keep)\ reading|subscriber[\s-]only|already\ a\ subscriber\?
    |(?:article|content|story)\ is\ (?:only\ )?(?:for|available\ to|reserved\ for|exclusive\ to)
      \ .{0,12}(?:subscribers|members)
    |unlock\ this\ (?:article|story)|subscribe\ for\ (?:full|unlimited)\ access
    |(?:nur|exklusiv)\ für\ (?:\w+\ )?abonnent|réservée?\ (?:à\ nos|aux)\ abonné
    |(?:exclusivo|s[óo]lo)\ para\ suscriptores
    |только\ (?:для\ )?подписчик|会員限定|(?:付费|付費)(?:阅读|閱讀)""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_FREE = re.compile(r"\"isAccessibleForFree\"\s*:\s*\"?false", re.IGNORECASE)
_FRAME = tags("header nav footer aside")
"""Where newspapers offer subscriptions with free articles, too."""


@dataclass(frozen=True, slots=True)
class Page:
    """`text` is the readable text, `links` where it leads, those within the text first. Only state "ok" is content."""

    title: str
    text: str
    links: tuple[Link, ...]
    state: State


def extract(html: str, base_url: str = "") -> Page:
    """Read a page. Never raises on broken markup; takes time linear in the length of `html`."""
    kept, scripts = without_unread(html)
    tree = Tree()
    tree.read(kept)
    main, text = readable(tree.root)
    base = resolve_url(base_url, tree.base) or base_url
    links = links_of(main, tree.root, base, base_url)
    heading = next((flat(element) for element in walk(tree.root) if element.tag == "h1"), "")
    title = join_parts(tree.title) or tree.named or heading
    around = flat(tree.root, without=_FRAME) if len(text) < SHORT else ""
    return Page(title, text, links, find_state(title, text, scripts, around))


def find_state(title: str, text: str, scripts: str, around: str = "") -> State:
    """Return whether `text` is the content of its page, or why not. A long text is, even if it contains words of a
    wall.

    `scripts` is the content of scripts and noscript, `around` the text of a short page outside of its frame.
    """
    if len(text) < SHORT and _WALL.search(f"{title}\n{text}") and _addresses_reader(text):
        return "blocked"
    if len(text) < 2 * TINY and scripts and _NEEDS_SCRIPT.search(text):
        return "script"
    asks = len(text) < 2 * SHORT and (_PAYWALL.search(text) or _PAYWALL.search(around[:_LOOKED_AT]))
    if asks or (len(text) < SHORT and _NOT_FREE.search(scripts)):
        return "paywall"
    if not text:
        return "script" if scripts else "empty"
    waits = len(text) < TINY and (scripts.count("<script") > 1 or _NO_SCRIPT.search(scripts[:_LOOKED_AT]))
    return "script" if waits else "ok"


def _addresses_reader(text: str) -> bool:
    """Return whether at least half of a short text speaks to its reader or about the wall, as no article does."""
    lines = [sentence.strip() for sentence in _SENTENCE.findall(text)]
    long = (line for line in lines if len(line) >= _LONG_SENTENCE)
    articles = (line for line in long if not (_ADDRESSES_READER.search(line) or _WALL.search(line)))
    return 2 * sum(map(len, articles)) <= sum(map(len, lines))
