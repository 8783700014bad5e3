"""Rules over a configuration, its data and its template: before anything is trained."""

from hira.policies.dialects import NATIVE
from hira.trainers.configuration import Configuration
from hira.trainers.doctor.seen import Finding, Rule, Seen, ok, unseen
from hira.trainers.preflight import too_wide
from hira.trainers.recipes import RECIPES
from hira.workflows import WORKFLOWS

LEAST, MOST = 1e-6, 5e-4
"""Learning rates of LoRA between which large models learn and stay whole; 1e-5 to 5e-5 is usual."""
TOP_P, TEMPERATURE = 1.0, 1.0


def rate(seen: Seen) -> Finding:
    """An adapter that seems not to learn most often has the rate of full training."""
    rule, lr = "learning rate of LoRA", seen.configuration.train.lr
    told = f"train.lr is {lr:g}"
    if lr < LEAST:
        return Finding(rule, "warning", told, "that is a rate for all weights; adapters want 1e-5 to 5e-5")
    if lr > MOST:
        return Finding(rule, "warning", told, "only tiny models stand that; take 1e-5 to 5e-5")
    return ok(rule, told)


def schedule(seen: Seen) -> Finding:
    """The schedule counts optimiser steps, one an update: a warm-up that is longer than the run never ends."""
    rule, train = "schedule of the rate", seen.configuration.train
    told = f"{train.warmup} of {train.steps} steps warm up"
    if train.warmup >= train.steps:
        return Finding(rule, "fault", told, "make train.warmup smaller than train.steps")
    if train.warmup > train.steps / 2:
        return Finding(rule, "warning", told, "half of the run and more is warm-up; a tenth is usual")
    return ok(rule, told)


def deadlines(seen: Seen) -> Finding:
    """A hang is found by the shortest deadline over it, so each has to be longer than what it holds."""
    rule, part = "deadlines", seen.configuration.rollouts
    told = f"call {part.call_seconds:g} s, rollout {part.rollout_seconds:g} s, group {part.group_seconds:g} s"
    if not part.call_seconds <= part.rollout_seconds <= part.group_seconds:
        return Finding(rule, "fault", told, "make call ≤ rollout ≤ group")
    return ok(rule, told)


def sampling(seen: Seen) -> Finding:
    """Top-p of .9 alone biases the ratio by a tenth; hira samples trained roles at temperature 1 and whole."""
    rule, settings = "sampling of trained roles", seen.configuration.settings
    given = {name: settings[name] for name in ("temperature", "top_p", "top_k") if name in settings}
    if any(value not in (TEMPERATURE, TOP_P) for value in given.values()):
        told = ", ".join(f"settings.{name} is {value}" for name, value in given.items())
        return Finding(rule, "warning", told, "trained roles are sampled at temperature 1, whole; leave it out")
    return ok(rule, "temperature 1, whole distribution")


def budget(seen: Seen) -> Finding:
    """A row that is longer than the budget is a micro-batch by itself, and the first to run out of memory."""
    rule, window, most = "budget of a micro-batch", seen.configuration.rollouts.window, seen.configuration.train.budget
    told = f"rows of up to {window:,} tokens, micro-batches of {most:,}"
    if window > most:
        fix = "make train.budget at least rollouts.window, and look at hira-train plan for what that takes"
        return Finding(rule, "warning", told, fix)
    return ok(rule, told)


def off_policy(seen: Seen) -> Finding:
    """Several steps on one set of rollouts are clipped against log-probabilities of the trainer's own."""
    rule, train = "steps on one set of rollouts", seen.configuration.train
    told = f"{train.iterations}"
    if train.iterations > 4:
        return Finding(rule, "warning", told, "more than four leave the policy that sampled; take 1")
    return ok(rule, told)


def template(seen: Seen) -> Finding:
    """A chat template that takes earlier thought away breaks every row at every turn; in one that has no place for
    tools, no call is made natively."""
    rule = "chat template"
    if seen.notices is None:
        return unseen(rule, "the tokenizer was not loaded")
    lost = [one for one in seen.notices if "thought" in one]
    if lost:
        fix = "take a model whose template keeps what was said, or expect a row for each turn"
        return Finding(rule, "warning", lost[0], fix)
    mute = [one for one in seen.notices if "tools" in one]
    chosen = seen.configuration.settings.get("dialect")
    if mute and chosen == NATIVE.name:
        return Finding(rule, "fault", f"settings.dialect is {chosen}, and {mute[0]}", 'set settings.dialect="tags"')
    if mute and not chosen and _own_dialect(seen.configuration) == NATIVE.name:
        fix = 'set settings.dialect="tags" if you want that, or take a model whose template has tools'
        return Finding(rule, "warning", mute[0], fix)
    return ok(rule, "; ".join(seen.notices) or "each turn's prompt goes on from the turn before")


def _own_dialect(configuration: Configuration) -> str:
    """The dialect of the workflow that is trained."""
    recipe = RECIPES[configuration.recipe]
    workflow = recipe.own or WORKFLOWS.get(str(configuration.settings.get("workflow", recipe.workflow)))
    return str(getattr(workflow, "dialect", NATIVE.name))


def data(seen: Seen) -> Finding:
    """With fewer questions than an update takes, one update holds a question twice."""
    rule, asked = "questions", seen.configuration.rollouts.questions
    if seen.problems is None:
        return unseen(rule, "the questions were not read")
    told = f"{seen.problems} questions, {asked} an update"
    if seen.unasked:
        told += f"; left out, because nothing is known of their answer: {seen.unasked}"
    if seen.problems < asked:
        return Finding(rule, "fault", told, "give more questions, or ask fewer an update: rollouts.questions")
    laps = seen.configuration.train.steps * asked / seen.problems
    if laps > 20:
        return Finding(rule, "warning", f"{told}: each is seen {laps:.0f} times", "they will be learned by heart")
    return ok(rule, told)


def held_out(seen: Seen) -> Finding:
    """A reward that rises says nothing of questions that were not trained on; only an exam does."""
    rule, part = "held-out questions", seen.configuration.data
    if not part.held_out:
        fix = "name some below [data]: held_out; without them reward hacking cannot be seen"
        return Finding(rule, "warning", "there are none", fix)
    if part.held_out == part.train:
        return Finding(rule, "fault", "they are those that are trained on", "keep some apart, or curate two files")
    if seen.shared:
        told = f"questions of {part.held_out} that are trained on, too: {seen.shared}"
        return Finding(rule, "warning", told, f"take them out of {part.train}, or out of {part.held_out}")
    return ok(rule, part.held_out)


def window(seen: Seen) -> Finding:
    """A conversation ends where the model's own window does, whatever the run allows: its rollouts fail."""
    rule, asked = "window", seen.configuration.rollouts.window
    if seen.window is None:
        return unseen(rule, "the model's own is not known on this machine")
    if wrong := too_wide(asked, seen.window):
        return Finding(rule, "fault", wrong, f"set rollouts.window={seen.window}, or take a model with a longer one")
    return ok(rule, f"{asked:,} tokens, the model itself takes {seen.window:,}")


BEFORE: tuple[Rule, ...] = (rate, schedule, deadlines, sampling, budget, off_policy, template, data, held_out, window)
