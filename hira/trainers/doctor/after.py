"""Rules over what a run leaves: metrics, sample rollouts, exams, checkpoints. While it runs, and afterwards."""

import math
from collections import defaultdict
from itertools import pairwise

from hira.trainers.doctor.seen import Finding, Rule, Seen, graded, mean, ok, unseen

BROADCAST = frozenset({"matpo", "mams", "mars"})
"""Recipes whose advantage follows from role and reward alone, within one question."""
EARLY = 10
DRIFT_WARNING, DRIFT_FAULT = 0.02, 0.2
PER_TURN = 8
"""Tokens of a turn beyond its letters: what ends it."""


def masks(seen: Seen) -> Finding:
    """A mask that is turned round trains on what tools wrote: then a role has sampled more tokens than it wrote
    bytes."""
    rule, wrong, looked = "masks", "", 0
    for one in seen.rollouts:
        for part in one.get("conversations", ()):
            said = [message["text"] for message in part.get("messages", ()) if message["role"] == "assistant"]
            if not said or any("… " in text and "characters …" in text for text in said):
                continue
            looked += 1
            if part["tokens"] > len("".join(said).encode()) + PER_TURN * max(1, part["turns"]):
                wrote = len("".join(said))
                wrong = f"{part['conversation']} trains on {part['tokens']} tokens and wrote {wrote} letters"
    if wrong:
        return Finding(rule, "fault", wrong, "the mask covers words that the role did not write: stop the run")
    return ok(rule, f"{looked} sample conversations train on their own words alone") if looked else unseen(rule)


def breaks(seen: Seen) -> Finding:
    """Prompts that do not go on from what was sampled: re-tokenised text, or a template that rewrites."""
    found = [seen.latest(f"{role}/broken") for role in seen.roles]
    broken = mean(one for one in found if one is not None)
    fix = "look at the chat template: it rewrites what was said before"
    told = "" if broken is None else f"{100 * broken:.0f} % of rows begin in the middle of a conversation"
    return graded("prefixes", broken, told, warning=0.05, fault=0.5, fix=fix)


def dropped(seen: Seen) -> Finding:
    """Ids and log-probabilities that do not fit, as of a server that leaves the last one out."""
    lost = seen.latest("rows_dropped")
    told = "" if lost is None else f"{lost:.2f} rows of a rollout do not fit their log-probabilities"
    fix = "the sampler leaves ids or log-probabilities out; take another version of it"
    return graded("ids and log-probabilities", lost, told, warning=0.0, fault=0.2, fix=fix)


def groups(seen: Seen) -> Finding:
    """Members of a group share their baseline: of one question, one role and one reward there is one advantage."""
    rule = "groups"
    if seen.configuration.recipe not in BROADCAST:
        return unseen(rule, f"{seen.configuration.recipe} compares by input")
    gained: dict[tuple[object, ...], set[float]] = defaultdict(set)
    for one in seen.rollouts:
        if one.get("reward") is None:
            continue
        for name, advantage in one.get("advantages", {}).items():
            role = str(name).rpartition("/")[2].partition(".")[0]
            gained[one.get("step"), one.get("question"), role, one["reward"]].add(round(float(advantage), 4))
    if not gained:
        return unseen(rule)
    mixed = next((key for key, found in gained.items() if len(found) > 1), None)
    if mixed:
        told = f"step {mixed[0]}: {mixed[2]} has {len(gained[mixed])} advantages for the reward {mixed[3]}"
        return Finding(rule, "fault", told, "groups are mixed: give each question an id of its own")
    return ok(rule, f"{len(gained)} rewards of sample groups have one advantage each")


def singletons(seen: Seen) -> Finding:
    """A group of one compares with nobody. Where most are, GRPO has become REINFORCE without anyone saying so."""
    sizes: dict[int, float] = defaultdict(float)
    for one in seen.steps[-20:]:
        for name, many in one.items():
            if name.startswith("group_size/"):
                sizes[int(name.removeprefix("group_size/"))] += many
    total = sum(sizes.values())
    share = sizes[1] / total if total else None
    told = "" if share is None else f"{100 * share:.0f} % of groups have one member"
    fix = "look at what names a group: every member needs the same question, role and input"
    return graded("singletons", share, told, warning=0.1, fault=0.5, fix=fix)


def sizes(seen: Seen) -> Finding:
    """In a group of n no standardised advantage is over √(n-1). More means a deviation that was divided by nothing."""
    rule = "size of advantages"
    biggest = max((int(name.removeprefix("group_size/")) for one in seen.steps for name in one
                   if name.startswith("group_size/")), default=0)  # fmt: skip
    found = [abs(float(value)) for one in seen.rollouts for value in one.get("advantages", {}).values()]
    found += [value for role in seen.roles for value in seen.values(f"{role}/advantage_size")]
    if not found or not biggest:
        return unseen(rule)
    most, bound = max(found), math.sqrt(max(1, biggest - 1))
    told = f"up to {most:.3g} in groups of up to {biggest}"
    if most > bound * 1.01:
        return Finding(rule, "fault", told, f"none may be over {bound:.2f}: a deviation near 0 was divided by")
    return ok(rule, told)


def dead(seen: Seen) -> Finding:
    """Groups in which all earned the same teach nothing: questions that are too hard or too easy."""
    share = seen.latest("dead_groups")
    told = "" if share is None else f"{100 * share:.0f} % of groups have no signal"
    fix = "choose questions that are answered at times: hira-train curate; or more attempts: rollouts.attempts"
    return graded("dead groups", share, told, warning=0.5, fault=0.95, fix=fix)


def infrastructure(seen: Seen) -> Finding:
    """What the infrastructure broke and what nobody could judge is left out, so that little is left."""
    parts = {name: seen.latest(name) for name in ("infra_failed", "unscored")}
    known = [value for value in parts.values() if value is not None]
    told = ", ".join(f"{name} {100 * (value or 0):.0f} %" for name, value in parts.items())
    fix = "rollouts.jsonl tells why; a judge that is late wants a longer reward_seconds or fewer calls at_once"
    return graded("failed rollouts", max(known, default=None), told, warning=0.1, fault=0.4, fix=fix)


def overlong(seen: Seen) -> Finding:
    """A reply that is cut off is judged by what it had no room to say."""
    shares = {role: seen.latest(f"{role}/overlong") for role in seen.roles}
    known = {role: share for role, share in shares.items() if share is not None}
    role = max(known, key=known.__getitem__, default="")
    told = f"{100 * known[role]:.0f} % of the conversations of {role} end in a reply that was cut off" if role else ""
    fix = "allow longer replies or a wider rollouts.window; with train.mask_overlong=true they teach nothing"
    if seen.configuration.train.mask_overlong and role:
        told += ", and teach nothing"
    return graded("cut replies", known.get(role), told, warning=0.2, fault=0.95, fix=fix)


def effect(seen: Seen) -> Finding:
    """Where some group has a signal, the adapters have a gradient."""
    rule = "adapters"
    signalled = [
        one for one in seen.steps if one.get("dead_groups", 1) < 1 and one.get("tokens") and "grad_norm" in one
    ]
    if not signalled:
        return unseen(rule)
    idle = [one for one in signalled if not one["grad_norm"]]
    told = f"{len(idle)} of {len(signalled)} updates with a signal have no gradient"
    if len(idle) == len(signalled):
        return Finding(rule, "fault", told, "no adapter is trained: check model.targets and model.adapters")
    return Finding(rule, "warning", told, "is the rate 0, or a role without adapter?") if idle else ok(rule, told)


def drift(seen: Seen) -> Finding:
    """Sampler and trainer have to speak of one policy. One that serves the base, or rounds otherwise, does not."""
    drifts = {role: seen.latest(f"{role}/sampler_drift") for role in seen.roles}
    known = {role: value for role, value in drifts.items() if value is not None}
    role = max(known, key=known.__getitem__, default="")
    told = f"log-probabilities of {role} differ by {known[role]:.3g} a token" if role else ""
    fix = "the sampler serves other weights or another precision; is the adapter loaded, and updated each step?"
    return graded("drift", known.get(role), told, warning=DRIFT_WARNING, fault=DRIFT_FAULT, fix=fix)


def staleness(seen: Seen) -> Finding:
    """Rows may be as old as was allowed, and no older."""
    rule, ages = "staleness", seen.values("staleness/most")
    if not ages:
        return ok(rule, "updates are made of fresh rollouts") if seen.steps else unseen(rule)
    bound = seen.configuration.marsrl.staleness
    told = f"rows are up to {max(ages):g} updates old, {bound} are allowed"
    return (
        Finding(rule, "fault", told, "stop: rows are trained that are too old") if max(ages) > bound else ok(rule, told)
    )


def base(seen: Seen) -> Finding:
    """Merging an adapter into the base and out again changes it a little each time."""
    rule, found = "base weights", set(seen.bases.values())
    if not found:
        return unseen(rule)
    if len(found) > 1:
        return Finding(rule, "fault", f"{len(found)} different bases in {len(seen.bases)} checkpoints", "never merge")
    return ok(rule, f"the same in {len(seen.bases)} checkpoints")


def resumed(seen: Seen) -> Finding:
    """A run that went on in the right place has every step once, in order."""
    rule, steps = "steps", [int(one["step"]) for one in seen.steps if "step" in one]
    if not steps:
        return unseen(rule)
    bad = next((after for before, after in pairwise(steps) if after != before + 1), None)
    if bad is not None or steps[0] != 1:
        told = f"step {bad if bad is not None else steps[0]} does not follow on the one before"
        return Finding(rule, "fault", told, "the run went on from another place; begin anew in another folder")
    return ok(rule, f"1 to {steps[-1]}, each once")


def finite(seen: Seen) -> Finding:
    """What is not a number is left out of the metrics: a step without loss had none."""
    rule = "finite numbers"
    if not seen.steps:
        return unseen(rule)
    lost = [one.get("step") for one in seen.steps if "loss" not in one or "grad_norm" not in one]
    if lost:
        fix = "lower train.lr, and go on from the last checkpoint before"
        return Finding(rule, "fault", f"step {lost[0]} has no finite loss or gradient", fix)
    return ok(rule, f"{len(seen.steps)} steps with loss and gradient")


def normaliser(seen: Seen) -> Finding:
    """One denominator an update, over all its rows however they are packed; without rows there is no update."""
    rule = "normaliser"
    looked = [one for one in seen.steps if one.get("tokens") and "normaliser" in one]
    wrong = [one for one in looked if one["normaliser"] <= 0]
    if wrong:
        told = f"step {wrong[0].get('step')} trains {wrong[0]['tokens']:g} tokens over {wrong[0]['normaliser']:g}"
        return Finding(rule, "fault", told, "a credit of one's own has to return a normaliser over 0")
    return ok(rule, f"over 0 in {len(looked)} updates") if looked else unseen(rule)


def turns(seen: Seen) -> Finding:
    """A mean over a rollout's tokens can make a role write less a turn and take more turns, for nothing."""
    rule = "tokens a turn"
    if len(seen.steps) < 2 * EARLY:
        return unseen(rule, f"seen after {2 * EARLY} steps")
    gain = (seen.latest("reward", EARLY) or 0) - (mean(seen.values("reward")[:EARLY]) or 0)
    for role in seen.roles:
        words, many = seen.values(f"{role}/tokens_per_turn"), seen.values(f"{role}/turns")
        before, after = mean(words[:EARLY]), mean(words[-EARLY:])
        first, last = mean(many[:EARLY]), mean(many[-EARLY:])
        if before and after and first and last and after < before / 2 and last > 1.3 * first and gain < 0.02:
            told = f"{role}: {before:.0f} → {after:.0f} tokens a turn, {first:.1f} → {last:.1f} turns, no more reward"
            return Finding(rule, "warning", told, 'weigh rows otherwise: credit.norm="role_mean" or "token_mean"')
    return ok(rule, "no role takes more turns to say less")


def entropy(seen: Seen) -> Finding:
    """A policy without entropy samples one rollout many times: all groups die soon after."""
    rule, found = "entropy", seen.values("entropy")
    if len(found) < 2 * EARLY:
        return unseen(rule, f"seen after {2 * EARLY} steps")
    before, after = mean(found[:EARLY]) or 0.0, mean(found[-EARLY:]) or 0.0
    told = f"{before:.3f} → {after:.3f} nats a token"
    if after < 0.1 * before:
        return Finding(rule, "warning", told, "a smaller rate, a wider clip_high, or masking of mastered tokens")
    if after > 3 * before and after > 1:
        return Finding(rule, "warning", told, "it explodes: a smaller rate or clip_high")
    return ok(rule, told)


def memory(seen: Seen) -> Finding:
    """The longest row comes first in an update, so memory that still grows is a leak or longer replies."""
    rule = "memory"
    found = [max(pair) for pair in zip(seen.values("update_peak_gib"), seen.values("rollout_peak_gib"), strict=False)]
    if len(found) < 2 * EARLY:
        return unseen(rule, "no figures of a GPU")
    before, after = max(found[:EARLY]), max(found[-EARLY:])
    told = f"peak {before:.1f} → {after:.1f} GiB"
    return (
        Finding(rule, "warning", told, "lower train.budget before it runs out")
        if after > 1.2 * before
        else ok(rule, told)
    )


def hacking(seen: Seen) -> Finding:
    """The reward rises and what it stands for does not: held-out questions fall, or only its form part grows."""
    rule = "reward hacking"
    rewards, exams = seen.values("reward"), [one["greedy"] for one in seen.exams if one.get("greedy") is not None]
    if len(rewards) < 2 * EARLY:
        return unseen(rule, f"seen after {2 * EARLY} steps")
    gain = (mean(rewards[-EARLY:]) or 0) - (mean(rewards[:EARLY]) or 0)
    if gain > 0.05 and len(exams) > 1 and exams[-1] < exams[0] - 0.05:
        told = f"reward {gain:+.2f}, held-out questions {100 * exams[0]:.0f} % → {100 * exams[-1]:.0f} %"
        return Finding(rule, "fault", told, "look at rollouts.jsonl; have another judge look at held-out answers")
    parts = {name: seen.values(name) for one in seen.steps[-1:] for name in one if name.startswith("reward/")}
    grown = {name: (mean(own[-EARLY:]) or 0) - (mean(own[:EARLY]) or 0) for name, own in parts.items()}
    form = max((value for name, value in grown.items() if "format" in name), default=0.0)
    right = grown.get("reward/accuracy")
    if right is not None and form > 0.1 and right < -0.02:
        told = f"format {form:+.2f}, accuracy {right:+.2f}"
        return Finding(rule, "warning", told, "the reward is earned by form: lower reward.format")
    return ok(rule, f"reward {gain:+.2f}" + (f", held-out {exams[-1] - exams[0]:+.2f}" if len(exams) > 1 else ""))


def alive(seen: Seen) -> Finding:
    """A run that has not ended and writes nothing hangs: every call, rollout and group has a deadline."""
    if seen.quiet is None:
        return unseen("heartbeat", "the run has ended, or not begun")
    bound = seen.configuration.rollouts.group_seconds
    took = [one.get("rollout_seconds", 0) + one.get("update_seconds", 0) for one in seen.steps[-5:]]
    usual = max(took, default=bound)
    told = f"last line {seen.quiet:.0f} s ago, a step takes {usual:.0f} s"
    fix = "stderr says which calls are waited for; stop it and go on with --resume"
    return graded("heartbeat", seen.quiet, told, warning=max(60.0, 5 * usual), fault=bound + usual + 60, fix=fix)


DURING: tuple[Rule, ...] = (
    masks, breaks, dropped, groups, singletons, sizes, dead, infrastructure, overlong, effect, drift, staleness, base,
    resumed, finite, normaliser, turns, entropy, memory, hacking, alive,
)  # fmt: skip
