"""Write the passages and questions of HotpotQA and MuSiQue that benchmarks/retrieval.py reads, from HippoRAG's data.

    python benchmarks/multihop.py CLONE OUT

CLONE is a clone of github.com/OSU-NLP-Group/HippoRAG with its whole history. OUT gets `passages.jsonl` (9,002) and
`questions.jsonl` (200); every second question is one that was not looked at while the ranking was chosen.
"""

import json
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

SAMPLES = "3d95d255a8db0c1699b853cfb4fbe5056708162d:data"
CORPUS = "191f281122e2437743daf1dd2dae23059a14c088:reproduce/dataset/2wikimultihopqa_corpus.json"
KEPT = Path(__file__).parent / "data" / "multihop_kept.json"
"""The positions of the questions kept aside, by their set."""


def read(clone: Path, name: str) -> Any:
    return json.loads(subprocess.run(["git", "-C", clone, "show", name], check=True, capture_output=True).stdout)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


def read_questions(clone: Path, name: str) -> list[dict[str, Any]]:
    """Read the questions of a set with the passages that each needs."""
    questions = []
    for number, row in enumerate(read(clone, f"{SAMPLES}/{name}_train.json")):
        if name == "musique":
            needed = [(one["title"], one["paragraph_text"]) for one in row["paragraphs"] if one["is_supporting"]]
        else:
            titles = {title for title, _ in row["supporting_facts"]}
            needed = [(title, "".join(parts)) for title, parts in row["context"] if title in titles]
        gold = [{"title": title, "text": text.strip()} for title, text in needed]
        answers = {"answer": row["answer"], "aliases": row.get("answer_aliases", [])}
        questions.append({"id": f"{name}-{number}", "set": name, "question": row["question"], **answers, "gold": gold})
    return questions


def main() -> None:
    clone, out = Path(sys.argv[1]), Path(sys.argv[2])
    hotpotqa = read(clone, f"{SAMPLES}/hotpotqa_train_corpus.json")
    texts = [(title, "".join(parts).strip()) for title, parts in hotpotqa.items()]
    for name in (f"{SAMPLES}/musique_train_corpus.json", CORPUS):
        texts += [(passage["title"], passage["text"].strip()) for passage in read(clone, name)]
    out.mkdir(parents=True, exist_ok=True)
    write(out / "passages.jsonl", [{"title": title, "text": text} for title, text in dict.fromkeys(texts)])
    rows: list[dict[str, Any]] = []
    for name, kept in json.loads(KEPT.read_text(encoding="utf-8")).items():
        questions = read_questions(clone, name)
        seen = [question for number, question in enumerate(questions) if number not in kept]
        rows += chain.from_iterable(zip(seen, (questions[number] for number in kept), strict=True))
    write(out / "questions.jsonl", rows)


if __name__ == "__main__":
    main()
