"""The loss of one micro-batch by hand: two rows of two trained tokens, with weights that are not 1."""

from math import exp, log

import pytest
from later import later, needs

torch = later("torch")
pytestmark = needs("torch")

# log π - log π_old of the tokens, the advantage and the weight of each row, and Z
CHANGES = ((log(1.1), log(1.5), 0.0), (log(0.9), log(0.5), 0.0))
ADVANTAGES, WEIGHTS, ITEMS = (1.0, -2.0), (0.25, 0.05), 4.0
TRAINED = ((1, 1, 0), (1, 1, 0))


def loss(ratio: str, beta: float = 0.0, advantages: tuple[float, float] = ADVANTAGES) -> tuple[float, dict[str, float]]:
    from hira.trainers.loss import Scores, policy_loss

    old = torch.full((2, 3), -1.0, dtype=torch.float64)
    logps = (old + torch.tensor(CHANGES)) * torch.tensor(TRAINED)
    batch = {
        "weights": torch.tensor(TRAINED) * torch.tensor(WEIGHTS, dtype=torch.float64).unsqueeze(1),
        "advantages": torch.tensor(advantages, dtype=torch.float64),
        "old_logps": old * torch.tensor(TRAINED),
        "sampled": logps - 0.5,
        "ref_logps": logps - log(2),
        "items": ITEMS,
    }
    made, figures = policy_loss(batch, Scores(logps, torch.ones(2, 3)), clip=(0.2, 0.3), beta=beta, ratio=ratio)  # type: ignore[arg-type]
    return float(made), {name: float(value) for name, value in figures.items()}


def test_the_ratio_of_a_token_is_clipped_on_the_side_of_its_advantage() -> None:
    """ρ = 1.1 and 1.5 with A = 1: 1.1 and 1.3. ρ = 0.9 and 0.5 with A = -2: -1.8 and -1.6."""
    found, figures = loss("token")
    assert found == pytest.approx(-(0.25 * (1.1 + 1.3) + 0.05 * (-1.8 - 1.6)) / 4)
    assert figures["clip_ratio/high"] == pytest.approx(1 / 4)
    assert figures["clip_ratio/low"] == pytest.approx(1 / 4)
    assert figures["clip_ratio/region"] == pytest.approx(2 / 4)
    assert figures["sampler_drift"] == pytest.approx(0.5)
    assert figures["entropy"] == pytest.approx(1.0)


def test_rows_without_an_advantage_count_as_clipped_on_neither_side() -> None:
    found, figures = loss("token", advantages=(0.0, 0.0))
    assert found == 0
    assert {name: value for name, value in figures.items() if "clip" in name} == {
        "clip_ratio/low": 0, "clip_ratio/high": 0, "clip_ratio/region": 0,
    }  # fmt: skip


def test_the_ratio_of_a_sequence_is_the_mean_over_the_tokens_of_its_row_whatever_their_weights() -> None:
    """GSPO: √(1.1 · 1.5) = 1.2845, within the clip, and √(0.9 · 0.5) = 0.6708, clipped to 0.8; weights of 1/4 and
    1/20 change neither, although they add up to less than 1 in a row."""
    found, _ = loss("sequence")
    first = exp((log(1.1) + log(1.5)) / 2)
    assert first == pytest.approx(1.2845, abs=1e-4)
    assert found == pytest.approx(-(0.25 * 2 * first + 0.05 * 2 * -2 * 0.8) / 4)


def test_the_divergence_from_the_reference_is_schulmans_third() -> None:
    """δ = log π_ref - log π = -log 2: e^δ - δ - 1 = 0.5 + 0.6931 - 1."""
    kl = 0.5 + log(2) - 1
    with_kl, figures = loss("token", beta=0.1)
    assert with_kl - loss("token")[0] == pytest.approx(0.1 * kl * (0.25 * 2 + 0.05 * 2) / 4)
    assert figures["kl"] == pytest.approx(kl)
