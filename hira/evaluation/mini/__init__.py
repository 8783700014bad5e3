"""The built-in set: 60 original questions over a folder of original documents, about fictional islands."""

from pathlib import Path

FOLDER = Path(__file__).parent
DOCS = FOLDER / "docs"
QUESTIONS = FOLDER / "questions.jsonl"
