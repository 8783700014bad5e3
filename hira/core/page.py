"""The shell of every HTML page that hira writes or serves: its head, its content policy, its colours and fonts.

A page of one file contains its style and its script, and a policy that allows only these: no text of a model or of the
web in it can load or run anything.
"""

import base64
import hashlib
from html import escape
from pathlib import Path

GENERATOR = '<meta name="generator" content="hira">'
"""Marks the pages that hira wrote."""


def add_palette(style: str) -> str:
    """Return a page's style sheet, preceded by the colours and fonts of all pages (`palette.css`)."""
    return read_beside(__file__, "palette.css") + style


def read_beside(module: str, name: str) -> str:
    """Return the text of a file in the folder of a module, whose path is `module`."""
    return Path(module).with_name(name).read_text(encoding="utf-8")


def make_page(title: str, head: str, body: str, *, language: str = "en") -> str:
    """Return a page. `title` is plain text; `head` and `body` are HTML."""
    return f"""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
{head}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
</head>
<body>
{body}
</body>
</html>
"""


def make_standalone_page(
    title: str, body: str, *, style: str, script: str = "", images: bool = False, language: str = "en"
) -> str:
    """Return a page of one file. `images` allows images whose data is in the page."""
    style = add_palette(style)
    allowed = ["default-src 'none'", f"style-src {_digest(style)}"]
    if script:
        allowed.append(f"script-src {_digest(script)}")
        body = f"{body}\n<script>{script}</script>"
    if images:
        allowed.append("img-src data:")
    policy = escape("; ".join([*allowed, "base-uri 'none'", "form-action 'none'"]))
    head = f'{GENERATOR}\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>'
    return make_page(title, head, body, language=language)


def _digest(text: str) -> str:
    """Return the source expression (Content-Security-Policy) of an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
