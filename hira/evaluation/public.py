"""Public sets: their places on the hub, their columns, and their metrics.

They are fetched by `datasets` (extra `eval`), or read from a file of the same shape: `hira eval gaia=validation.jsonl`.
"""

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from hira.core.errors import AccessDenied, EndpointError, UsageError
from hira.evaluation.files import Item, parse_texts, read_rows, rows_of
from hira.journal.encoding import read_json

T = TypeVar("T")
Rows = list[Mapping[str, Any]]
QA = "RUC-NLPIR/FlashRAG_datasets"
REPORTS = "deepresearch-bench"
TEXT, MEDIA, FILES = "reasoning & web browsing", "multi-modality", "file understanding"
"""The capabilities of HiRA's Fig. 4."""


@dataclass(frozen=True, slots=True)
class PublicSet:
    hub: str
    """Its name on the hub."""
    split: str
    columns: Mapping[str, str]
    """The columns with the parts of an item."""
    config: str = ""
    metric: str = "hira"
    category: Callable[[Mapping[str, Any]], str] | None = None
    """Computes labels that no column has."""
    keep: Callable[[Mapping[str, Any]], bool] | None = None
    """Selects rows."""
    files: str = ""
    """The folder on the hub with the attached files of a `{split}`."""
    drop: tuple[str, ...] = ()
    """Columns that are left out."""
    ask: str = ""
    """The question if a row has only its material."""


def _info(row: Mapping[str, Any], name: str) -> str:
    info = row.get("info") or row.get("Info") or {}
    known = {str(key).lower(): value for key, value in info.items()} if isinstance(info, Mapping) else {}
    return str(known.get(name) or "").lower()


def _difficulty(row: Mapping[str, Any]) -> str:
    """Return difficulty and language of WebWalkerQA: `lang` in its rows, `Language` in its card."""
    language = _info(row, "lang") or _info(row, "language")
    language = {"english": "en", "chinese": "zh"}.get(language, language)
    return " | ".join(filter(None, (_info(row, "difficulty_level"), language)))


_SEEN_OR_HEARD = re.compile(r"image|picture|photo|video|audio|speech|vision|visual|\bocr\b|colou?r rec", re.IGNORECASE)


def _capability(row: Mapping[str, Any]) -> str:
    """Return the labels of HiRA's Table 1 and Fig. 4. Table 1 has the levels of questions without files; Fig. 4 splits
    all of GAIA by capability: files, or by the annotator's tools text alone (GAIA-text) or other media. Of the
    validation set this makes 101, 26 and 38; HiRA has 103, 24 and 38: its rule, which it does not give, counts two with
    "Audio capability" or "Computer vision" as text."""
    if row.get("file_name"):
        return FILES
    metadata = row.get("Annotator Metadata") or {}
    metadata = read_json(metadata) if isinstance(metadata, str) else metadata
    metadata = metadata if isinstance(metadata, Mapping) else {"Tools": metadata}
    media = _SEEN_OR_HEARD.search(str(metadata.get("Tools", "")))
    return f"level {row.get('Level')} | without file | {MEDIA if media else TEXT}"


_NATURAL = frozenset({"Math", "Physics", "Chemistry", "Biology/Medicine"})
_COMPUTING = frozenset({"Computer Science/AI", "Engineering"})


def _field(row: Mapping[str, Any]) -> str:
    """Return the subject, as in MARS, Table 1, and the field, as in HiRA, Table 1: natural sciences (NS), computer
    science and engineering (CE), and all others (SF). HiRA does not define them; its figures fit 323, 82 and 95 of
    500."""
    subject = str(row.get("category") or "Other")
    return f"{subject} | {'NS' if subject in _NATURAL else 'CE' if subject in _COMPUTING else 'SF'}"


def _qa(config: str, split: str) -> PublicSet:
    return PublicSet(QA, split, {"question": "question", "answer": "golden_answers", "id": "id"}, config)


SETS: Mapping[str, PublicSet] = {
    "gaia": PublicSet(
        "gaia-benchmark/GAIA",
        "validation",
        {"question": "Question", "answer": "Final answer", "id": "task_id", "files": "file_name"},
        "2023_all",
        category=_capability,
        files="2023/{split}",
        drop=("Annotator Metadata",),
    ),
    "webwalkerqa": PublicSet(
        "callanwu/WebWalkerQA",
        "main",
        {"question": "question", "answer": "answer"},
        metric="webwalker",
        category=_difficulty,
    ),
    "simpleqa": PublicSet("basicv8vc/SimpleQA", "test", {"question": "problem", "answer": "answer"}, metric="simpleqa"),
    "hle": PublicSet(
        "cais/hle",
        "test",
        {"question": "question", "answer": "answer", "id": "id"},
        metric="hle",
        category=_field,
        keep=lambda row: not row.get("image"),
        drop=("image_preview", "rationale_image", "rationale", "canary"),
    ),
    "frames": PublicSet(
        "google/frames-benchmark",
        "test",
        {"question": "Prompt", "answer": "Answer", "category": "reasoning_types"},
        metric="simpleqa",
    ),
    "musique": _qa("musique", "dev"),
    "hotpotqa": _qa("hotpotqa", "dev"),
    "2wikimultihop": _qa("2wikimultihopqa", "dev"),
    "bamboogle": _qa("bamboogle", "test"),
    "nq": _qa("nq", "test"),
    "triviaqa": _qa("triviaqa", "test"),
    "popqa": _qa("popqa", "test"),
    "pubmedqa": PublicSet(
        "qiaojin/PubMedQA",
        "train",
        {"question": "question", "answer": "final_decision", "id": "pubid"},
        "pqa_labeled",
    ),
    "cupcase": PublicSet(
        "ofir408/CupCase",
        "test",
        {"question": "clean_case_presentation", "answer": "correct_diagnosis"},
        ask="What is the diagnosis in this case?",
    ),
    "aime2025": PublicSet(
        "math-ai/aime25", "test", {"question": "problem", "answer": "answer", "id": "id"}, metric="numeric"
    ),
    "beyondaime": PublicSet(
        "ByteDance-Seed/BeyondAIME", "test", {"question": "problem", "answer": "answer"}, metric="numeric"
    ),
}
"""HLE: the text subset of 2,158 questions (2,154 in MARS's version)."""


def draw(items: Sequence[T], most: int | None, seed: int) -> tuple[T, ...]:
    """Draw a random sample, in the order of the set. The same seed draws the same one."""
    if most is None:
        return tuple(items)
    drawn = set(random.Random(seed).sample(range(len(items)), min(most, len(items))))
    return tuple(item for index, item in enumerate(items) if index in drawn)


def load_public(name: str, *, file: Path | None = None, split: str = "", config: str = "") -> tuple[Item, ...]:
    """Return all items of a set, from the hub or from a file of the same shape. Raises `AccessDenied` for a gated set,
    `UsageError` without the extra, `EndpointError` without the hub."""
    if name == REPORTS:
        return _reports(file)
    spec = SETS[name]
    if file:
        return items_of_rows(spec, rows_of(file), file.parent, name)
    split, config = split or spec.split, config or spec.config
    try:
        load_dataset = import_module("datasets").load_dataset
    except ImportError:
        fix = f"pip install 'hira[eval]', or read it from a file: hira eval {name}=FILE.jsonl"
        raise UsageError(f"{name} needs the package datasets, which is not installed", fix=fix) from None
    where = f"{spec.hub} on the hub" + (f", config {config}" if config else "") + f", split {split}"
    try:
        rows: Rows = [dict(row) for row in load_dataset(spec.hub, config or None, split=split)]
        folder, within = _folders(spec, rows, split) if spec.files else (Path(), Path())
    except Exception as error:
        raise _explain_failure(name, spec, where, error) from error
    return items_of_rows(spec, rows, folder, name, within=within)


def _reports(folder: Path | None) -> tuple[Item, ...]:
    """Read DeepResearch Bench from the `data` folder of its repository: queries, and, matched by prompt as in the
    benchmark, criteria and reference reports."""
    if folder is None or not (folder / "prompt_data" / "query.jsonl").is_file():
        fix = f"clone the benchmark's repository, then: hira eval {REPORTS}=deep_research_bench/data --workflow mams"
        raise UsageError(f"{REPORTS} is read from its repository's folder `data`", fix=fix)
    queries = rows_of(folder / "prompt_data" / "query.jsonl")
    criteria = {row.get("prompt"): row for row in rows_of(folder / "criteria_data" / "criteria.jsonl")}
    reports = rows_of(folder / "test_data" / "cleaned_data" / "reference.jsonl")
    references = {row.get("prompt"): row.get("article") for row in reports}
    columns = {"question": "prompt", "id": "id", "category": "language"}
    rows = []
    for row in queries:
        prompt = row.get("prompt")
        rows.append({**row, "criteria": criteria.get(prompt), "reference": references.get(prompt)})
    return tuple(read_rows(rows, folder, REPORTS, columns))


def items_of_rows(
    spec: PublicSet, rows: Iterable[Mapping[str, Any]], folder: Path, name: str, *, within: Path | None = None
) -> tuple[Item, ...]:
    """Return the rows as items. Their files are in `folder`, and no link leads out of `within` (`read_rows`)."""
    kept = [row for row in rows if spec.keep is None or spec.keep(row)]
    shaped = [{key: value for key, value in row.items() if key not in spec.drop} for row in kept]
    if spec.category:
        shaped = [{**row, "category": spec.category(full)} for row, full in zip(shaped, kept, strict=True)]
    if spec.ask:
        column = spec.columns["question"]
        shaped = [{**row, column: f"{spec.ask}\n\n{row[column]}"} if row.get(column) else row for row in shaped]
    columns = dict(spec.columns) | ({"category": "category"} if spec.category else {})
    present = {column for row in shaped for column in row}
    if missing := [columns[part] for part in ("question", "answer") if columns[part] not in present]:
        raise UsageError(
            f"{name} has no column {missing[0]!r}: its format is not the expected one",
            where=f"columns: {', '.join(sorted(present))}",
            fix="name them: --column question=NAME --column answer=NAME",
        )
    columns = {part: column for part, column in columns.items() if column in present}
    return tuple(read_rows(shaped, folder, name, columns, within=within))


def _folders(spec: PublicSet, rows: Rows, split: str) -> tuple[Path, Path]:
    """Fetch the files that the rows name; return the folder with links to them, and the cache that has them."""
    snapshot_download = import_module("huggingface_hub").snapshot_download
    files = spec.files.format(split=split)
    named = [f"{files}/{text}" for row in rows for text in parse_texts(row.get(spec.columns["files"]))]
    snapshot = Path(snapshot_download(spec.hub, repo_type="dataset", allow_patterns=named))
    return snapshot / files, snapshot.parents[2]  # CACHE/datasets--NAME/snapshots/REVISION


def _explain_failure(name: str, spec: PublicSet, where: str, error: Exception) -> Exception:
    """Return an error of hira's for one of the hub's packages, which have many types for few reasons."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    if "Gated" in type(error).__name__ or "gated" in text or "401" in text or "403" in text:
        fix = f"ask for access on the page of {spec.hub}, then log in with `hf auth login` or set HF_TOKEN"
        return AccessDenied(f"{name} is gated", where=where, fix=fix)
    if isinstance(error, ValueError | FileNotFoundError) and "split" in text.lower():
        return UsageError(f"{name} cannot be read: {text}", where=where, fix="name another with --split or --config")
    return EndpointError(f"{name} could not be fetched: {text}", where=where, fix=f"hira eval {name}=FILE.jsonl")
