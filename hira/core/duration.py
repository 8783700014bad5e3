"""Durations as people write them."""

import re


def read_duration(value: object) -> object:
    """Return the seconds of a duration such as "90", "90s", "5m" or "1.5h"; any other value as it is.

    >>> read_duration("5m"), read_duration("soon")
    (300.0, 'soon')
    """
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*([smh]?)", value.strip()) if isinstance(value, str) else None
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else value
