"""The colours of the page, computed: nobody sees in a picture that a text is a little too pale."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hira.server import page

Colour = tuple[float, float, float]


def colours() -> Iterator[Mapping[str, Colour]]:
    """Those of the light page and those of the dark one."""
    css = Path(page.__file__).with_name("page.css").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w{6})", one)) for one in re.findall(r":root \{(.*?)\n\}", css, re.DOTALL)
    )
    for scheme in (light, {**light, **dark}):
        yield {name: (int(one[1:3], 16), int(one[3:5], 16), int(one[5:], 16)) for name, one in scheme.items()}


def luminance(colour: Colour) -> float:
    red, green, blue = (
        one / 255 / 12.92 if one / 255 <= 0.04045 else ((one / 255 + 0.055) / 1.055) ** 2.4 for one in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    """WCAG 2.2, "contrast ratio"."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def tinted(tone: Colour, ground: Colour, share: float = 0.14) -> Colour:
    red, green, blue = (share * one + (1 - share) * other for one, other in zip(tone, ground, strict=True))
    return red, green, blue


@pytest.mark.parametrize("colour", list(colours()), ids=["light", "dark"])
def test_texts_have_the_contrast_of_wcag_aa(colour: Mapping[str, Colour]) -> None:
    low = {
        (name, ground): round(ratio, 2)
        for name in ("ink", "soft", "faint", "accent", "good", "bad", "doubt")
        for ground in ("paper", "card", "sunk")
        if (ratio := contrast(colour[name], colour[ground])) < 4.5
    }
    tones = {
        (tone, ground): round(ratio, 2)
        for tone in ("accent", "good", "bad", "doubt")
        for ground in ("paper", "card")
        if (ratio := contrast(colour[tone], tinted(colour[tone], colour[ground]))) < 4.5
    }
    assert (low, tones) == ({}, {})
    assert contrast(colour["ink"], colour["mark"]) >= 4.5
    assert min(contrast(colour["edge"], colour[ground]) for ground in ("paper", "card")) >= 3  # of fields
