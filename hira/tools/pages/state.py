"""Whether what a page says is what it is about, or a wall, a shell of scripts, or nothing."""

import re
from typing import Literal

State = Literal["ok", "blocked", "empty", "script", "paywall"]

LITTLE = 1500

_WALL = re.compile(
    r"""are\ you\ a\ (?:ro)?bot|(?:verify|confirm)\ (?:that\ )?you(?:['’]|\ a)re\ (?:a\ |not\ a\ )?(?:human|robot)
    |captcha|checking\ your\ browser|unusual\ traffic|attention\ required!|access\ (?:to\ this\ page\ .{0,20})?denied
    |request\ (?:was\ |has\ been\ )?blocked|you\ have\ been\ blocked|pardon\ our\ interruption|just\ a\ moment\.\.\.
    |(?:403|401)\s?[:—-]?\s?(?:forbidden|unauthorized)|too\ many\ requests|bot\ detection|ddos\ protection""",
    re.IGNORECASE | re.VERBOSE,
)
_NEEDS_SCRIPT = re.compile(
    r"(?:enable|requires?|turn on|without|activate)\s+(?:\w+\s+){0,3}javascript|javascript\s+(?:is|must|has)",
    re.IGNORECASE,
)
_NEEDS_SCRIPT = re.compile(
    r"(?:enable|requires?|turn on|without|activate)\s+(?:\w+\s+){0,3}javascript|javascript\s+(?:is|must|has)",
    re.IGNORECASE,
)
_PAYWALL = re.compile(
    r"""(?:subscribe|sign\ in|log\ in|register)(?:\ now|\ today)?\ to\ (?:continue|keep|read|unlock|access|view)
    |to\ (?:continue|keep)\ reading|subscriber[\s-]only|already\ a\ subscriber\?|free\ articles?\ (?:left|remaining)
    |(?:article|content|story)\ is\ (?:only\ )?(?:for|available\ to|reserved\ for)\ .{0,12}(?:subscribers|members)""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_FREE = re.compile(r"\"isAccessibleForFree\"\s*:\s*\"?false", re.IGNORECASE)
_NOT_FREE = re.compile(r"\"isAccessibleForFree\"\s*:\s*\"?false", re.IGNORECASE)


def state_of(title: str, text: str, scripts: str) -> State:
    """Whether the text is what the page is about, by its length first: a long text with such words is an article."""
    if len(text) < LITTLE and (_WALL.search(title) or (len(text) < LITTLE // 2 and _WALL.search(text))):
        return "blocked"
    if len(text) < LITTLE // 5 and (_NEEDS_SCRIPT.search(text) or _NEEDS_SCRIPT.search(scripts)):
        return "script"
    if len(text) < 2 * LITTLE and (_PAYWALL.search(text) or (_NOT_FREE.search(scripts) and len(text) < LITTLE)):
        return "paywall"
    if len(text) < LITTLE // 10 and scripts.count("<script") > 1:
        return "script"
    return "ok" if text else "empty"
