"""The doctor's table: one row a rule, with the value over which what is seen is a warning, and over which a fault.

A look is one function over what was `Seen`, and returns how bad it is with what it saw: a figure where there is one,
else `WELL`, `ODD` or `BROKEN`; None where there was nothing to look at.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from hira.policies.dialects import NATIVE
from hira.trainers.configuration import Configuration
from hira.trainers.doctor.seen import Finding, Seen, mean
from hira.trainers.preflight import too_wide
from hira.trainers.recipes import RECIPES
from hira.workflows import WORKFLOWS

WELL, ODD, BROKEN = 0.0, 1.0, 2.0
BROADCAST = frozenset({"matpo", "mams", "mars"})
"""Recipes whose advantage follows from role and reward alone, within one question."""
EARLY = 10
PER_TURN = 8
"""Tokens of a turn beyond its letters: what ends it."""


class Look(NamedTuple):
    """How bad it is, what was seen, and what to do where the row does not say it."""

    value: float | None
    told: str = "nothing to look at yet"
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row: `look` is a warning over `warning` and a fault over `fault`; `fix` says what to do."""

    name: str
    look: Callable[[Seen], Look]
    fix: str = ""
    warning: float = WELL
    fault: float = ODD

    def __call__(self, seen: Seen) -> Finding:
        value, told, fix = self.look(seen)
        if value is None:
            return Finding(self.name, "unseen", told)
        if value <= self.warning:
            return Finding(self.name, "ok", told)
        return Finding(self.name, "fault" if value > self.fault else "warning", told, fix or self.fix)


# --- before a run: its configuration, data and template


def rate(seen: Seen) -> Look:
    """LoRA rates between which large models learn and stay whole: 1e-6 to 5e-4. An adapter that seems not to learn most
    often has the rate of full training."""
    lr = seen.configuration.train.lr
    return Look(WELL if 1e-6 <= lr <= 5e-4 else ODD, f"train.lr is {lr:g}")


def schedule(seen: Seen) -> Look:
    """The schedule counts updates: a warm-up that is longer than the run never ends."""
    train = seen.configuration.train
    return Look(2 * train.warmup / train.steps, f"{train.warmup} of {train.steps} steps warm up")


def deadlines(seen: Seen) -> Look:
    """A hang is found by the shortest deadline over it, so each has to be longer than what it holds."""
    part = seen.configuration.rollouts
    told = f"call {part.call_seconds:g} s, rollout {part.rollout_seconds:g} s, group {part.group_seconds:g} s"
    return Look(WELL if part.call_seconds <= part.rollout_seconds <= part.group_seconds else BROKEN, told)


def sampling(seen: Seen) -> Look:
    """Top-p of .9 alone biases the ratio by a tenth; trained roles are sampled at temperature 1 and whole."""
    settings = seen.configuration.settings
    given = {name: settings[name] for name in ("temperature", "top_p", "top_k") if name in settings}
    odd = any(value != 1.0 for value in given.values())
    told = ", ".join(f"settings.{name} is {value}" for name, value in given.items())
    return Look(ODD if odd else WELL, told or "temperature 1, whole distribution")


def budget(seen: Seen) -> Look:
    """A row that is longer than the budget is a micro-batch by itself, and the first to run out of memory."""
    window, most = seen.configuration.rollouts.window, seen.configuration.train.budget
    return Look(ODD if window > most else WELL, f"rows of up to {window:,} tokens, micro-batches of {most:,}")


def off_policy(seen: Seen) -> Look:
    """Several steps on one set of rollouts leave the policy that sampled it."""
    return Look(seen.configuration.train.iterations, f"{seen.configuration.train.iterations}")


def template(seen: Seen) -> Look:
    """A chat template that takes earlier thought away breaks every row at every turn; in one that has no place for
    tools, no call is made natively."""
    if seen.notices is None:
        return Look(None, "the tokenizer was not loaded")
    if lost := [one for one in seen.notices if "thought" in one]:
        return Look(ODD, lost[0], "take a model whose template keeps what was said, or expect a row for each turn")
    mute = [one for one in seen.notices if "tools" in one]
    chosen = seen.configuration.settings.get("dialect")
    fix = 'set settings.dialect="tags", or take a model whose template has tools'
    if mute and chosen == NATIVE.name:
        return Look(BROKEN, f"settings.dialect is {chosen}, and {mute[0]}", fix)
    if mute and not chosen and _own_dialect(seen.configuration) == NATIVE.name:
        return Look(ODD, mute[0], fix)
    return Look(WELL, "; ".join(seen.notices) or "each turn's prompt goes on from the turn before")


def _own_dialect(configuration: Configuration) -> str:
    """The dialect of the workflow that is trained."""
    recipe = RECIPES[configuration.recipe]
    workflow = recipe.own or WORKFLOWS.get(str(configuration.settings.get("workflow", recipe.workflow)))
    return str(getattr(workflow, "dialect", NATIVE.name))


def data(seen: Seen) -> Look:
    """With fewer questions than an update takes, one update holds a question twice."""
    asked = seen.configuration.rollouts.questions
    if seen.problems is None:
        return Look(None, "the questions were not read")
    told = f"{seen.problems} questions, {asked} an update"
    if seen.unasked:
        told += f"; left out, because nothing is known of their answer: {seen.unasked}"
    if seen.problems < asked:
        return Look(BROKEN, told, "give more questions, or ask fewer an update: rollouts.questions")
    laps = seen.configuration.train.steps * asked / seen.problems
    return (
        Look(ODD, f"{told}: each is seen {laps:.0f} times", "they will be learned by heart")
        if laps > 20
        else Look(WELL, told)
    )


def held_out(seen: Seen) -> Look:
    """A reward that rises says nothing of questions that were not trained on; only an exam does."""
    part = seen.configuration.data
    if not part.held_out:
        fix = "name some below [data]: held_out; without them reward hacking cannot be seen"
        return Look(ODD, "there are none", fix)
    if part.held_out == part.train:
        return Look(BROKEN, "they are those that are trained on", "keep some apart, or curate two files")
    told = f"questions of {part.held_out} that are trained on, too: {seen.shared}"
    return Look(seen.shared and ODD, told, f"take them out of {part.train}, or out of {part.held_out}")


def window(seen: Seen) -> Look:
    """A conversation ends where the model's own window does, whatever the run allows: its rollouts fail."""
    asked = seen.configuration.rollouts.window
    if seen.window is None:
        return Look(None, "the model's own is not known on this machine")
    wrong = too_wide(asked, seen.window)
    told = wrong or f"{asked:,} tokens, the model itself takes {seen.window:,}"
    return Look(
        BROKEN if wrong else WELL, told, f"set rollouts.window={seen.window}, or take a model with a longer one"
    )


# --- while it runs and afterwards: metrics, sample rollouts, exams, checkpoints


def latest(name: str, told: str) -> Callable[[Seen], Look]:
    """The mean of a metric over the last steps; `told` formats it as `value`, or as a share as `percent`."""

    def look(seen: Seen) -> Look:
        value = seen.latest(name)
        return Look(None) if value is None else Look(value, told.format(value=value, percent=f"{100 * value:.0f} %"))

    return look


def of_roles(name: str, told: str) -> Callable[[Seen], Look]:
    """The same of the role that is worst."""

    def look(seen: Seen) -> Look:
        known = {role: value for role in seen.roles if (value := seen.latest(f"{role}/{name}")) is not None}
        if not known:
            return Look(None)
        role = max(known, key=known.__getitem__)
        return Look(known[role], told.format(role=role, value=known[role], percent=f"{100 * known[role]:.0f} %"))

    return look


def masks(seen: Seen) -> Look:
    """A mask that is turned round trains on what tools wrote: a role has sampled more tokens than it wrote bytes."""
    wrong, looked = "", 0
    for part in (part for one in seen.rollouts for part in one.get("conversations", ())):
        said = [message["text"] for message in part.get("messages", ()) if message["role"] == "assistant"]
        if not said or any("… " in text and "characters …" in text for text in said):
            continue
        looked += 1
        wrote = "".join(said)
        if part["tokens"] > len(wrote.encode()) + PER_TURN * max(1, part["turns"]):
            wrong = f"{part['conversation']} trains on {part['tokens']} tokens and wrote {len(wrote)} letters"
    if not looked:
        return Look(None)
    return Look(BROKEN if wrong else WELL, wrong or f"{looked} sample conversations train on their own words alone")


def groups(seen: Seen) -> Look:
    """Members of a group share their baseline: of one question, one role and one reward there is one advantage."""
    if seen.configuration.recipe not in BROADCAST:
        return Look(None, f"{seen.configuration.recipe} compares by input")
    gained: dict[tuple[object, ...], set[float]] = defaultdict(set)
    for one in (one for one in seen.rollouts if one.get("reward") is not None):
        for name, advantage in one.get("advantages", {}).items():
            role = str(name).rpartition("/")[2].partition(".")[0]
            gained[one.get("step"), one.get("question"), role, one["reward"]].add(round(float(advantage), 4))
    if not gained:
        return Look(None)
    mixed = next((key for key, found in gained.items() if len(found) > 1), None)
    if mixed:
        return Look(BROKEN, f"step {mixed[0]}: {mixed[2]} has {len(gained[mixed])} advantages for one reward")
    return Look(WELL, f"{len(gained)} rewards of sample groups have one advantage each")


def _sizes(steps: object) -> Mapping[int, float]:
    """How many groups of each size the steps had."""
    sizes: dict[int, float] = defaultdict(float)
    for one in steps if isinstance(steps, list | tuple) else ():
        for name, many in one.items():
            if name.startswith("group_size/"):
                sizes[int(name.removeprefix("group_size/"))] += many
    return sizes


def singletons(seen: Seen) -> Look:
    """A group of one compares with nobody. Where most are, GRPO has become REINFORCE without anyone saying so."""
    sizes = _sizes(list(seen.steps[-20:]))
    total = sum(sizes.values())
    share = sizes.get(1, 0.0) / total if total else 0.0
    return Look(share, f"{100 * share:.0f} % of groups have one member") if total else Look(None)


def advantages(seen: Seen) -> Look:
    """In a group of n no standardised advantage is over √(n-1). More means a deviation that was divided by nothing."""
    biggest = max(_sizes(list(seen.steps)), default=0)
    found = [abs(float(value)) for one in seen.rollouts for value in one.get("advantages", {}).values()]
    found += [value for role in seen.roles for value in seen.values(f"{role}/advantage_size")]
    if not found or not biggest:
        return Look(None)
    bound = math.sqrt(max(1, biggest - 1))
    return Look(
        BROKEN if max(found) > bound * 1.01 else WELL,
        f"up to {max(found):.3g} in groups of up to {biggest}",
        f"none may be over {bound:.2f}: a deviation near 0 was divided by",
    )


def infrastructure(seen: Seen) -> Look:
    """What the infrastructure broke and what nobody could judge is left out, so that little is left."""
    parts = {name: seen.latest(name) for name in ("infra_failed", "unscored")}
    told = ", ".join(f"{name} {100 * (value or 0):.0f} %" for name, value in parts.items())
    return Look(max((value for value in parts.values() if value is not None), default=None), told)


def effect(seen: Seen) -> Look:
    """Where some group has a signal, the adapters have a gradient."""
    known = [one for one in seen.steps if one.get("dead_groups", 1) < 1 and one.get("tokens") and "grad_norm" in one]
    idle = sum(not one["grad_norm"] for one in known)
    told = f"{idle} of {len(known)} updates with a signal have no gradient"
    return Look((BROKEN if idle == len(known) else ODD) if idle else WELL, told) if known else Look(None)


def staleness(seen: Seen) -> Look:
    """Rows may be as old as was allowed, and no older."""
    ages, bound = seen.values("staleness/most"), seen.configuration.marsrl.staleness
    if not ages:
        return Look(WELL, "updates are made of fresh rollouts") if seen.steps else Look(None)
    return Look(BROKEN if max(ages) > bound else WELL, f"rows are up to {max(ages):g} updates old, {bound} are allowed")


def base(seen: Seen) -> Look:
    """Merging an adapter into the base and out again changes it a little each time."""
    found = set(seen.bases.values())
    told = f"{len(found)} different bases in {len(seen.bases)} checkpoints"
    return Look(BROKEN if len(found) > 1 else WELL, told) if found else Look(None)


def resumed(seen: Seen) -> Look:
    """A run that went on in the right place has every step once, in order."""
    steps = [0, *(int(one["step"]) for one in seen.steps if "step" in one)]
    bad = next((after for before, after in pairwise(steps) if after != before + 1), None)
    told = f"step {bad} does not follow on the one before" if bad else f"1 to {steps[-1]}, each once"
    return Look(BROKEN if bad is not None else WELL, told) if len(steps) > 1 else Look(None)


def finite(seen: Seen) -> Look:
    """What is not a number is left out of the metrics: a step without loss had none."""
    lost = [one.get("step") for one in seen.steps if "loss" not in one or "grad_norm" not in one]
    told = (
        f"step {lost[0]} has no finite loss or gradient" if lost else f"{len(seen.steps)} steps with loss and gradient"
    )
    return Look(BROKEN if lost else WELL, told) if seen.steps else Look(None)


def normaliser(seen: Seen) -> Look:
    """One denominator an update, over all its rows however they are packed; without rows there is no update."""
    looked = [one for one in seen.steps if one.get("tokens") and "normaliser" in one]
    wrong = [one for one in looked if one["normaliser"] <= 0]
    told = f"{len(wrong)} of {len(looked)} updates train tokens over a normaliser of 0 or less"
    return Look(BROKEN if wrong else WELL, told) if looked else Look(None)


def _grown(seen: Seen, name: str) -> tuple[float, float]:
    """A metric's mean over the first steps and over the last."""
    values = seen.values(name)
    return mean(values[:EARLY]) or 0.0, mean(values[-EARLY:]) or 0.0


def _too_early(seen: Seen, name: str) -> Look | None:
    return Look(None, f"seen after {2 * EARLY} steps") if len(seen.values(name)) < 2 * EARLY else None


def turns(seen: Seen) -> Look:
    """A mean over a rollout's tokens can make a role write less a turn and take more turns, for nothing."""
    if early := _too_early(seen, "reward"):
        return early
    before, after = _grown(seen, "reward")
    for role in seen.roles:
        (words, fewer), (few, many) = _grown(seen, f"{role}/tokens_per_turn"), _grown(seen, f"{role}/turns")
        if fewer < words / 2 and many > 1.3 * few and after - before < 0.02:
            return Look(
                ODD, f"{role}: {words:.0f} → {fewer:.0f} tokens a turn, {few:.1f} → {many:.1f} turns, no reward"
            )
    return Look(WELL, "no role takes more turns to say less")


def entropy(seen: Seen) -> Look:
    """A policy without entropy samples one rollout many times: all groups die soon after."""
    if early := _too_early(seen, "entropy"):
        return early
    before, after = _grown(seen, "entropy")
    odd = after < 0.1 * before or (after > 3 * before and after > 1)
    return Look(ODD if odd else WELL, f"{before:.3f} → {after:.3f} nats a token")


def memory(seen: Seen) -> Look:
    """The longest row comes first in an update, so memory that still grows is a leak or longer replies."""
    found = [max(pair) for pair in zip(seen.values("update_peak_gib"), seen.values("rollout_peak_gib"), strict=False)]
    if len(found) < 2 * EARLY:
        return Look(None, "no figures of a GPU")
    before, after = max(found[:EARLY]), max(found[-EARLY:])
    return Look(after / before, f"peak {before:.1f} → {after:.1f} GiB")


def hacking(seen: Seen) -> Look:
    """The reward rises and what it stands for does not: held-out questions fall, or only its form part grows."""
    if early := _too_early(seen, "reward"):
        return early
    exams = [one["greedy"] for one in seen.exams if one.get("greedy") is not None]
    gain = _grown(seen, "reward")[1] - _grown(seen, "reward")[0]
    told = f"reward {gain:+.2f}" + (f", held-out {exams[-1] - exams[0]:+.2f}" if len(exams) > 1 else "")
    if gain > 0.05 and len(exams) > 1 and exams[-1] < exams[0] - 0.05:
        return Look(BROKEN, told, "look at rollouts.jsonl; have another judge look at held-out answers")
    parts = [name for one in seen.steps[-1:] for name in one if name.startswith("reward/")]
    grown = {name: _grown(seen, name)[1] - _grown(seen, name)[0] for name in parts}
    form = max((value for name, value in grown.items() if "format" in name), default=0.0)
    if form > 0.1 and grown.get("reward/accuracy", 0.0) < -0.02:
        told = f"format {form:+.2f}, accuracy {grown['reward/accuracy']:+.2f}"
        return Look(ODD, told, "the reward is earned by form: lower reward.format")
    return Look(WELL, told)


def alive(seen: Seen) -> Look:
    """A run that has not ended and writes nothing hangs: every call, rollout and group has a deadline."""
    if seen.quiet is None:
        return Look(None, "the run has ended, or not begun")
    bound = seen.configuration.rollouts.group_seconds
    took = [one.get("rollout_seconds", 0) + one.get("update_seconds", 0) for one in seen.steps[-5:]]
    usual = max(took, default=bound)
    value = (seen.quiet > max(60.0, 5 * usual)) + (seen.quiet > bound + usual + 60)
    return Look(float(value), f"last line {seen.quiet:.0f} s ago, a step takes {usual:.0f} s")


RULES: tuple[Rule, ...] = (
    Rule("learning rate of LoRA", rate, "adapters want 1e-5 to 5e-5; full training less, tiny models far more"),
    Rule("schedule of the rate", schedule, "a tenth of train.steps is usual for train.warmup", 1.0, 1.99),
    Rule("deadlines", deadlines, "make call ≤ rollout ≤ group"),
    Rule("sampling of trained roles", sampling, "trained roles are sampled at temperature 1, whole; leave it out"),
    Rule("budget of a micro-batch", budget, "make train.budget at least rollouts.window; hira-train plan has the cost"),
    Rule("steps on one set of rollouts", off_policy, "more than four leave the policy that sampled", 4, math.inf),
    Rule("chat template", template),
    Rule("questions", data),
    Rule("held-out questions", held_out),
    Rule("window", window),
    Rule("masks", masks, "the mask covers words that the role did not write: stop the run"),
    Rule("prefixes", of_roles("broken", "{percent} of the rows of {role} begin in the middle of a conversation"),
         "look at the chat template: it rewrites what was said before", 0.05, 0.5),
    Rule("ids and log-probabilities", latest("rows_dropped", "{value:.2f} rows of a rollout do not fit"),
         "the sampler leaves ids or log-probabilities out; take another version of it", 0.0, 0.2),
    Rule("groups", groups, "groups are mixed: give each question an id of its own"),
    Rule("singletons", singletons, "every member of a group needs the same question, role and input", 0.1, 0.5),
    Rule("size of advantages", advantages),
    Rule("dead groups", latest("dead_groups", "{percent} of groups have no signal"),
         "choose questions that are answered at times: hira-train curate; or raise rollouts.attempts, rollouts.refill",
         0.5, 0.95),
    Rule("failed rollouts", infrastructure,
         "rollouts.jsonl tells why; a late judge wants a longer reward_seconds or fewer calls at_once", 0.1, 0.4),
    Rule("cut replies", of_roles("overlong", "{percent} of the conversations of {role} end in a cut reply"),
         "allow longer replies or a wider rollouts.window; train.mask_overlong=true leaves them out", 0.2, 0.95),
    Rule("adapters", effect, "no adapter is trained: check model.targets, model.adapters and train.lr"),
    Rule("drift", of_roles("sampler_drift", "log-probabilities of {role} differ by {value:.3g} a token"),
         "the sampler serves other weights or another precision; is the adapter loaded, and updated?", 0.02, 0.2),
    Rule("staleness", staleness, "stop: rows are trained that are too old"),
    Rule("base weights", base, "never merge while training"),
    Rule("steps", resumed, "the run went on from another place; begin anew in another folder"),
    Rule("finite numbers", finite, "lower train.lr, and go on from the last checkpoint before"),
    Rule("normaliser", normaliser, "a credit of one's own has to return a normaliser over 0"),
    Rule("tokens a turn", turns, 'weigh rows otherwise: credit.norm="role_mean" or "token_mean"'),
    Rule("entropy", entropy, "a smaller rate; against collapse a wider clip_high, or masking of mastered tokens"),
    Rule("memory", memory, "lower train.budget before it runs out", 1.2, math.inf),
    Rule("reward hacking", hacking),
    Rule("heartbeat", alive, "stderr says which calls are waited for; stop it and go on with --resume"),
)  # fmt: skip
"""Warning and fault are the last two figures; a row without any is well, odd or broken."""


def examine(seen: Seen) -> list[Finding]:
    """What every rule has to say, in the order of the table."""
    return [rule(seen) for rule in RULES]
