"""Public claims with human labels, read from where they were published. None of them is kept in this repository.

| set | repository | file | |---|---|---| | WiCE | ryokamoi/wice |
`code_and_resources/entailment_inputs/oracle_chunks/claim/dev.jsonl`, `data/non_supported_tokens/train.jsonl` | |
ExpertQA | chaitanyamalaviya/ExpertQA | `data/lfqa/rand_val.jsonl` | | AttributionBench | OSU-NLP-Group/AttributionBench
| `data/dev_all_subset_balanced.jsonl`, `data/test_ood_all_subset_balanced.jsonl` | | FeverSymmetric |
TalSchuster/FeverSymmetric | `symmetric_v0.2/fever_symmetric_dev.jsonl` | | Fool Me Twice |
google-research/fool-me-twice | `dataset/dev.jsonl` |"""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Labelled = tuple[str, str, bool]
"""A claim, its evidence, and whether the evidence supports all of it."""
_MARK = re.compile(r"\s*\[\d+\]")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file."""
    yield from (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def read_wice(path: Path) -> list[Labelled]:
    """Claims of Wikipedia with sentences of the pages they cite. The chunks of several annotators are one text."""
    found: dict[str, tuple[str, dict[str, None], bool]] = {}
    for row in read_lines(path):
        name = row.get("id") or row["meta"]["id"]
        entry = found.setdefault(name, (row["claim"], {}, row["label"] == "supported"))
        entry[1].update(dict.fromkeys(row["evidence"]))
    return [(claim, "\n".join(evidence), label) for claim, evidence, label in found.values()]


def read_expertqa(path: Path) -> list[Labelled]:
    """Claims of GPT-4 with retrieval, judged by experts. Complete support is support; partial and none are not."""
    found: list[Labelled] = []
    for row in read_lines(path):
        if "claim" in row:
            found.append((row["claim"], "\n\n".join(row["evidence"]), row["label"] == "supported"))
            continue
        retrieved = [answer for system, answer in row["answers"].items() if system.startswith(("rr_", "post_hoc_"))]
        for one in (claim for answer in retrieved for claim in answer["claims"]):
            evidence = [text.partition("\n\n")[2].strip() for text in one["evidence"]]
            claim = _MARK.sub("", one["claim_string"]).strip()
            if one["support"] in ("Complete", "Partial", "Incomplete") and any(evidence) and len(claim) > 30:
                found.append((claim, "\n\n".join(evidence), one["support"] == "Complete"))
    return found


def read_wice_train(path: Path) -> tuple[list[Labelled], list[Labelled]]:
    """Claims of the training half, single and in pairs.

    Each comes twice: as annotated, with words that the page does not support, and without those words, which the page
    supports. A pair states two claims over two pages.
    """
    draw = random.Random(0)
    single: list[Labelled] = []
    halves: list[tuple[str, str, str]] = []
    for row in read_lines(path):
        lines, supporting = row["evidence"], {at for chosen in row["supporting_sentences"] for at in chosen}
        others = [at for at in range(len(lines)) if at not in supporting]
        draw.shuffle(others)
        chosen = sorted({*supporting, *others[: max(0, 25 - len(supporting))]})
        evidence = "\n".join(lines[at] for at in chosen)
        words = [word for word, lacks in zip(row["claim_tokens"], row["non_supported_spans"], strict=True) if not lacks]
        trimmed = re.sub(r" (?=[,.])| (?=-)|(?<=-) ", "", " ".join(words))
        single.append((row["claim"], evidence, False))
        if sum(len(word) > 2 for word in words) >= 4:
            single.append((trimmed, evidence, True))
            halves.append((row["claim"], trimmed, evidence))
    paired: list[Labelled] = []
    for _ in range(400):
        (wrong, right, here), (other_wrong, other, there) = draw.sample(halves, 2)
        evidence = f"{here}\n{there}"
        paired.append((f"{right.rstrip(' .')}, and {other}", evidence, True))
        first, second = draw.choice([(wrong, other), (right, other_wrong)])
        paired.append((f"{first.rstrip(' .')}, and {second}", evidence, False))
    return single, paired


def read_attribution(*paths: Path) -> dict[str, list[Labelled]]:
    """Answers of models with what they cite, judged by people, by data set. The part from ExpertQA is left out."""
    found: dict[str, list[Labelled]] = {}
    for row in (row for path in paths for row in read_lines(path)):
        references = row["references"] or row["webpage_references"]
        if references and "expert" not in row["src_dataset"].lower():
            entry = (_MARK.sub("", row["claim"]), "\n\n".join(references), row["attribution_label"] == "attributable")
            found.setdefault(row["src_dataset"], []).append(entry)
    return found


def read_fever(path: Path) -> list[Labelled]:
    """Claims over one sentence of Wikipedia, each with a rewritten twin of the other label."""
    return [(row["claim"], row["evidence"], row["label"] == "SUPPORTS") for row in read_lines(path)]


def read_pages(path: Path) -> list[list[str]]:
    """Sentences of Wikipedia, several from one page."""
    rows = ([*row["gold_evidence"], *row["retrieved_evidence"][:6]] for row in read_lines(path))
    return [list(dict.fromkeys(one["text"] for one in row)) for row in rows]
