"""A web page as its readable text, by a small extractor without dependencies, and whether it has any.

The page becomes a tree (`tree`), of which the main text is found and written out (`article`).
"""

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
    walk,
    without_unread,
)

__all__ = ["Link", "Page", "State", "extract"]

State = Literal["ok", "empty", "script"]
LITTLE = 150
"""Characters of text below which a page with scripts shows its content only in a browser."""


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
    if not text:
        return Page(title, text, links, "script" if scripts else "empty")
    needs_script = len(text) < LITTLE and scripts.count("<script") > 1
    return Page(title, text, links, "script" if needs_script else "ok")
