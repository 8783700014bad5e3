"""Cited claims as pairs of text and ids."""

from hira import evidence


def claims(text: str) -> list[tuple[str, list[str]]]:
    return [(one.text, list(one.sources)) for one in evidence.claims(text) if one.sources]
