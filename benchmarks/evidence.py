"""How many of the claims and answers that hira accepts are right, and how many right ones it accepts.

    python benchmarks/evidence.py [--passages FILE] [--questions FILE] [--squad FILE] [--wice FILE] [--expertqa FILE]
        [--answers FILE...] [--model M [--base-url URL]] [--write]

Every set that is not named is left out and said to be. `--passages` are public paragraphs (JSON Lines with `title` and
`text`): claims are made of the second half, which nobody looks at while the check is changed; `--half first` is for
development. `--answers` are recordings of `benchmarks/public.py`, whose questions and documents come from
`--squad` (dev-v2.0.json, asked of `offline` too), `--questions` and `--passages`. `--model` takes the exam of verifiers
and, if it passes, judges `--limit` claims of each human-labelled set.
"""

import argparse
import asyncio
import json
import os
import platform
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from claims import DOMAINS, generate_claims
from edits import edit_paragraphs, read_paragraphs
from labelled import read_expertqa, read_wice
from real.sets import read_lines, write_articles, write_passages

from hira import Hira
from hira.agents.exam import take_exam
from hira.agents.model_verifier import ModelVerifier
from hira.agents.run_context import RunContext, RunOptions
from hira.evidence import (
    Judgement,
    LexicalVerifier,
    Source,
    SourcedClaim,
    Sources,
    Verdict,
    find_lacking,
    is_accepted,
    is_refusal,
    verify,
)
from hira.evidence.passages import split_sentences
from hira.runtime.endpoints import find_model
from hira.runtime.factory import configure_roles
from hira.runtime.settings import Settings, load

RESULTS = Path(__file__).parent / "results" / "evidence.md"
RECORDED = Path(__file__).parent / "data" / "real" / "public.jsonl"
OWN = RECORDED.with_name("answers.jsonl")
"""Answers of small models over our own documents, each with the text that it cites and what people say of it."""
TESTERS = Path(__file__).parent / "data" / "testers.jsonl"
"""Questions and answers, right and wrong ones, that testers wrote over documents of their own."""
TESTED = TESTERS.with_name("testers_documents.jsonl")
"""Those documents, with the text that hira reads in them."""
LABEL = str(Verdict.SUPPORTED)
ARTICLES = 12
"""Articles of SQuAD 2.0 that the recorded questions are about."""
HOW = {
    "passages": "JSON Lines with title and text: paragraphs of Wikipedia, as HippoRAG's repository carries them",
    "wice": "code_and_resources/entailment_inputs/oracle_chunks/claim/dev.jsonl of github.com/ryokamoi/wice",
    "expertqa": "data/lfqa/rand_val.jsonl of github.com/chaitanyamalaviya/ExpertQA",
    "questions": "JSON Lines with id, question, answer, aliases: HotpotQA and MuSiQue, as HippoRAG carries them",
    "answers": f"recordings of benchmarks/public.py, {RECORDED.name} by default",
    "squad": "dev-v2.0.json of SQuAD 2.0",
}
EACH = 400
"""Claims of each form that are made from public paragraphs."""
SETS = {
    "mix": "second tester, an ordinary mix",
    "aimed": "second tester, aimed at faults",
    "first": "first tester, mostly aimed at faults",
    "third": "third tester, mostly aimed at faults",
    "fourth": "fourth tester, an ordinary mix (looked at)",
    "fourth_aside": "fourth tester, an ordinary mix (kept aside)",
}
NOTES = """\
"Label" are claims about generated notes ("- **Manager:** Ada Holm" below a heading): true ones, ones with the value
of another label or of another heading, and reversed ones ("Arlen is Ada Holm's manager"). "Exchange" swaps the two
names of a sentence that begins with one, and asks the question to which the sentence itself is the answer.

"People's answers" are the annotators' short answers to the questions of SQuAD 2.0, each against its own paragraph:
right ones, and plausible ones to questions that the paragraph does not answer.

The testers had not seen the code. Each wrote documents, questions, and right and wrong answers:
`benchmarks/data/testers.jsonl`. The ordinary mix has the kinds of answers that small models produce. The rules were
written without it, except for two repairs: it had four wrong answers that were accepted, now there are two. The
answers aimed at faults led to many repairs, so their figures say less about new answers. The fourth wrote an ordinary
mix over 14 documents; every other document was looked at when rules were changed, the others were not."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with its source and what people, or its generator, say of it."""

    text: str
    source: Source
    true: bool
    question: str = ""


def judge(claims: Sequence[Claim]) -> list[Judgement]:
    """Return the judgements by words, each source read anew."""
    verifier = LexicalVerifier()
    return [verifier.judge([SourcedClaim(claim.text, (claim.source,))], claim.question)[0] for claim in claims]


async def ask_model(claims: Sequence[Claim], settings: Settings) -> tuple[str, list[Judgement]]:
    """Return the score of the exam, and the judgements of words with the model; none if it did not pass."""
    configs, opened = configure_roles(await find_model(settings), {})
    try:
        score = await take_exam(RunContext(configs))
        print(f"exam: {score.describe()}: {'passed' if score.passed else 'not passed'}")
        if not score.passed:
            return score.describe(), []
        verifier = ModelVerifier(RunContext(configs, options=RunOptions(exam=False)))
        judged = [(await verifier.verify([SourcedClaim(claim.text, (claim.source,))], ""))[0] for claim in claims]
        return score.describe(), judged
    finally:
        for policy in opened:
            await policy.aclose()


def format_share(some: int, all_of_them: int) -> str:
    return f"{some} of {all_of_them} ({some / all_of_them:.1%})" if all_of_them else "–"


def format_judged(name: str, claims: Sequence[Claim], judged: Sequence[Judgement]) -> str:
    """Return a row: precision and recall of `supported`, and balanced accuracy, which counts both errors alike."""
    held = [judgement.verdict.holds for judgement in judged]
    right = sum(holds and claim.true for claim, holds in zip(claims, held, strict=True))
    true = sum(claim.true for claim in claims)
    recall, accepts = right / true, (sum(held) - right) / (len(claims) - true)
    row = f"| {name}: {len(claims)} | {true} | {format_share(right, sum(held))} | {recall:.1%} | {accepts:.1%} "
    return f"{row}| {(recall + 1 - accepts) / 2:.3f} |"


def format_edits(paragraphs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the rows of claims that are made from paragraphs."""
    forms: dict[str, list[Claim]] = defaultdict(list)
    for edit in edit_paragraphs(paragraphs, each=EACH):
        source = Source("paragraph.md", edit.title, edit.evidence, "file" if edit.kind == "file" else "page", "s1")
        forms[edit.form].append(Claim(edit.claim, source, edit.true, edit.question))
    yield from (format_accepted(form, claims) for form, claims in forms.items())


def format_generated() -> Iterator[str]:
    """Yield the rows of generated claims, whose true ones are worded otherwise than their source."""
    forms: dict[str, list[Claim]] = defaultdict(list)
    for domain in DOMAINS:
        for row in generate_claims(domain, pages=40, seed=2):
            forms[f"generated: {row.form}"].append(
                Claim(row.claim, Source("g", "", row.evidence, id="s1"), row.supported)
            )
    yield from (format_accepted(form, claims) for form, claims in sorted(forms.items()))


def format_accepted(form: str, claims: Sequence[Claim]) -> str:
    accepted = sum(judgement.verdict.holds for judgement in judge(claims))
    return f"| {form} | {'accepted' if claims[0].true else 'rejected'} | {format_share(accepted, len(claims))} |"


def read_questions(args: argparse.Namespace) -> dict[str, str]:
    """Return the public questions by their id, as `benchmarks/public.py` names them."""
    questions = {}
    if args.squad:
        articles = json.loads(args.squad.read_text(encoding="utf-8"))["data"]
        asked = (row for article in articles for part in article["paragraphs"] for row in part["qas"])
        questions |= {f"squad-{row['id']}": row["question"] for row in asked}
    if args.questions:
        questions |= {row["id"]: row["question"] for row in read_lines(args.questions)}
    return questions


def read_answers(args: argparse.Namespace, folder: Path) -> Iterator[tuple[dict[str, Any], str, Sources]]:
    """Yield recorded answers with their question and with the sources that were read, whose text comes from the public
    data. Answers to questions of a set that is not named are left out."""
    if args.squad:
        write_articles(args.squad, folder / "squad", ARTICLES)
    if args.questions and args.passages:
        write_passages(args.passages, folder / "multihop")
    questions = read_questions(args)
    for row in (row for path in args.answers for row in read_lines(path)):
        if "claim" in row:
            source = Source("document.md", "", row["evidence"], "file", "s1")
            about = {"set": "own documents", "workflow": "all", "right": row["label"] == LABEL, "answerable": True}
            yield {**about, "answer": row["claim"]}, row["question"], Sources({"s1": source})
            continue
        if row["id"] not in questions or not (folder / row["set"]).is_dir():
            continue
        sources = Sources()
        for kept in row["sources"]:
            whole = (folder / row["set"] / kept["document"]).read_text(encoding="utf-8")
            lines = [part if isinstance(part, str) else whole[part[0] : part[1]] for part in kept["text"]]
            source = Source(kept["document"], kept["title"], "\n".join(lines), "file", kept["id"])
            sources.read[source.id] = source
        yield row, questions[row["id"]], sources


def accepts(answer: str, sources: Sources, question: str) -> bool:
    """Return whether words alone accept an answer (exit code 0)."""
    citations = verify(answer, sources, question)
    return not is_refusal(answer) and is_accepted(citations) and not find_lacking(citations, question)


def format_written(path: Path) -> Iterator[str]:
    """Yield the rows of answers to questions about a paragraph, the short ones that people wrote and the sentences that
    have them: right ones, and plausible ones to questions that the paragraph does not answer. Rules were tuned on every
    other article; the rest is shown apart."""
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    for name, half in (("tuned on", articles[::2]), ("kept aside", articles[1::2])):
        held: dict[tuple[str, str], list[bool]] = defaultdict(list)
        for article in half:
            for part in article["paragraphs"]:
                source = Source("article.md", article["title"].replace("_", " "), part["context"], "file", "s1")
                for row in part["qas"]:
                    form = "plausible_answers" if row["is_impossible"] else "answers"
                    for answer in row.get(form, ())[:1]:
                        whole = find_sentence(part["context"], answer["answer_start"])
                        for length, text in (("answers", answer["text"]), ("sentences", whole)):
                            accepted = accepts(f"{text} [s1]", Sources({"s1": source}), row["question"])
                            held[length, form].append(accepted)
        for length in ("answers", "sentences"):
            for form, kind, should in (
                ("answers", "right", "accepted"), ("plausible_answers", "plausible", "rejected")
            ):  # fmt: skip
                share = format_share(sum(held[length, form]), len(held[length, form]))
                yield f"| people's {length}, {kind} ({name}) | {should} | {share} |"


def find_sentence(text: str, position: int) -> str:
    """Return the sentence of a text that has this position."""
    end = 0
    for sentence in split_sentences(text):
        start = text.find(sentence, end)
        end = start + len(sentence) if start >= 0 else end
        if start <= position < end:
            return sentence
    return ""


def format_answers(args: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Yield a row for each set of recorded answers: which are accepted (exit code 0) by words alone."""
    sets: dict[str, list[tuple[bool, bool, bool]]] = defaultdict(list)
    for row, question, sources in read_answers(args, folder):
        accepted = accepts(row["answer"], sources, question)
        sets[f"{row['set']}, {row['workflow']}"].append((accepted, row["right"], row["answerable"]))
    for name, rows in sets.items():
        accepted, right = [row for row in rows if row[0]], [row for row in rows if row[1]]
        unanswerable = [row for row in rows if not row[2]]
        cells = (
            f"{len(rows)}", f"{len(right)}", format_share(sum(row[1] for row in accepted), len(accepted)),
            format_share(sum(row[0] for row in right), len(right)),
            format_share(sum(row[0] for row in unanswerable), len(unanswerable)),
        )  # fmt: skip
        yield f"| {name} | {' | '.join(cells)} |"


def format_testers() -> Iterator[str]:
    """Yield a row for each set of answers that testers wrote: which are accepted (exit code 0) by words alone."""
    documents = list(read_lines(TESTED))
    sets: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for row in read_lines(TESTERS):
        read = Sources()
        for document in documents:  # of the third tester a folder
            if document["document"].startswith(row["document"]):
                read.add(Source(document["document"], document["title"], document["text"], "file"))
        sets[row["set"]].append((accepts(row["answer"], read, row["question"]), row["right"]))
    for name, title in SETS.items():
        accepted = [right for held, right in sets[name] if held]
        right = sum(right for _, right in sets[name])
        wrong = len(sets[name]) - right
        cells = (
            f"{right}", f"{wrong}", format_share(sum(accepted), len(accepted)),
            format_share(sum(accepted), right), format_share(len(accepted) - sum(accepted), wrong),
        )  # fmt: skip
        yield f"| {title} | {' | '.join(cells)} |"


async def count_answers(path: Path, articles: int = 12, questions: int = 20) -> Iterator[str]:
    """Return rows that count the questions of each kind that `offline` answers over the articles of SQuAD 2.0."""
    read = json.loads(path.read_text(encoding="utf-8"))["data"][:articles]
    answered: dict[str, list[bool]] = defaultdict(list)
    for article, other in zip(read, [*read[1:], read[0]], strict=True):
        own = [asked for part in article["paragraphs"] for asked in part["qas"]]
        kinds = {
            "answerable": [asked["question"] for asked in own if not asked["is_impossible"]],
            "unanswerable, written by people": [asked["question"] for asked in own if asked["is_impossible"]],
            "of another article": [asked["question"] for part in other["paragraphs"] for asked in part["qas"]],
        }
        with TemporaryDirectory() as folder:
            text = "\n\n".join(part["context"] for part in article["paragraphs"])
            Path(folder, "article.md").write_text(f"# {article['title']}\n\n{text}", encoding="utf-8")
            settings = Settings(model="offline", docs=(Path(folder),), journal=None, cache=None)
            async with Hira(settings=settings, workflow="react") as hira:
                for kind, listed in kinds.items():
                    for question in random.Random(0).sample(listed, min(questions, len(listed))):
                        answered[kind].append((await hira.ask(question)).status == "answered")
    return (f"| {kind} | {format_share(sum(held), len(held))} |" for kind, held in answered.items())


def build_tables(args: argparse.Namespace) -> Iterator[str]:
    """Yield the tables of all sets that are named."""
    labelled = (("WiCE dev", args.wice, read_wice), ("ExpertQA val", args.expertqa, read_expertqa))
    judged = {
        name: [Claim(text, Source(name, "", evidence, id="s1"), true) for text, evidence, true in read(path)]
        for name, path, read in labelled
        if path
    }
    if judged:
        rows = [format_judged(f"{name}, words alone", claims, judge(claims)) for name, claims in judged.items()]
        if args.model:
            chosen = {"model": args.model, **({"base_url": args.base_url} if args.base_url else {})}
            some = {
                name: random.Random(0).sample(claims, min(args.limit, len(claims))) for name, claims in judged.items()
            }
            settings = load(chosen, os.environ, Path.cwd(), Path.home())
            score, rulings = asyncio.run(ask_model([claim for claims in some.values() for claim in claims], settings))
            for name, claims in some.items() if rulings else ():
                rows.append(format_judged(f"{name}, with {Path(args.model).name}", claims, rulings[: len(claims)]))
                del rulings[: len(claims)]
            if not rulings and len(rows) == len(judged):
                yield f"{Path(args.model).name} did not pass the exam ({score}): its verdicts do not count."
        columns = (
            "claims|true|accepted that are true (precision)|true that are accepted|false accepted|balanced accuracy"
        )
        yield "\n".join([f"| {' | '.join(columns.split('|'))} |", "|---" * 6 + "|", *rows])
    with TemporaryDirectory() as folder:
        rows = list(format_answers(args, Path(folder)))
    if rows:
        columns = "recorded answers|asked|right|accepted that are right|right that are accepted|unanswerable accepted"
        yield "\n".join([f"| {' | '.join(columns.split('|'))} |", "|---" * 6 + "|", *rows])
    columns = "answers of testers|right|wrong|accepted that are right|right that are accepted|wrong accepted"
    yield "\n".join([f"| {' | '.join(columns.split('|'))} |", "|---" * 6 + "|", *format_testers()])
    rows = list(format_generated())
    if args.passages:
        paragraphs = read_paragraphs(args.passages)
        middle = len(paragraphs) // 2
        half = paragraphs[:middle] if args.half == "first" else paragraphs[middle:]
        rows = [*format_edits(half), *rows]
    if args.squad:
        rows = [*rows, *format_written(args.squad)]
    yield "\n".join(["| claims | should be | accepted |", "|---|---|---|", *rows])
    if args.squad:
        rows = list(asyncio.run(count_answers(args.squad)))
        yield "\n".join(["| questions over SQuAD 2.0 | answered by `offline` |", "|---|---|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("passages", "questions", "wice", "expertqa", "squad"):
        parser.add_argument(f"--{name}", type=Path, help=HOW[name])
    parser.add_argument("--half", choices=["first", "second"], default="second", help="of the paragraphs")
    parser.add_argument("--answers", type=Path, nargs="*", default=[OWN, RECORDED], help=HOW["answers"])
    parser.add_argument("--model", help="a model that verifies, as in `hira ask --model`")
    parser.add_argument("--base-url", help="its endpoint")
    parser.add_argument("--limit", type=int, default=60, help="claims of each set for the model")
    parser.add_argument("--write", action="store_true", help=f"write the figures to {RESULTS.name}")
    args = parser.parse_args()
    for name, how in HOW.items():
        if not getattr(args, name):
            print(f"not measured without --{name} FILE: {how}")
    tables = "\n\n".join(build_tables(args))
    print(tables)
    if args.write:
        options = " ".join(f"--{name} FILE" for name in (*HOW, "model") if getattr(args, name))
        where = f"Python {platform.python_version()} on {platform.system()}"
        head = f"# The check of claims\n\n`python benchmarks/evidence.py {options} --write`, {where}."
        RESULTS.write_text(f"{head}\n\n{tables}\n\n{NOTES}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
