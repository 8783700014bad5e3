"""A web page as its readable text, by a small extractor without dependencies, and whether that text is its content.

The page becomes a tree (`tree`), of which the main text is found and written out (`article`).
"""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from hira.tools.pages.article import readable
from hira.tools.pages.tree import (
    Element,
    Link,
    Tree,
    flat,
    join_parts,
    links_of,
    resolve_url,
    tags,
    unseen,
    walk,
    without_unread,
)

__all__ = ["Link", "Page", "State", "extract"]

State = Literal["ok", "blocked", "empty", "script", "paywall"]

LITTLE = 1500
SPEAKING = 0.5
"""The share of a wall's text, at least, in which it speaks to its reader or about its own door."""
_TELLS = 30
_WALL = re.compile(
    r"""are\ you\ a\ (?:ro)?bot
    |(?:verify|confirm|ensure|(?:make|making)\ sure)\ (?:that\ )?you(?:['’]|\ a)re
      \ (?:a\ |not\ a\ )?(?:human|(?:ro)?bot)
    |not\ a\ (?:ro)?bot|captcha|checking\ (?:if\ the\ site|your\ browser)|unusual\ traffic
    |attention\ required!|access\ (?:to\ this\ page\ .{0,20})?denied|request\ (?:was\ |has\ been\ )?blocked
    |(?:you\ have|you['’]ve)\ been\ blocked|pardon\ our\ interruption|just\ a\ moment\.\.\.
    |access\ cannot\ be\ granted
    |(?:403|401)\s?[:—-]?\s?(?:forbidden|unauthorized)|too\ many\ requests|bot\ detection|ddos\ protection
    |(?:security|human)\ (?:check|challenge|verification)|press\ &\ hold|incapsula\ incident|disable\ any\ ad\ ?blocker
    |confirm\ this\ .{0,20}\ was\ made\ by\ a\ human|unavailable\ due\ to\ legal
    |kein\ robot|pas\ un\ robot|no\ (?:eres|soy|es)\ un\ robot|non\ (?:essere|sei|sono)\ un\ robot|geen\ robot
    |n[ãa]o\ (?:[ée]|sou)\ um\ rob[ôo]|nie\ jeste\w+\ robotem|не\ робот
    |zugriff\ verweigert|acc[èe]s\ (?:refus[ée]|interdit)|acceso\ denegado|accesso\ negato|acesso\ negado
    |toegang\ geweigerd|(?:odmowa|brak)\ dost[ęe]pu|доступ\ (?:запрещ[её]н|ограничен)
    |(?:安全|人机|人機|访问|訪問)(?:验证|驗證)|验证码|驗證碼|不是机器人|不是機器人|访问被拒绝|拒绝访问|訪問被拒|存取被拒
    |アクセスが拒否|ロボットではない|접근이\ ?거부|로봇이\ ?아닙니다""",
    re.IGNORECASE | re.VERBOSE,
)
# of what a wall speaks, and to whom
_DOOR = re.compile(
    r"""\b(?:you|your|yours|please|we|our|this\ (?:site|website|page|server)|cookies?|javascript|browser|security
      |servers?|requests?|ro?bots?|human|captcha|ray\ id|incident|reference|ip|sie|ihr|bitte|vous|votre|veuillez|usted
      |su|tu|por\ favor|voc[êe]|seu|prego|uw|proszę)\b|вы\b|ваш""",
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+")
_NEEDS_SCRIPT = re.compile(
    r"(?:enable|requires?|turn on|without|activate)\s+(?:\w+\s+){0,3}(?:javascript|js\b)"
    r"|javascript\s+(?:is|must be|has been)\s+(?:not\s+|currently\s+)?(?:disabled|required|enabled|needed|off)",
    re.IGNORECASE,
)
_NO_SCRIPT = re.compile(r"<noscript\b", re.IGNORECASE)
_LOOKED_AT = 50_000
"""Characters of a page's scripts, and of what stands around its text, that are searched for such words."""
_ASKED = 5
"""Places without scripts of a page whose text is looked at."""
_PAYWALL = re.compile(
    r"""(?:subscribe|sign\ in|log\ in|register)(?:\ now|\ today|\ for\ free)?\ to
      \ (?:continue|keep|read|unlock|access|view)
    |to\ (?:continue|keep)\ reading|subscriber[\s-]only|already\ a\ subscriber\?|free\ articles?\ (?:left|remaining)
    |(?:article|content|story)\ is\ (?:only\ )?(?:for|available\ to|reserved\ for|exclusive\ to)
      \ .{0,12}(?:subscribers|members)
    |unlock\ this\ (?:article|story)|subscribe\ for\ (?:full|unlimited)\ access
    |weiterlesen\ mit\ \w|bereits\ (?:ein\ )?\w*abo\b|(?:nur|exklusiv)\ für\ (?:\w+\ )?abonnent
    |um\ (?:den\ artikel\ )?weiterzulesen
    |réservée?\ (?:à\ nos|aux)\ abonné|reste\ \d+\ ?%\ de\ cet\ article|abonnez-vous\ pour\ (?:lire|continuer|accéder)
    |suscr[íi]bete\ para|(?:exclusivo|s[óo]lo)\ para\ suscriptores|para\ seguir\ leyendo
    |riservat\w\ agli\ abbonati|abbonati\ per\ (?:continuare|leggere)|per\ continuare\ a\ leggere
    |(?:exclusivo|s[óo]|apenas)\ para\ assinantes|assine\ para\ (?:continuar|ler)|para\ continuar\ lendo
    |(?:alleen|exclusief)\ voor\ abonnees|(?:tylko|wyłącznie)\ dla\ (?:prenumerat|subskryb)
    |только\ (?:для\ )?подписчик|оформите\ подписку,?\ чтобы
    |会員限定|有料会員|残り\s?[\d,]+\s?文字|订阅后|訂閱後|(?:付费|付費|会员|會員)(?:阅读|閱讀|专享|專享|限定)
    |유료\ ?회원|구독자?\ ?전용""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_FREE = re.compile(r"\"isAccessibleForFree\"\s*:\s*\"?false", re.IGNORECASE)


def state_of(title: str, text: str, scripts: str, around: str = "") -> State:
    """Whether the text is what the page is about, by its length first: a long text with such words is an article.

    `scripts` is what stands in scripts and noscript, `around` what of a short page can be seen outside of its frame.
    """
    if len(text) < LITTLE and _WALL.search(f"{title}\n{text}") and _speaks(text):
        return "blocked"
    if (
        len(text) < LITTLE // 5
        and scripts
        and (_NEEDS_SCRIPT.search(text) or _NEEDS_SCRIPT.search(scripts[:_LOOKED_AT]))
    ):
        return "script"
    if len(text) < 2 * LITTLE and (_PAYWALL.search(text) or _PAYWALL.search(around[:_LOOKED_AT])):
        return "paywall"
    if len(text) < LITTLE and _NOT_FREE.search(scripts):
        return "paywall"
    if len(text) < LITTLE // 10 and (scripts.count("<script") > (1 if text else 0) or _asks(scripts)):
        return "script"
    return "ok" if text else "empty"


def _asks(scripts: str) -> bool:
    """Whether what is shown without scripts speaks of them, in whatever language."""
    places = (match.start() for match in islice(_NO_SCRIPT.finditer(scripts), _ASKED))
    return any("javascript" in scripts[at : at + LITTLE].lower() for at in places)


def _speaks(text: str) -> bool:
    """Whether most of a short text is said to its reader or of the door it stands at, as no article is written."""
    told = [sentence.strip() for sentence in _SENTENCE.findall(text)]
    plain = [one for one in told if len(one) >= _TELLS and not _DOOR.search(one) and not _WALL.search(one)]
    return sum(map(len, plain)) <= (1 - SPEAKING) * sum(map(len, told))


_FRAME = tags("header nav footer aside")


@dataclass(frozen=True, slots=True)
class Page:
    """`text` is what can be read, `links` where it leads, those within the text first. Only state "ok" is content."""

    title: str
    text: str
    links: tuple[Link, ...]
    state: State


def extract(html: str, base_url: str = "") -> Page:
    """Read a page. Never raises on broken markup; takes time linear in the length of `html`."""
    kept, scripts = without_unread(html)
    tree = Tree()
    tree.feed(kept)
    tree.close()
    main, text = readable(tree.root)
    base = resolve_url(base_url, tree.base) or base_url
    links = links_of(main, tree.root, base, base_url)
    title = join_parts(tree.title) or tree.named or next((flat(one) for one in walk(tree.root) if one.tag == "h1"), "")
    around = _unframed(tree.root) if len(text) < LITTLE else ""
    return Page(title, text, links, state_of(title, text, scripts, around))


def _unframed(root: Element) -> str:
    """What can be seen outside of the page's frame, in which a newspaper asks for subscribers beside free articles."""
    parts: list[str] = []
    waiting: list[Element | str] = [root]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            parts.append(one)
        elif one.tag not in _FRAME and not unseen(one):
            waiting += reversed(one.children)
    return join_parts(parts)
