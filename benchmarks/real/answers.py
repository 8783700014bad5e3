"""Record the answers of a real model to public questions, right and wrong, with what it read.

    python benchmarks/real/answers.py MODEL OUT --questions multihop_dev.jsonl --passages passages.jsonl
    python benchmarks/real/answers.py MODEL OUT --squad dev-v2.0.json [--articles 12]

MODEL is a GGUF file, served by llama.cpp on one thread, or the base URL of an endpoint without `/v1`. OUT is JSON
Lines: an answer, whether it is right (it contains a right one), and for each source its document and the begin and the
end of every passage that was read, so that the text of the public data stays where it is. `benchmarks/evidence.py`
reads the recording. FOLDER gets the documents, a folder for each set. A question that OUT holds is not asked again.
"""

import argparse
import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hira import Answer, Hira
from hira.evaluation.rewards.match import contains, extract_answer
from hira.runtime.settings import Settings

SEED = 7


@dataclass(frozen=True)
class Question:
    """A question with its right answers; none if the documents do not answer it."""

    id: str
    text: str
    answers: Sequence[str]


def read_multihop(path: Path) -> list[Question]:
    """Return the questions of a JSON Lines file of HotpotQA and MuSiQue, alternately."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    read = [Question(row["id"], row["question"], [row["answer"], *row["aliases"]]) for row in rows]
    sets = {
        name: [one for one in read if one.id.startswith(name)] for name in sorted({r.id.split("-")[0] for r in read})
    }
    return [question for several in zip(*sets.values(), strict=True) for question in several]


def read_squad(path: Path, articles: int, each: int) -> list[Question]:
    """Return `each` answerable and `each` unanswerable questions of every article of SQuAD 2.0, alternately."""
    found = []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"][:articles]:
        asked = [one for part in article["paragraphs"] for one in part["qas"]]
        for kind in (False, True):
            rows = [one for one in asked if one["is_impossible"] is kind]
            for row in random.Random(SEED).sample(rows, each):
                answers = [] if kind else list(dict.fromkeys(one["text"] for one in row["answers"]))
                found.append(Question(f"squad-{row['id']}", row["question"], answers))
    return random.Random(SEED).sample(found, len(found))


def write_passages(path: Path, folder: Path) -> None:
    """Write each passage of a JSON Lines file as a document that is named by its line."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        document = folder / f"p{number:05}.md"
        if not document.exists():
            document.write_text(f"# {row['title']}\n\n{row['text']}\n", encoding="utf-8")


def write_articles(path: Path, folder: Path, articles: int) -> None:
    """Write each of the first articles of SQuAD 2.0 as a document."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, article in enumerate(json.loads(path.read_text(encoding="utf-8"))["data"][:articles]):
        text = "\n\n".join(part["context"] for part in article["paragraphs"])
        title = article["title"].replace("_", " ")
        (folder / f"a{number:03}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")


def is_right(question: Question, answer: Answer) -> bool:
    """Return whether the answer holds a right one; for an unanswerable question none does."""
    return any(contains(extract_answer(answer.text), one) for one in question.answers)


def list_passages(answer: Answer, folder: Path) -> Iterator[dict[str, object]]:
    """Yield for each source its document and the places of its passages there; a heading is not in the document."""
    for source in answer.sources:
        whole = (folder / source.location).read_text(encoding="utf-8")
        yield {"id": source.id, "document": source.location, "title": source.title, "text": locate(source.text, whole)}


def locate(text: str, whole: str) -> list[str | tuple[int, int]]:
    """Return a text as the places of its blocks in the whole document, and the blocks that are not in it."""
    blocks = [block.strip() for block in text.split("\n")]
    return [
        (whole.index(block), whole.index(block) + len(block)) if block in whole and block else block for block in blocks
    ]


async def record(options: argparse.Namespace, folder: Path, questions: Sequence[Question]) -> None:
    done = set()
    if options.out.exists():
        rows = map(json.loads, options.out.read_text(encoding="utf-8").splitlines())
        done = {(row["workflow"], row["id"]) for row in rows}
    from record import model_name, served  # others read the questions alone

    with served(options.model) as address:
        settings = Settings(
            model=model_name(address), base_url=f"{address}/v1", docs=(folder,), workflow=options.workflow,
            journal=None, cache=None, temperature=0.0, max_reply_tokens=300, verify="lexical", max_time=900.0,
        )  # fmt: skip
        async with Hira(settings=settings) as hira:
            for question in questions:
                if (options.workflow, question.id) in done:
                    continue
                answer = await hira.ask(question.text)
                row = {
                    "set": folder.name, "id": question.id, "workflow": options.workflow,
                    "model": Path(options.model).stem, "answerable": bool(question.answers),
                    "answer": answer.text, "right": is_right(question, answer),
                    "sources": list(list_passages(answer, folder)),
                }  # fmt: skip
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
                shown = f"{question.id:32} right={row['right']!s:5} {answer.status:22} {answer.text[:70]!r}"
                print(options.workflow, shown, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--questions", type=Path, help="JSON Lines with id, question, answer, aliases")
    parser.add_argument("--passages", type=Path, help="JSON Lines with title, text")
    parser.add_argument("--squad", type=Path, help="dev-v2.0.json of SQuAD 2.0")
    parser.add_argument("--articles", type=int, default=12)
    parser.add_argument("--each", type=int, default=5, help="questions of each kind and article")
    parser.add_argument("--limit", type=int, default=1_000)
    parser.add_argument("--workflow", default="rag")
    parser.add_argument("--folder", type=Path, required=True, help="where the documents are written")
    options = parser.parse_args()
    if options.squad:
        folder = options.folder / "squad"
        write_articles(options.squad, folder, options.articles)
        questions = read_squad(options.squad, options.articles, options.each)
    elif options.questions and options.passages:
        folder = options.folder / "multihop"
        write_passages(options.passages, folder)
        questions = read_multihop(options.questions)
    else:
        parser.error("name --squad FILE, or --questions FILE and --passages FILE")
    asyncio.run(record(options, folder, questions[: options.limit]))


if __name__ == "__main__":
    main()
