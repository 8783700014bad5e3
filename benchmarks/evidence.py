"""How well claims are told apart that a text supports and does not support, beside counting shared words.

    python benchmarks/evidence.py [--wice FILE] [--expertqa FILE] [--answers FILE] [--squad FILE]
        [--model M [--base-url URL]]

`benchmarks/labelled.py` names the repositories that publish WiCE and ExpertQA; give a file of theirs, or JSON Lines
with `claim`, `evidence` (a list) and `label`. `--answers` reads recorded answers of models in the same form, with the
`question` if there is one. With `--model`, a model judges `--limit` claims of the first of them too, one at a time.
Generated claims need no file. No claim here was used to fit the weights; the domains `rivers` and `medicine` were not
used in any form.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from claims import DOMAINS, generate_claims
from labelled import read_expertqa, read_lines, read_wice

from hira import Hira
from hira.agents.run_context import RunContext
from hira.agents.verifier import ModelVerifier
from hira.evidence import Judgement, Source, SourcedClaim
from hira.evidence.lexical import load_weights, score_claim
from hira.evidence.passages import Passages
from hira.runtime.endpoints import find_model
from hira.runtime.factory import configure_roles
from hira.runtime.settings import Settings, load

RESULTS = Path(__file__).parent / "results" / "evidence.md"
UNSEEN = ("rivers", "medicine")
HOW = {
    "wice": "code_and_resources/entailment_inputs/oracle_chunks/claim/dev.jsonl of github.com/ryokamoi/wice",
    "expertqa": "data/lfqa/rand_val.jsonl of github.com/chaitanyamalaviya/ExpertQA",
}
BEFORE = """Before, measured on the rules that this check replaced:

| claims | balanced accuracy | recall of supported | true called contradicted | counting shared words |
|---|---|---|---|---|
| WiCE, test half | 0.536 | 0.07 | 10% | 0.638 |
| ExpertQA, test half | 0.504 | 0.03 | 5% | 0.576 |

Of 200 facts swapped between neighbouring sentences, they accepted 200."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim with its evidence and what people, or its generator, say of it."""

    text: str
    evidence: str
    supported: bool
    question: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of one set of claims, the word overlaps of the same claims, and CPU milliseconds a claim; 0 where a
    model took most of the time."""

    claims: Sequence[Claim]
    scores: Sequence[Judgement]
    overlaps: Sequence[float]
    milliseconds: float

    def rate(self, verdict: str, *, supported: bool) -> float:
        """The share of a verdict among the claims that are, or are not, supported."""
        found = [one.verdict == verdict for claim, one in self.pairs() if claim.supported is supported]
        return sum(found) / len(found) if found else 0.0

    def pairs(self) -> list[tuple[Claim, Judgement]]:
        """Claims with their scores."""
        return list(zip(self.claims, self.scores, strict=True))

    @property
    def balanced(self) -> float:
        """Balanced accuracy of `supported` against every other verdict."""
        return (self.rate("supported", supported=True) + 1 - self.rate("supported", supported=False)) / 2

    def share(self, values: Sequence[float], threshold: float, *, supported: bool) -> float:
        """The share of the claims that are, or are not, supported whose value reaches the threshold."""
        found = [
            value >= threshold for claim, value in zip(self.claims, values, strict=True) if claim.supported is supported
        ]
        return sum(found) / len(found) if found else 0.0

    def balance(self, values: Sequence[float], threshold: float) -> float:
        """Balanced accuracy of accepting the claims whose value reaches the threshold."""
        accepts = self.share(values, threshold, supported=False)
        return (self.share(values, threshold, supported=True) + 1 - accepts) / 2

    def balance_overlap(self) -> tuple[float, float]:
        """Balanced accuracy of counting shared words, at the threshold that is best for these very claims."""
        return max((self.balance(self.overlaps, step / 100), step / 100) for step in range(1, 101))


def count_shared(claim: str, evidence: str) -> float:
    """The share of a claim's words of four letters and more, by their first six, that occur in the evidence."""
    words, there = ([word[:6] for word in re.findall(r"\w{4,}", text.lower())] for text in (claim, evidence))
    known = set(there)
    return sum(word in known for word in words) / len(words) if words else 0.0


def measure(claims: Sequence[Claim]) -> Result:
    """Check every claim, each against a text that is read anew."""
    began = time.process_time()
    scores = [score_claim(one.text, Passages(one.evidence), question=one.question) for one in claims]
    spent = (time.process_time() - began) / len(claims) * 1000
    return Result(claims, scores, [count_shared(one.text, one.evidence) for one in claims], spent)


def choose_claims(claims: Sequence[Claim], limit: int) -> list[Claim]:
    """The first claims of a set, half of them supported."""
    halves = [[one for one in claims if one.supported is side][: limit // 2] for side in (True, False)]
    return [one for half in halves for one in half]


async def ask_model(claims: Sequence[Claim], settings: Settings) -> Result:
    """The same measures with the verdicts of a model, one claim a call."""
    configs, own = configure_roles(await find_model(settings), {})
    verifier, judged = ModelVerifier(RunContext(configs), every=True), list[Judgement]()
    try:
        for one in claims:
            source = Source("evidence", "", one.evidence, id="s1")
            judged += await verifier.verify([SourcedClaim(one.text, (source,))], one.question)
    finally:
        for policy in own:
            await policy.aclose()
    if failed := {one.reason for one in judged if one.verdict == "unchecked" and one.reason}:
        print(f"unchecked claims: {'; '.join(sorted(failed))}")
    scores = list(judged)
    return Result(claims, scores, [count_shared(one.text, one.evidence) for one in claims], 0.0)


def format_judged(results: dict[str, Result]) -> str:
    """The table of claims that people judged."""
    columns = (
        "claims|supported|balanced accuracy|recall of supported|false accepts|false rejects|true called contradicted"
    )
    names = [*columns.split("|"), "ms a claim", "counting shared words"]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for name, one in results.items():
        recall, accepts = one.rate("supported", supported=True), one.rate("supported", supported=False)
        contradicted = one.rate("contradicted", supported=True)
        lines.append(
            f"| {name}: {len(one.claims)} | {sum(claim.supported for claim in one.claims)} | {one.balanced:.3f} "
            f"| {recall:.2f} | {accepts:.2f} | {1 - recall:.2f} | {contradicted:.1%} | {one.milliseconds or '–':.2} "
            f"| {one.balance_overlap()[0]:.3f} |"
        )
    return "\n".join(lines)


def format_curve(judged: dict[str, Result], generated: Result) -> str:
    """What other thresholds would give: balanced accuracy and recall of judged claims, and swaps accepted."""
    swaps = [score.score for claim, score in generated.pairs() if not claim.supported]
    lines = [f"| threshold | {' | '.join(judged)} | generated swaps accepted |", "|---" * (len(judged) + 2) + "|"]
    for threshold in (0.34, 0.37, 0.4, load_weights()["threshold"], 0.46, 0.49, 0.52):
        cells = []
        for one in judged.values():
            scores = [score.score for score in one.scores]
            recall = one.share(scores, threshold, supported=True)
            cells.append(f"{one.balance(scores, threshold):.3f}, recall {recall:.2f}")
        share = sum(score >= threshold for score in swaps) / len(swaps)
        lines.append(f"| {threshold:.2f} | {' | '.join(cells)} | {share:.1%} |")
    return "\n".join(lines)


def format_generated() -> tuple[str, Result]:
    """The table of generated claims, in the fitted and in the unseen domains, and the results of the swaps."""
    lines = [
        "| form | should be | claims | accepted | called contradicted | accepted, unseen domains | by shared words |",
        "|---|---|---|---|---|---|---|",
    ]
    forms: dict[str, list[tuple[str, Claim]]] = defaultdict(list)
    for domain in DOMAINS:
        for row in generate_claims(domain, pages=40, seed=2):
            forms[row.form].append((domain, Claim(row.claim, row.evidence, row.supported)))
    every = measure([claim for rows in forms.values() for _, claim in rows])
    threshold = every.balance_overlap()[1]
    for form, rows in sorted(forms.items(), key=lambda entry: (not entry[1][0][1].supported, entry[0])):
        supported = rows[0][1].supported
        whole = measure([claim for _, claim in rows])
        unseen = measure([claim for domain, claim in rows if domain in UNSEEN])
        overlap = sum(value >= threshold for value in whole.overlaps) / len(rows)
        lines.append(
            f"| {form} | {'accepted' if supported else 'rejected'} | {len(rows)} "
            f"| {whole.rate('supported', supported=supported):.1%} "
            f"| {whole.rate('contradicted', supported=supported):.1%} "
            f"| {unseen.rate('supported', supported=supported):.1%} | {overlap:.1%} |"
        )
    return "\n".join(lines), measure([claim for _, claim in forms["swap"]])


async def count_answers(path: Path, articles: int = 12, questions: int = 20) -> str:
    """How many questions of each kind `offline` answers over the articles of SQuAD 2.0, one at a time: their own, those
    that people wrote to look answerable and are not, and those of the next article."""
    read = json.loads(path.read_text(encoding="utf-8"))["data"][:articles]
    asked: dict[str, list[bool]] = defaultdict(list)
    for article, other in zip(read, [*read[1:], read[0]], strict=True):
        own = [one for part in article["paragraphs"] for one in part["qas"]]
        kinds = {
            "answerable": [one["question"] for one in own if not one["is_impossible"]],
            "unanswerable, written by people": [one["question"] for one in own if one["is_impossible"]],
            "of another article": [one["question"] for part in other["paragraphs"] for one in part["qas"]],
        }
        with TemporaryDirectory() as folder:
            text = "\n\n".join(part["context"] for part in article["paragraphs"])
            Path(folder, "article.md").write_text(f"# {article['title']}\n\n{text}", encoding="utf-8")
            settings = Settings(model="offline", docs=(Path(folder),), journal=None, cache=None)
            async with Hira(settings=settings, workflow="react") as hira:
                for kind, listed in kinds.items():
                    for question in random.Random(0).sample(listed, min(questions, len(listed))):
                        asked[kind].append((await hira.ask(question)).status == "answered")
    lines = ["| questions over SQuAD 2.0 | asked | answered by `offline` |", "|---|---|---|"]
    lines += [f"| {kind} | {len(found)} | {sum(found) / len(found):.1%} |" for kind, found in asked.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the check of claims.")
    parser.add_argument("--wice", type=Path, help=HOW["wice"])
    parser.add_argument("--expertqa", type=Path, help=HOW["expertqa"])
    parser.add_argument(
        "--answers", type=Path, help="recorded answers: JSON Lines with claim, evidence, label, question"
    )
    parser.add_argument("--squad", type=Path, help="questions for `offline`: dev-v2.0.json of SQuAD 2.0")
    parser.add_argument("--model", help="a model that judges claims of the files, as in `hira ask --model`")
    parser.add_argument("--base-url", help="its endpoint")
    parser.add_argument("--limit", type=int, default=30, help="claims for the model, half of them supported")
    parser.add_argument("--write", action="store_true", help=f"write the figures to {RESULTS.name}")
    args = parser.parse_args()
    judged: dict[str, Result] = {}
    for name, path, read in (("WiCE dev", args.wice, read_wice), ("ExpertQA val", args.expertqa, read_expertqa)):
        if path:
            judged[name] = measure([Claim(*row) for row in read(path)])
        else:
            option = name.split()[0].lower()
            print(f"{name} is not measured: give --{option} FILE, which is {HOW[option]}")
    if args.answers:
        rows = list(read_lines(args.answers))
        judged["answers of models"] = measure(
            [
                Claim(row["claim"], "\n\n".join(row["evidence"]), row["label"] == "supported", row.get("question", ""))
                for row in rows
            ]
        )
    curve = dict(judged)
    if args.model and judged:
        chosen = {"model": args.model, **({"base_url": args.base_url} if args.base_url else {})}
        settings = load(chosen, os.environ, Path.cwd(), Path.home())
        name, one = next(iter(judged.items()))
        first = choose_claims(one.claims, args.limit)
        judged[f"{name}, some by words"] = measure(first)
        judged[f"{name}, the same by {Path(args.model).name}"] = asyncio.run(ask_model(first, settings))
    generated, swaps = format_generated()
    shown = "\n\n".join([format_judged(judged), generated, format_curve(curve, swaps)] if judged else [generated])
    if args.squad:
        shown += f"\n\n{asyncio.run(count_answers(args.squad))}"
    print(shown)
    if args.write:
        where = f"Python {platform.python_version()} on {platform.system()}"
        command = (
            "`python benchmarks/evidence.py --wice FILE --expertqa FILE --squad FILE --model M --base-url URL --write`"
        )
        notes = (
            "Counting shared words has its threshold from the very claims it is measured on; the check has one for all "
            'of them. Reading the text is part of the milliseconds. A wrong plain word (`word`: "caused fatigue" where '
            'the text says "caused nausea") looks like a paraphrase to both.'
        )
        text = f"# The check of claims\n\n{command}, {where}.\n\n{shown}\n\n{notes}\n\n{BEFORE}\n"
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
