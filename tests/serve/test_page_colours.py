"""The colours of all pages, computed, because nobody sees in a picture that a text is slightly too pale."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hira.core import page

PACKAGE = Path(page.__file__).parents[1]
Colour = tuple[float, float, float]


def colours() -> Iterator[Mapping[str, Colour]]:
    """Yield the colours of the light pages, then those of the dark ones."""
    css = Path(page.__file__).with_name("palette.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", css)
    for scheme in ({name: one for name, one, _ in pairs}, {name: one for name, _, one in pairs}):
        yield {name: (int(one[1:3], 16), int(one[3:5], 16), int(one[5:], 16)) for name, one in scheme.items()}


def luminance(colour: Colour) -> float:
    red, green, blue = (
        one / 255 / 12.92 if one / 255 <= 0.04045 else ((one / 255 + 0.055) / 1.055) ** 2.4 for one in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    """Return the contrast ratio of two colours (WCAG 2.2, "contrast ratio")."""
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


def test_every_page_takes_its_colours_from_the_palette() -> None:
    """Style sheets and pages define no colours outside the palette."""
    own = {
        path.relative_to(PACKAGE).as_posix(): found
        for path in sorted(PACKAGE.rglob("*"))
        if path.suffix in (".css", ".html") and path.name != "palette.css" and "mini" not in path.parts
        for found in [re.findall(r"#[0-9a-f]{3,8}\b(?=[ ;,)])", path.read_text(encoding="utf-8"))]
        if found
    }
    assert own == {}
