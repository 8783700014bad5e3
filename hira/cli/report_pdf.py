"""An answer or a report as a PDF."""

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.cli.report_word import parse_markdown
from hira.core.errors import UsageError
from hira.tools.documents.own_files import AUTHOR

if TYPE_CHECKING:
    from markdown_it.token import Token

_DEEPEST = 12
"""Typst allows a limited depth. Deeper nodes join their parent; tables, which cannot nest, stay whole."""
_TABLE = ("table", "thead", "tbody", "tr", "th", "td")


def render_pdf(markdown: str) -> bytes:
    """Return the text as a .pdf file. Raises `UsageError` for a letter that no installed font has."""
    import typst

    tree = _read_tree(parse_markdown(markdown))
    title = next((_read_words(node) for node in tree["children"] if node["kind"] == "heading"), "")
    document = json.dumps({"title": title, "author": AUTHOR, "tree": tree})
    template = Path(__file__).with_suffix(".typ").read_bytes()
    try:
        # in PDF/A Typst refuses a letter that no font has; otherwise it would print an empty box
        return typst.compile(template, sys_inputs={"document": document}, pdf_standards="a-2b")
    except typst.TypstError as error:
        fix = "install a font that has it, such as Noto; or write .docx (of a recorded run: hira replay last -o FILE)"
        raise UsageError(f"the PDF could not be written: {error.message}", fix=fix) from None


def _read_tree(tokens: "Iterable[Token]") -> dict[str, Any]:
    """Return the nodes of the text: the children of each, and what its kind needs."""
    root: dict[str, Any] = {"kind": "root", "children": []}
    parents = [root]
    for token in chain.from_iterable((token, *(token.children or ())) for token in tokens if not token.hidden):
        if token.nesting < 0:
            parents.pop()
        elif token.nesting and len(parents) > _DEEPEST and token.tag not in _TABLE:
            parents.append(parents[-1])
        elif token.type != "inline":
            node = _as_node(token)
            parents[-1]["children"].append(node)
            if token.nesting:
                parents.append(node)
    return root


def _as_node(token: "Token") -> dict[str, Any]:
    node: dict[str, Any] = {"kind": token.type.removesuffix("_open"), "children": []}
    match node["kind"]:
        case "text" | "code_inline" | "fence" | "code_block":
            node["text"] = token.content
        case "heading":
            node["level"] = int(token.tag.removeprefix("h"))
        case "ordered_list":
            node["start"] = token.attrs.get("start", 1)
        case "link":
            node["address"] = token.attrs["href"] if token.markup == "autolink" else ""
    return node


def _read_words(node: dict[str, Any]) -> str:
    return "".join([node.get("text", ""), *map(_read_words, node["children"])])
