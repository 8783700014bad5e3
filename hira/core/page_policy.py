"""What lets a page run its own style and script and nothing else: their digests, for its content security policy."""

import base64
import hashlib


def digest(text: str) -> str:
    """The source expression of a style or a script that stands in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
