"""The figures of `gpu.py` as Markdown, of as many of its parts as there are."""

from typing import Any

MATPO = (
    "With hira's own workflow, documents and tools; what a turn ends with is the offline policy's, and every other "
    "rollout is right."
)
WAYS = {
    "synchronous": "synchronous",
    "pipeline": "pipeline, whole replies, goal ≥ 1.3",
    "segments": "pipeline, segments, goal ≥ 1.5",
}


def table(report: dict[str, Any]) -> str:
    """Each goal with what was measured for it, and what is missing."""
    parts = report["parts"]
    told = (
        f"`python benchmarks/training/gpu.py --write` on {report['device']}, torch {report['torch']}: "
        f"{report['parameters']:,} random weights (Qwen2.5-0.5B has 494,032,768), bf16 on a GPU, LoRA of rank "
        f"{report['rank']} on all linear layers."
    )
    lines = ["# Training on one GPU", "", told, ""]
    if any(name in parts for name in ("one", "two", "updates", "sampling")):
        lines += [f"## MATPO\n\n{MATPO}", ""]
    lines += _memory([parts[name] for name in ("one", "two") if name in parts])
    lines += _speed(parts)
    if "sampling" in parts:
        drift = parts["sampling"]["drift"]
        lines += [f"Sampler and trainer differ by {drift:.1e} in the log-probability of a token.", ""]
    lines += _marsrl(parts)
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


TRAINED = (
    "| schedule | trained tokens a second | ÷ synchronous | from the start | updates a minute | updates "
    "| tokens an update | seconds of rollouts, update | sampled tokens a step | age, oldest, bound |"
)
ENGINE = (
    "| schedule | engine decodes in rollouts | while weights are updated | waits for the last replies, of all time "
    "| GiB in rollouts, update | sampler and trainer apart |"
)
COUNTED = (
    "Tokens and updates are counted after the first update, which fills the pipeline, and from the start beside it. "
    "Ages are those that rows tell of themselves, in updates. On one GPU engine and trainer share the weights: the "
    "pipeline gains by the rows that are decoded together, and not by decoding during updates."
)


def _marsrl(parts: dict[str, Any]) -> list[str]:
    """The ways of MarsRL, each against the synchronous schedule where that was measured."""
    runs = {name: parts[name] for name in WAYS if name in parts}
    if not runs:
        return []
    load = next(iter(runs.values()))["load"]
    told = (
        f"One adapter for all roles, {load['attempts']} members a group, 2 outputs picked, 5 steps. "
        f"Replies are as long as in the paper, divided by {load['scale']}. Lengths, verdicts and which solutions are "
        "right are drawn, the same for each problem in every way; tokens are sampled for real. An update of the "
        f"synchronous schedule takes {load['questions']} problem(s), the pipeline has {5 * load['questions']} under "
        f"way; the engine has {load['places']} places. Each way ended after {load['steps']} updates, or with that "
        f"after which {load['seconds']:g} s were over."
    )
    base = runs.get("synchronous", {}).get("trained_tokens_per_second")
    lines = ["## MarsRL: the agentic pipeline against the synchronous schedule", "", told, ""]
    lines += [*_head(TRAINED), *(_trained(run, base) for run in runs.values()), ""]
    lines += [*_head(ENGINE), *map(_engine, runs.values()), "", COUNTED, ""]
    if broken := {name: run["infra_failed"] for name, run in runs.items() if run["infra_failed"]}:
        lines += [
            f"{WAYS[name]}: up to {share:.0%} of an update's outputs were broken." for name, share in broken.items()
        ]
        lines.append("")
    return lines


def _head(names: str) -> list[str]:
    return [names, "|---" * names.count(" | ") + "|---|"]


def _trained(run: dict[str, Any], base: float | None) -> str:
    rate = run["trained_tokens_per_second"]
    ratio = f"{rate / base:.2f}" if base else "not measured"
    return (
        f"| {WAYS[run['name']]} | {rate:,.0f} | {ratio} | {run['trained_tokens_per_second_from_the_start']:,.0f} "
        f"| {run['updates_per_minute']:.2f} | {run['updates']} | {run['tokens_an_update']:,.0f} "
        f"| {run['rollout_seconds']:.1f}, {run['update_seconds']:.1f} | {run['tokens_a_step']:.1f} "
        f"| {run['staleness']:.2f}, {run['staleness_most']}, {run['staleness_bound']} |"
    )


def _engine(run: dict[str, Any]) -> str:
    return (
        f"| {WAYS[run['name']].partition(', goal')[0]} | {_share(run['decoding_in_rollouts'])} "
        f"| {_share(run['decoding_in_updates'])}, {run['steps_in_updates']} steps "
        f"| {_share(run['waiting_for_the_last'])} | {_gib(run['rollout_peak_gib'])}, {_gib(run['update_peak_gib'])} "
        f"| {run['sampler_drift']:.1e} |"
    )


def _share(share: float | None) -> str:
    return "not seen" if share is None else f"{share:.0%}"


def _gib(peak: float) -> str:
    return f"{peak:.2f}" if peak else "not measured"
