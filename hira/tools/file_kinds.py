"""Kinds of files, by their names, and what this installation can do with them."""

import mimetypes
from collections.abc import Collection
from fnmatch import translate
from importlib.util import find_spec
from pathlib import Path

from hira.core.patterns import compile_lazily

# dependencies and caches
FOLDERS = frozenset(["node_modules", "__pycache__", "__MACOSX", "site-packages"])
# files that every folder of `hira eval`, of a curation and of a training run holds: questions, known answers, replies
_RECORDS = (
    frozenset(["plan.json", "records.jsonl"]),
    frozenset(["curation.json", "decisions.jsonl"]),
    frozenset(["configuration.json", "rollouts.jsonl"]),
)
# the usual names of such files, in lower case
_KEY_FILES = (
    *("hira.toml", "credentials", "credentials.*", "application_default_credentials.json", "secrets.*", "*.env"),
    *(".env", ".env.*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".htpasswd"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx"),
)
_KEY_FILE = compile_lazily("|".join(map(translate, _KEY_FILES)))
PDF = "application/pdf"
WAV = {"audio/wav", "audio/x-wav", "audio/vnd.wave"}
MP3 = {"audio/mpeg", "audio/mp3"}
# kinds that some machines' tables lack
_KINDS = {
    **dict.fromkeys((".ogg", ".oga", ".opus"), "audio/ogg"),
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".aac": "audio/aac",
    ".wma": "audio/x-ms-wma",
    ".webp": "image/webp",
    ".heic": "image/heic",
    ".avif": "image/avif",
    ".mkv": "video/x-matroska",
    ".webm": "video/webm",
    ".mp4": "video/mp4",
    ".mov": "video/quicktime",
}
LIMIT = 200 * 2**20
"""The most bytes of a document; larger ones are not read."""
RECOGNISING = "pip install 'hira[files]'"
"""The advice for a file whose encoding cannot be recognised without a package."""


def holds_keys(name: str) -> bool:
    """Return whether a file of this name usually holds keys or passwords.

    >>> holds_keys("hira.toml"), holds_keys("server.PEM"), holds_keys("id_rsa.pub")
    (True, True, False)
    """
    return _KEY_FILE.match(name.lower()) is not None


def holds_records(names: Collection[str]) -> bool:
    """Return whether a folder with these names is hira's own: of an evaluation, a curation or a training run."""
    return any(files.issubset(names) for files in _RECORDS)


def kind_of(name: str) -> str:
    """Return the media type of a file's name, empty if it is unknown."""
    return _KINDS.get(Path(name).suffix.lower()) or mimetypes.guess_type(name)[0] or ""


def can_be_sent(name: str) -> bool:
    """Return whether a file of this name has something to see or hear that can be sent to a model."""
    kind = kind_of(name)
    if kind == "image/svg+xml":
        return False
    if kind.startswith("audio/"):
        return kind in WAV | MP3 or decodes()
    return kind.startswith(("image/", "video/")) or (kind == PDF and renders_pages())


def how_to_see(name: str) -> str:
    """Return, as a part of a sentence, how to see the pages of a document that hold no text."""
    if kind_of(name) != PDF:
        return "saved as a PDF file, the multimodal expert can look at it"
    look = "the multimodal expert can look at it" + ("" if renders_pages() else " after: pip install 'hira[pdf]'")
    return f"{look}; an OCR tool makes it searchable (ocrmypdf IN.pdf OUT.pdf)"


def renders_pages() -> bool:
    """Return whether the packages that render pages of PDF files are installed."""
    return find_spec("pypdfium2") is not None and find_spec("PIL") is not None


def decodes() -> bool:
    """Return whether PyAV is installed."""
    return find_spec("av") is not None


def can_recognise() -> bool:
    """Return whether the package is installed that recognises encodings."""
    return find_spec("charset_normalizer") is not None
