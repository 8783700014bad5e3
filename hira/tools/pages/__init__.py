"""A web page as its readable text: a small extractor without dependencies.

The page becomes a tree (`tree`), of which the main text is found (`article`) and written out (`writing`).
"""

from dataclasses import dataclass

from hira.tools.pages.article import readable
from hira.tools.pages.links import Link, links_of, resolve_url
from hira.tools.pages.state import LITTLE, State, state_of
from hira.tools.pages.tree import Element, Tree, flat, join_parts, tags, unseen, walk, without_unread

__all__ = ["Link", "Page", "State", "extract"]

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
