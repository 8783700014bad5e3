"""The address of the repository, and links into it for pages that are read elsewhere: the site, the package index."""

# ruff: noqa: INP001 - part of docs/site.py and hatch_build.py, in no package

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINK = re.compile(
    r"(?P<picture>!?)\[(?P<label>(?:[^\[\]]|\[[^\]]*\]\([^)]*\))*)\]\((?P<target>(?!https?://|#)[^)\s]+)\)"
)
_SSH = re.compile(r"(?:ssh://)?git@([^:/]+)[:/](.+)")


def find_repository(root: Path = ROOT) -> str:
    """The address of the repository: `Repository` of `[project.urls]`, else the clone's origin; empty if unknown."""
    urls = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    address = urls.get("Repository") or _origin(root)
    return address.removesuffix("/").removesuffix(".git")


def _origin(root: Path) -> str:
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    except FileNotFoundError:  # no git
        return ""
    address = _SSH.sub(r"https://\1/\2", done.stdout.strip())
    return address if address.startswith("https://") else ""


def link_to_repository(text: str, repository: str) -> str:
    """The text with absolute links. Without an address, links become their labels, and pictures disappear."""

    def linked(link: re.Match[str]) -> str:
        picture, label, target = link["picture"], link["label"], link["target"]
        if not picture:
            label = link_to_repository(label, repository)  # a picture may be the label of a link
        if repository:
            kind = "raw" if picture else "blob"
            return f"{picture}[{label}]({repository}/{kind}/HEAD/{target})"
        return "" if picture else label

    return LINK.sub(linked, text)
