"""The figures of `gpu.py` as Markdown, of as many of its parts as there are."""

from typing import Any


def table(report: dict[str, Any]) -> str:
    """Each goal with what was measured for it, and what is missing."""
    parts = report["parts"]
    told = (
        f"`python benchmarks/training/gpu.py --write` on {report['device']}, torch {report['torch']}: "
        f"{report['parameters']:,} random weights (Qwen2.5-0.5B has 494,032,768), bf16 on a GPU, LoRA of rank "
        f"{report['rank']} on all linear layers, MATPO with hira's own workflow, documents and tools; what a turn ends "
        "with is the offline policy's, and every other rollout is right."
    )
    lines = ["# Training on one GPU", "", told, ""]
    lines += _memory([parts[name] for name in ("one", "two") if name in parts])
    lines += _speed(parts)
    if "sampling" in parts:
        drift = parts["sampling"]["drift"]
        lines += [f"Sampler and trainer differ by {drift:.1e} in the log-probability of a token.", ""]
    if report["failed"]:
        lines += ["Not measured:", "", *(f"- {name}: {why}" for name, why in report["failed"].items()), ""]
    return "\n".join(lines)


def _memory(runs: list[dict[str, Any]]) -> list[str]:
    if not runs:
        return []
    lines = [
        "| | planned GiB | measured GiB | off by, goal within 10 % | seconds | rows | worker's share of the loss |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        for phase in ("rollout", "update"):
            plan, peak = run["plan_gib"][phase], run[f"{phase}_peak_gib"]
            off = f"{plan / peak - 1:+.0%}" if peak else "not measured"
            lines.append(
                f"| {run['name']}, {phase} | {plan:.2f} | {peak:.2f} | {off} | {run[f'{phase}_seconds']:.1f} "
                f"| {run['rows']:.0f} | {run['worker_share']:.2f} |"
            )
    return [*lines, ""]


def _speed(parts: dict[str, Any]) -> list[str]:
    named = {name: parts[name] for name in ("updates", "sampling") if name in parts}
    if not named:
        return []
    lines = ["| tokens a second | hira | TRL | ratio, goal ≥ 0.9 |", "|---|---|---|---|"]
    for name, speeds in named.items():
        about = f"update, {speeds['rows']:.0f} rows" if name == "updates" else "sampling"
        lines.append(
            f"| {about} | {speeds['hira']:,.0f} | {speeds['trl']:,.0f} | {speeds['hira'] / speeds['trl']:.2f} |"
        )
    return [*lines, ""]
