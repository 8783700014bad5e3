"""Finds the paragraphs of a folder of documents that fit a question best. Sent whole to the sandbox, so it needs the
standard library only. Each is shown with the heading it stands under, below the name of its file."""

import math
import re
from collections import Counter
from pathlib import Path

SUFFIXES = {".md", ".txt", ".rst", ".csv", ".tsv", ".html", ".htm", ".json", ".org", ".tex"}
LARGEST = 2_000_000
"""Bytes of a file that is read."""
_WORD = re.compile(r"[^\W_]+")
_BLANK = re.compile(r"\n[ \t]*\n+")


def files(roots: list[str]) -> list[Path]:
    """The files of text at or below these places, in the order of their names."""
    found: list[Path] = []
    for root in map(Path, roots):
        found += [root] if root.is_file() else sorted(root.rglob("*")) if root.is_dir() else []
    kept = (path for path in found if path.suffix.lower() in SUFFIXES and path.is_file())
    return [path for path in dict.fromkeys(kept) if path.stat().st_size <= LARGEST]


def stems(text: str) -> list[str]:
    """Lower-case words without the commonest endings; Chinese, Japanese and Korean as pairs of characters."""
    words: list[str] = []
    for word in _WORD.findall(text.lower()):
        if ord(word[0]) >= 0x2E80:
            words += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
        else:
            words.append(re.sub(r"(?:ies|ing|ed|es|s|e|y)$", "", word) if len(word) > 4 else word)
    return words


def paragraphs(path: Path) -> list[tuple[str, str]]:
    """The paragraphs of a file, each with the heading above it."""
    heading, found = "", []
    for block in _BLANK.split(path.read_text(encoding="utf-8", errors="replace")):
        first, _, rest = block.strip().partition("\n")
        heading, text = (first, rest.strip()) if first.startswith("#") else (heading, block.strip())
        if text:
            found.append((heading, text))
    return found


def nearest(question: str, roots: list[str], most: int) -> list[tuple[Path, str, str]]:
    """The paragraphs that share most with the question, rare words weighing more: file, heading, text."""
    parts = [(path, heading, text) for path in files(roots) for heading, text in paragraphs(path)]
    held = [set(stems(f"{path.stem} {heading} {text}")) for path, heading, text in parts]
    known = Counter(word for words in held for word in words)
    wanted = set(stems(question))
    weights = {word: math.log(1 + len(parts) / known[word]) for word in wanted if known[word]}
    scores = [sum(weights.get(word, 0.0) for word in words) for words in held]
    order = sorted((at for at, score in enumerate(scores) if score > 0), key=lambda at: -scores[at])
    return [parts[at] for at in order[:most]]


def shown(question: str, roots: list[str], most: int) -> str:
    """These paragraphs as a program prints them."""
    return "\n\n".join(
        part
        for path, heading, text in nearest(question, roots, most)
        for part in (f"{path.name}:", heading, text)
        if part
    )
