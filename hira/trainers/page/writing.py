"""The page from what a run has recorded by now: metrics, exams, sample rollouts.

What models wrote stands in it as text only, and a policy in its head lets nothing run and nothing be loaded.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from hira.evaluation import page as evaluation
from hira.page_policy import digest
from hira.trainers import records
from hira.trainers.page.curves import Curve, curves

PAGE = "dashboard.html"
STEPS = 30
"""So many steps have their samples shown: the first ones, and the last."""
_SLOT = re.compile(r"\{\{(\w+)\}\}")
_PLOTS: tuple[tuple[str, str, bool], ...] = (
    ("Reward", "reward", False),
    ("Advantage, its size", "advantage_size", False),
    ("Tokens a conversation", "length", False),
    ("Tokens a turn", "tokens_per_turn", False),
    ("Turns", "turns", False),
    ("Entropy", "entropy", False),
    ("KL from the base", "kl", False),
    ("Clipped tokens", "clip_ratio/region", True),
    ("Share of the loss", "share", True),
    ("Log-probability, sampler against trainer", "sampler_drift", False),
)
_WHOLE: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("Verifiers: errors found", ("verifier1/recall", "verifier2/recall"), True),
    ("Verifiers: false alarms", ("verifier1/false_alarms", "verifier2/false_alarms"), True),
    ("Verifiers: right on solutions as they come", ("verifier1/natural", "verifier2/natural"), True),
    ("Correctors: wrong made right", ("corrector1/fixed", "corrector2/fixed"), True),
    ("Correctors: right made wrong", ("corrector1/harmed", "corrector2/harmed"), True),
    ("Groups without signal", ("dead_groups",), True),
    ("Rollouts that failed", ("agent_failed", "infra_failed", "unscored"), True),
    ("Rows", ("rows", "row_breaks", "rows_dropped"), False),
    ("Loss", ("loss",), False),
    ("Gradient norm", ("grad_norm",), False),
    ("Learning rate", ("learning_rate",), False),
    ("Seconds a step", ("rollout_seconds", "update_seconds"), False),
    ("Memory in GiB", ("rollout_peak_gib", "update_peak_gib"), False),
)


def written(folder: Path) -> Path:
    """Write the page anew; a reader never sees half of one."""
    path = folder / PAGE
    part = path.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_text(page(folder), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise records.unwritable(error, path) from error
    return path


def page(folder: Path) -> str:
    metrics = [one for one in records.read(folder / records.METRICS) if "loss" in one]
    exams = records.read(folder / records.EXAMS)
    taught = records.read(folder / "sft" / records.METRICS)
    style = _style()
    values = {
        "title": escape(f"{folder.resolve().name}: training"),
        "policy": escape(f"default-src 'none'; style-src {digest(style)}; base-uri 'none'; form-action 'none'"),
        "style": style,
        "heading": escape(folder.resolve().name),
        "about": escape(_about(metrics, exams)),
        "plots": "".join(_plots(metrics, exams, taught)),
        "samples": _samples(records.read(folder / records.ROLLOUTS)),
    }
    return _SLOT.sub(lambda slot: values[slot[1]], _file("page.html"))


def _about(metrics: Sequence[Mapping[str, Any]], exams: Sequence[Mapping[str, Any]]) -> str:
    told = [f"{metrics[-1]['step'] if metrics else 0} steps"]
    if len(exams) > 1:
        for name, called in (("sampled", "temperature 1"), ("greedy", "greedy")):
            first, last = exams[0].get(name), exams[-1].get(name)
            if first is not None and last is not None:
                told.append(f"held-out questions right, {called}: {100 * first:.0f} % → {100 * last:.0f} %")
    return "; ".join(told)


def _plots(
    metrics: Sequence[Mapping[str, Any]], exams: Sequence[Mapping[str, Any]], taught: Sequence[Mapping[str, Any]]
) -> list[str]:
    roles = sorted({name.removesuffix("/length") for one in metrics for name in one if name.endswith("/length")})
    right = {"temperature 1": _curve(exams, "sampled"), "greedy": _curve(exams, "greedy")}
    found = [curves("Held-out questions right", right, share=True)]
    parts = sorted({name for one in exams for name in one if name.startswith("sampled/")})
    alone = {name.removeprefix("sampled/"): _curve(exams, name) for name in parts if name != "sampled/accuracy"}
    found.append(curves("Held-out questions, parts of the exam", alone))
    found.append(curves("Right answers in training", {"all": _curve(metrics, "reward/accuracy")}, share=True))
    for title, name, share in _PLOTS:
        own = {role: _curve(metrics, f"{role}/{name}") for role in roles}
        whole = {"all": _curve(metrics, name)} if name == "reward" else {}
        found.append(curves(title, {**whole, **own}, share=share))
    tools = sorted({name for one in metrics for name in one if "/tool_success/" in name})
    success = {name.replace("/tool_success/", ": "): _curve(metrics, name) for name in tools}
    found.append(curves("Calls of tools that succeeded", success, share=True))
    forms = {name.removeprefix("reward/format/"): _curve(metrics, name)
             for name in ("reward/format/planner", "reward/format/workers")}  # fmt: skip
    found.append(curves("Calls that could be read", forms, share=True))
    for title, names, share in _WHOLE:
        found.append(curves(title, {_told(name): _curve(metrics, name) for name in names}, share=share))
    found.append(curves("Loss of the cold start", {"loss": _curve(taught, "loss")}))
    return found


def _told(name: str) -> str:
    """A metric's name as a line is called: that of the role, where it is one's own."""
    return name.partition("/")[0].replace("_", " ")


def _curve(found: Sequence[Mapping[str, Any]], name: str) -> Curve:
    return [(one["step"], one[name]) for one in found if isinstance(one.get(name), int | float)]


def _samples(rollouts: Sequence[Mapping[str, Any]]) -> str:
    steps = sorted({one["step"] for one in rollouts})
    kept = {*steps[: STEPS // 5], *steps[-STEPS + STEPS // 5 :]} if len(steps) > STEPS else set(steps)
    parts = []
    for step in sorted(kept, reverse=True):
        own = [one for one in rollouts if one["step"] == step]
        paid = ", ".join(_reward(one) for one in own)
        inner = "".join(map(_rollout, own))
        parts.append(f"<details><summary><b>step {step}</b><span>rewards {paid}</span></summary>{inner}</details>")
    return "".join(parts) or "<p class='about'>None yet.</p>"


def _reward(one: Mapping[str, Any]) -> str:
    return "–" if one.get("reward") is None else f"{one['reward']:.2f}"


def _rollout(one: Mapping[str, Any]) -> str:
    good = (one.get("reward") or 0) >= 0.5
    known = escape(" or ".join(map(str, one.get("references", ()))))
    answer = escape(str(one.get("answer") or one.get("error") or "no answer"))
    told = "".join(_conversation(part, one.get("advantages", {})) for part in one.get("conversations", ()))
    return (
        f'<div class="rollout {"all" if good else "none"}"><h3>{escape(str(one.get("question", "")))}</h3>'
        f"<p><b>{_reward(one)}</b> {answer} <i>known answer: {known}</i></p>{told}</div>"
    )


def _conversation(part: Mapping[str, Any], advantages: Mapping[str, float]) -> str:
    gained = advantages.get(part["conversation"])
    head = f"{part['conversation']}: {part['turns']} turns, {part['tokens']} tokens"
    head += f", advantage {gained:+.2f}" if gained is not None else ""
    said = "".join(
        f'<div class="said {escape(one["role"])}"><i>{escape(one["role"])}</i><pre>{escape(one["text"])}</pre></div>'
        for one in part.get("messages", ())
    )
    return f"<details class='talk'><summary>{escape(head)}</summary>{said}</details>"


def _style() -> str:
    shared = Path(evaluation.__file__).with_name("page.css").read_text(encoding="utf-8")
    return shared + _file("page.css")


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
