"""The long description of the package: README.md with links that work outside the repository."""

import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class LongDescription(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        sys.path.insert(0, str(root / "docs"))
        from links import find_repository, link_to_repository

        sys.path.remove(str(root / "docs"))
        text = (root / "README.md").read_text(encoding="utf-8")
        text = link_to_repository(text, find_repository(root))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
