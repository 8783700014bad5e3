"""Question sets that other people wrote, as documents and questions.

A set is read from files that whoever runs the benchmark has; nothing of them is kept here. Each question belongs to one
of two halves by its id: `seen`, for work on hira, and `held`, for figures that are published.
"""

import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from hira.evaluation.files import items_of
from hira.evaluation.mini import DOCS, QUESTIONS
from hira.evaluation.rewards.match import contains, exact, extract_answer

SEED = 7
ARTICLES = 12
EACH = 5
DATA = Path(__file__).parent.parent / "data"
SETS = ("multihop", "squad", "company", "held", "mini")


@dataclass(frozen=True)
class Question:
    """A question with its right answers; without any, the documents do not answer it. An answer with one of the
    `outdated` values is wrong."""

    id: str
    text: str
    answers: Sequence[str]
    outdated: Sequence[str] = ()

    @property
    def half(self) -> str:
        return ("held", "seen")[hashlib.sha256(self.id.encode()).digest()[0] % 2]

    def is_right(self, answer: str) -> bool:
        """Return whether the answer contains a right one and no outdated one. False if there is no right one."""
        final = extract_answer(answer)
        return any(contains(final, known) for known in self.answers) and not any(
            contains(final, old) for old in self.outdated
        )

    def is_exact(self, answer: str) -> bool:
        """Return whether the answer is a right one, word for word."""
        return any(exact(extract_answer(answer), known) for known in self.answers)


@dataclass(frozen=True)
class QuestionSet:
    name: str
    questions: Sequence[Question]
    documents: Path


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON Lines file. A line that is no object is left out, and named on stderr."""
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict):
            yield row
        elif line.strip():
            print(f"{path}, line {number}: left out, because it is not a JSON object", file=sys.stderr)


def read_multihop(path: Path) -> list[Question]:
    """Read questions of HotpotQA and MuSiQue, alternately."""
    read = [Question(row["id"], row["question"], [row["answer"], *row["aliases"]]) for row in read_lines(path)]
    names = sorted({question.id.split("-")[0] for question in read})
    parts = [[question for question in read if question.id.startswith(name)] for name in names]
    return [question for several in zip(*parts, strict=False) for question in several]


def read_squad(path: Path, articles: int = ARTICLES, each: int = EACH) -> list[Question]:
    """Draw `each` answerable and `each` unanswerable questions of every one of the first articles of SQuAD 2.0."""
    drawn = []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"][:articles]:
        rows = [row for part in article["paragraphs"] for row in part["qas"]]
        for kind in (False, True):
            of_kind = [row for row in rows if row["is_impossible"] is kind]
            for row in random.Random(SEED).sample(of_kind, min(each, len(of_kind))):
                answers = [] if kind else list(dict.fromkeys(answer["text"] for answer in row["answers"]))
                drawn.append(Question(f"squad-{row['id']}", row["question"], answers))
    return random.Random(SEED).sample(drawn, len(drawn))


def read_company() -> list[Question]:
    """Read hira's eleven questions about the facts that gpt-researcher's benchmark of private documents checks."""
    rows = read_lines(DATA / "company.jsonl")
    return [Question(row["id"], row["question"], row["answers"], row["outdated"]) for row in rows]


def alternate_kinds(questions: Iterable[Question]) -> list[Question]:
    """Return the questions so that answerable and unanswerable ones alternate while there are both: the first few of a
    set then show both errors."""
    listed = list(questions)
    kinds = ([one for one in listed if bool(one.answers) is kind] for kind in (True, False))
    return [one for pair in zip_longest(*kinds) for one in pair if one]


def write_passages(path: Path, folder: Path) -> None:
    """Write each passage of a JSON Lines file as a document that is named by its line."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, row in enumerate(read_lines(path)):
        document = folder / f"p{number:05}.md"
        if not document.exists():
            document.write_text(f"# {row['title']}\n\n{row['text']}\n", encoding="utf-8")


def write_articles(path: Path, folder: Path, articles: int = ARTICLES) -> None:
    """Write each of the first articles of SQuAD 2.0 as a document."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, article in enumerate(json.loads(path.read_text(encoding="utf-8"))["data"][:articles]):
        text = "\n\n".join(part["context"] for part in article["paragraphs"])
        title = article["title"].replace("_", " ")
        (folder / f"a{number:03}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")


def read_set(name: str, places: Mapping[str, Path | None], work: Path) -> QuestionSet:
    """Read a set and write its documents below `work`. Raises `SystemExit` if a file it needs is not named."""
    readers: dict[str, Callable[[], QuestionSet]] = {
        "multihop": lambda: _read_multihop_set(_place(places, "questions"), _place(places, "passages"), work),
        "squad": lambda: _read_squad_set(_place(places, "squad"), work),
        "company": lambda: QuestionSet("company", read_company(), _place(places, "company")),
        "held": lambda: _read_items("held", DATA / "real" / "held.jsonl", DATA / "real" / "held"),
        "mini": lambda: _read_items("mini", QUESTIONS, DOCS),
    }
    if name not in readers:
        raise SystemExit(f"there is no set {name!r}: {', '.join(SETS)}")
    return readers[name]()


def _place(places: Mapping[str, Path | None], name: str) -> Path:
    place = places.get(name)
    if place is None or not place.exists():
        raise SystemExit(f"--{name} must name an existing file or folder, got {place}")
    return place


def _read_multihop_set(questions: Path, passages: Path, work: Path) -> QuestionSet:
    write_passages(passages, work / "multihop")
    return QuestionSet("multihop", read_multihop(questions), work / "multihop")


def _read_squad_set(path: Path, work: Path) -> QuestionSet:
    write_articles(path, work / "squad")
    return QuestionSet("squad", read_squad(path), work / "squad")


def _read_items(name: str, path: Path, documents: Path) -> QuestionSet:
    questions = [Question(item.id, item.question, item.answers if item.answerable else ()) for item in items_of(path)]
    return QuestionSet(name, questions, documents)
