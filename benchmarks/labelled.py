"""Public claims with human labels, read from where they were published. None of them is kept in this repository.

| set | repository | file |
|---|---|---|
| WiCE | ryokamoi/wice | `code_and_resources/entailment_inputs/oracle_chunks/claim/dev.jsonl` |
| ExpertQA | chaitanyamalaviya/ExpertQA | `data/lfqa/rand_val.jsonl` |
"""

import re
from pathlib import Path

from real.sets import read_lines

Labelled = tuple[str, str, bool]
"""A claim, its evidence, and whether the evidence supports all of it."""
_MARK = re.compile(r"\s*\[\d+\]")


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
