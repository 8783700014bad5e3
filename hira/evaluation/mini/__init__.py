"""The built-in set: 60 questions of our own over a folder of documents of our own, about islands that do not exist."""

from pathlib import Path

FOLDER = Path(__file__).parent
DOCS = FOLDER / "docs"
QUESTIONS = FOLDER / "questions.jsonl"
