"""Fit the weights of the lexical check (`hira/evidence/lexical_weights.json`) by logistic regression.

    python benchmarks/fit_evidence.py --wice CLONE --attribution CLONE --fever CLONE --pages CLONE [--write]

Each option is a folder with a clone of the repository that `benchmarks/labelled.py` names. Generated claims of four
domains join them; the other two domains and the development halves that `benchmarks/evidence.py` reads are not fitted.
Only numbers are written. Needs scikit-learn.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from claims import DOMAINS, Row, alter_sentences, generate_claims
from labelled import Labelled, read_attribution, read_fever, read_pages, read_wice_train
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from hira.evidence.lexical import compare, read_claim
from hira.evidence.passages import Passages

WEIGHTS = Path(__file__).parent.parent / "hira" / "evidence" / "lexical_weights.json"
COMMAND = "python benchmarks/fit_evidence.py --wice CLONE --attribution CLONE --fever CLONE --pages CLONE --write"
UNSEEN = ("rivers", "medicine")
SETS = {
    "wice": 8.0,
    "wice pairs": 8.0,
    "Stanford-GenSearch": 3.0,
    "AttrScore-GenSearch": 2.0,
    "HAGRID": 2.0,
    "AttributedQA": 0.5,
    "LFQA": 0.7,
    "fever": 0.5,
}
"""How much a set counts, all of its claims together. Sets that are not named count 1. Chosen, as the bands of lengths
are, for the sets that were left out of a fit in turn."""
FORMS = {"swap": 14.0, "name": 6.0, "paraphrase": 2.0, "word": 3.0}
LENGTHS = (0, 4, 8, 15, 10_000)
THRESHOLD = 0.43
"""Chosen on the development halves of WiCE and ExpertQA; `benchmarks/evidence.py` shows what its neighbours give."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One set: features, labels, numbers of words and forms of its claims."""

    names: tuple[str, ...]
    features: np.ndarray
    supported: np.ndarray
    lengths: np.ndarray
    forms: list[str]

    def weigh(self) -> np.ndarray:
        """Weights by which, within a band of lengths, support and its lack count the same: length tells nothing."""
        weights = np.zeros(len(self.supported))
        for low, high in pairwise(LENGTHS):
            band = (self.lengths > low) & (self.lengths <= high)
            for side in (band & self.supported, band & ~self.supported):
                if (band & self.supported).any() and (band & ~self.supported).any():
                    weights[side] = band.sum() / 2 / side.sum()
        weights = np.minimum(weights, 3 * np.quantile(weights, 0.99))
        return weights / weights.sum() * np.array([FORMS.get(form, 1.0) for form in self.forms])


def measure(rows: Iterable[Row | Labelled]) -> Measured:
    """The features of every claim of a set."""
    features, supported, lengths, forms = [], [], [], []
    text, passages = "", Passages("")
    for row in rows:
        claim, evidence, label, form = (
            (row.claim, row.evidence, row.supported, row.form) if isinstance(row, Row) else (*row, "")
        )
        if evidence != text:
            text, passages = evidence, Passages(evidence)
        tokens = read_claim(claim)
        compared = compare(tokens, passages, frozenset())
        features.append(compared.features if compared else {})
        supported.append(label)
        lengths.append(len({token.key for token in tokens if token.content}))
        forms.append(form)
    names = next(iter(filter(None, features)))
    table = np.array([[one.get(name, 0.0) for name in names] for one in features])
    return Measured(tuple(names), table, np.array(supported), np.array(lengths), forms)


def accepted(sets: Sequence[Measured], scores: Sequence[np.ndarray]) -> dict[str, float]:
    """The share of each form of generated claims that reaches the threshold."""
    found: dict[str, list[bool]] = defaultdict(list)
    for measured, score in zip(sets, scores, strict=True):
        for form, value in zip(measured.forms, score, strict=True):
            found[form].append(bool(value >= THRESHOLD))
    return {form: round(float(np.mean(values)), 3) for form, values in sorted(found.items())}


def fit(sets: Mapping[str, Measured]) -> LogisticRegression:
    """The regression over the claims of all sets, weighed by set, band of lengths and form."""
    return LogisticRegression(max_iter=5_000).fit(
        np.vstack([one.features for one in sets.values()]),
        np.concatenate([one.supported for one in sets.values()]),
        sample_weight=np.concatenate([1_000 * SETS.get(name, 1.0) * one.weigh() for name, one in sets.items()]),
    )


def leave_out(sets: Mapping[str, Measured], name: str) -> float:
    """Area under the ROC curve of a set when nothing of it is fitted; both sets of WiCE have the same pages."""
    rest = {other: one for other, one in sets.items() if other.removesuffix(" pairs") != name.removesuffix(" pairs")}
    return float(roc_auc_score(sets[name].supported, fit(rest).decision_function(sets[name].features)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the weights of the lexical check.")
    for option in ("wice", "attribution", "fever", "pages"):
        parser.add_argument(f"--{option}", type=Path, required=True, help="folder with a clone; see labelled.py")
    parser.add_argument("--write", action="store_true", help=f"write {WEIGHTS.name}")
    args = parser.parse_args()
    single, paired = read_wice_train(args.wice / "data/non_supported_tokens/train.jsonl")
    judged = read_attribution(
        args.attribution / "data/dev_all_subset_balanced.jsonl",
        args.attribution / "data/test_ood_all_subset_balanced.jsonl",
    )
    fever = read_fever(args.fever / "symmetric_v0.2/fever_symmetric_dev.jsonl")
    pages = read_pages(args.pages / "dataset/dev.jsonl")[:600]
    public = {"wice": single, "wice pairs": paired, **judged, "fever": fever}
    sets = {name: measure(rows) for name, rows in public.items()}
    sets["real pages"] = measure(alter_sentences(pages, seed=2))
    generated = {domain: measure(generate_claims(domain, pages=60, seed=1)) for domain in DOMAINS}
    sets |= {domain: one for domain, one in generated.items() if domain not in UNSEEN}
    model = fit(sets)

    def score(measured: Measured) -> np.ndarray:
        return model.predict_proba(measured.features)[:, 1]

    fitted = [generated[domain] for domain in DOMAINS if domain not in UNSEEN]
    unseen = [generated[domain] for domain in UNSEEN]
    for name, group in (("fitted", fitted), ("unseen", unseen)):
        print(f"{name} domains, accepted: {accepted(group, [score(one) for one in group])}")
    for name, one in sets.items():
        share = score(one) >= THRESHOLD
        balanced = (share[one.supported].mean() + (~share[~one.supported]).mean()) / 2
        left_out = f", left out: area under the curve {leave_out(sets, name):.3f}" if name in public else ""
        print(f"{name}: {len(share)} claims, balanced accuracy {balanced:.3f}{left_out}")
    weights = {name: round(float(value), 3) for name, value in zip(fitted[0].names, model.coef_[0], strict=True)}
    result = {
        "command": COMMAND,
        "claims": {name: len(one.supported) for name, one in sets.items()},
        "threshold": THRESHOLD,
        "bias": round(float(model.intercept_[0]), 3),
        "weights": weights,
    }
    print(json.dumps(result, indent=2))
    if args.write:
        WEIGHTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
