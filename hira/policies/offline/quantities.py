"""Numbers as values: with the precision they are written in, their unit, and what stands around them (about, over)."""

import re
from dataclasses import dataclass, replace
from itertools import product

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
).split()
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_WORDS = {word: value for value, word in enumerate(_SMALL)} | _TENS | {"dozen": 12}
_SCALES = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
    "millions": 1e6, "billions": 1e9, "k": 1e3, "M": 1e6, "mn": 1e6, "bn": 1e9,
}  # fmt: skip
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CJK_SCALES = {"十": 10.0, "百": 100.0, "千": 1000.0, "万": 1e4, "亿": 1e8}
_MONTHS = (
    "january february march april may june july august september october november december".split(),
    "jan feb mar apr may jun jul aug sep oct nov dec".split(),
)
_MONTH = {name: at for names in _MONTHS for at, name in enumerate(names, 1)} | {"sept": 9}

# dimension and size in the dimension's first unit
_UNITS: dict[str, tuple[str, float]] = {
    name: (dimension, size)
    for dimension, spelt in {
        "length": "m metre meter 1; km kilometre kilometer 公里 千米 1000; cm centimetre centimeter 厘米 .01; "
        "mm millimetre millimeter 毫米 .001; mi mile 英里 1609.344; ft foot feet 英尺 .3048; inch inches .0254; 米 1; "
        "yard yd .9144; nm nanometre nanometer 1e-9; light-year 9.46e15",
        "area": "m² m2 square-metre square-meter 平方米 1; km² km2 square-kilometre square-kilometer 平方公里 1e6; "
        "hectare ha 公顷 1e4; acre 4046.86; square-mile 2589988",
        "mass": "g gram gramme 克 .001; kg kilogram kilogramme 公斤 千克 1; t ton tonne 吨 1000; mg .000001; "
        "lb lbs pound .45359; ounce oz .02835",
        "time": "s second sec 秒 1; ms millisecond 毫秒 .001; min minute 分钟 60; h hr hour 小时 3600; day 天 86400; "
        "week 周 604800; month 个月 2629800; year yr 年 31557600; decade 315576000; century 世纪 3155760000",
        "share": "% percent per-cent 1; percentage-point 1",
        "money": "$ dollar usd us$ 美元 1",
        "euro": "€ euro eur 欧元 1",
        "sterling": "£ gbp pound 英镑 1",
        "yen": "¥ yen yuan rmb 元 人民币 1",
        "degree": "°c celsius 摄氏度 ℃ 1",
        "fahrenheit": "°f fahrenheit 1",
        "volume": "litre liter l 升 1; ml millilitre milliliter .001; gallon 3.785; m³ m3 1000",
        "power": "w watt 1; kw kilowatt 1000; mw megawatt 1e6; gw gigawatt 1e9",
        "speed": "km/h kph 1; mph 1.609; m/s 3.6",
        "data": "kb 1; mb 1e3; gb 1e6; tb 1e9; kib 1.024; mib 1048.576; gib 1073741.824",
    }.items()
    for group in spelt.split(";")
    for names, size in [(group.split()[:-1], float(group.split()[-1]))]
    for name in names
}
_TWO_WORDS = re.compile(r"(square|light|per|percentage)[ -](\w+)", re.IGNORECASE)

_DAY = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_NAMED_MONTH = r"(?P<{0}>" + "|".join(sorted(_MONTH, key=len, reverse=True)) + r")\b\.?"
_DATES = [
    re.compile(r"(?<![\w-])(?P<y>\d{4})-(?P<m>\d{2})(?:-(?P<d>\d{2}))?(?![\w-])"),
    re.compile(r"(?P<y>\d{4})\s*年(?:\s*(?P<m>\d{1,2})\s*月(?:\s*(?P<d>\d{1,2})\s*[日号])?)?"),
    re.compile(rf"\b{_DAY.format('d')}(?: of)? {_NAMED_MONTH.format('n')}(?:,? (?P<y>\d{{4}})\b)?", re.IGNORECASE),
    re.compile(rf"\b{_NAMED_MONTH.format('n')} {_DAY.format('d')}\b(?!,\d|\d)(?:,? (?P<y>\d{{4}})\b)?", re.IGNORECASE),
    re.compile(rf"\b{_NAMED_MONTH.format('n')},? (?:of )?(?P<y>\d{{4}})\b", re.IGNORECASE),
]
_NUMBER = re.compile(
    r"(?:(?P<money>US\$|[$€£¥])\s?)?(?<![A-Za-z\d_.])(?P<sign>[-−](?=\d))?"
    r"(?P<digits>\d{1,3}(?:[\u00a0\u2009\u202f' ]\d{3})+(?![\d.,]\d|\d)|\d+(?:[.,]\d+)*)"
    r"(?P<nth>(?:st|nd|rd|th)\b)?"
    r"(?:[ -]?(?P<scale>hundred|thousand|million|billion|trillion|bn|mn)\b|(?P<short>[kM])\b"
    r"|\s?(?P<cjk>[百千]?[万亿]亿?))?"
)
_CJK_NUMBER = re.compile(
    r"[零〇一二两三四五六七八九][零〇一二两三四五六七八九十百千万亿]+|十[一二三四五六七八九]?(?=[年月日个人岁米公世名位座所条倍次部])"
    r"|[二两三四五六七八九](?=[个座名位条所部次倍岁人件层艘只头家间张本届天周])"
    r"|[一二两三四五六七八九](?=世纪|公里|千米|平方|米|年|个月|岁|百万)|[百千](?=万)"
)
_SPELT = "|".join([*sorted(_WORDS, key=len, reverse=True)])
_LARGE = "hundred|thousand|million|billion"
_SPELT_NUMBER = re.compile(
    rf"\b(?:(?:{_SPELT}|{_LARGE}|an?(?= (?:{_LARGE}|dozen)))(?:[ -](?:and )?(?=(?:{_SPELT}|{_LARGE})\b))?)+\b",
    re.IGNORECASE,
)
_ORDINAL = re.compile(rf"\b(?:{'|'.join(_ORDINALS)})\b", re.IGNORECASE)
_UNIT = re.compile(
    r"\s*-?\s?(?P<unit>%|°[CF]|℃|[a-zA-Zµ]+[²³23]?(?:/[hs])?|[$€£¥]|平方公里|平方米|个月|公里|千米|厘米|毫米|英里|英尺|世纪|分钟"
    r"|小时|公顷|公斤|千克|美元|欧元|英镑|人民币|摄氏度|[米年天周秒克吨升元])"
)
_LOOSE = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|circa|ca\.?|some|close to|nearly|almost)|[~≈约近])\s*$",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"(?:\b(?:over|more than|above|at least|exceed(?:s|ing|ed)?|greater than|no less than)|[>≥]|超过|多于|至少)\s*$",
    re.IGNORECASE,
)
_UNDER = re.compile(
    r"(?:\b(?:under|less than|fewer than|below|at most|up to|no more than)|[<≤]|不到|少于|至多)\s*$", re.IGNORECASE
)

_AFTER = re.compile(r"(?: [a-z]+)? (?:(?P<under>at most|or less|or fewer)|at least|or more)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number: its possible `readings`, half a unit of its last digit, its `unit` (dimension and size) and `bound`.

    `bound` is "~" for about, ">" for over, "<" for under. `nth` marks an ordinal. A calendar year is `year`.
    """

    start: int
    end: int
    readings: tuple[float, ...]
    half: float
    unit: tuple[str, float] | None = None
    bound: str = ""
    nth: bool = False
    year: bool = False
    rounded: float = 0.0
    told: int = -1
    """Where the words begin that bound it, -1 if there are none."""

    def held_by(self, other: "Quantity", *, bare: bool = False) -> bool:
        """Whether another number, rounded as this one is written, is this one. `bare`: units need not be told."""
        if self.nth != other.nth and not (self.unit and self.unit[0] == "time"):
            return False
        if not self._measures(other, bare=bare):
            return False
        if self.bound + other.bound in ("><", "<>"):
            return False
        mine = self.unit[1] if self.unit and other.unit else 1.0
        theirs = other.unit[1] if self.unit and other.unit else 1.0
        pairs = product(self.readings, other.readings)
        return any(self._is(value * mine, told * theirs, mine, converted=mine != theirs) for value, told in pairs)

    def _measures(self, other: "Quantity", *, bare: bool) -> bool:
        if self.unit and other.unit:
            return self.unit[0] == other.unit[0]
        return bare or not self.unit or self.unit[0] in ("time", "money")

    def _is(self, value: float, told: float, size: float, *, converted: bool) -> bool:
        if self.year:
            return value == told
        allowed = self.half * size * (1 + 1e-9)
        if converted:
            allowed = max(allowed, 0.005 * abs(value))
        if self.bound == "~":
            allowed = max(allowed, 0.01 * abs(value), min(self.rounded * size, 0.05 * abs(value)))
        if abs(value - told) <= allowed:
            return True
        if self.bound == ">":
            return value < told <= 1.15 * value
        return self.bound == "<" and 0.85 * value <= told < value


@dataclass(frozen=True, slots=True)
class Date:
    """A day, a month or a day of the year; what is not told is 0."""

    start: int
    end: int
    year: int
    month: int
    day: int

    def held_by(self, other: "Date") -> bool:
        """Whether another date says all that this one says, and the same."""
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return all(not mine or mine == theirs for mine, theirs in pairs)


def dates(text: str) -> list[Date]:
    """The dates of a text; a year alone is a number."""
    found: list[Date] = []
    for form in _DATES:
        for match in form.finditer(text):
            parts = match.groupdict()
            month = _MONTH[parts["n"].lower()] if parts.get("n") else int(parts.get("m") or 0)
            date = Date(match.start(), match.end(), int(parts.get("y") or 0), month, int(parts.get("d") or 0))
            free = all(date.end <= one.start or one.end <= date.start for one in found)
            if free and month <= 12 and date.day <= 31 and (month or "年" in match[0]):
                found.append(date)
    return sorted(found, key=lambda date: date.start)


def quantities(text: str) -> list[Quantity]:
    """The numbers of a text in digits, in words and in Chinese signs, in order; none overlaps another."""
    found: list[Quantity] = []
    for reading in (_in_digits(text), _in_cjk(text), _in_words(text), _ordinals(text)):
        found += [one for one in reading if all(one.end <= known.start or known.end <= one.start for known in found)]
    return sorted(found, key=lambda one: one.start)


def _made(text: str, start: int, end: int, readings: tuple[float, ...], half: float, **more: object) -> Quantity:
    before = text[max(0, start - 16) : start]
    bounds = (("~", _LOOSE.search(before)), (">", _OVER.search(before)), ("<", _UNDER.search(before)))
    bound, match = next(((sign, match) for sign, match in bounds if match), ("", None))
    told = start - len(before) + match.start() if match else -1
    unit, stop = more.pop("unit", None), end
    if unit is None and not more.get("nth"):
        unit, stop = _unit(text, end)
    if after := _AFTER.match(text[stop : stop + 40]):
        bound = "<" if after["under"] else ">"
    return Quantity(start, stop, readings, half, unit, bound, rounded=_rounded(readings[0]), told=told, **more)  # type: ignore[arg-type]


def _unit(text: str, end: int) -> tuple[tuple[str, float] | None, int]:
    """The unit that follows a number, and where it ends."""
    if double := _TWO_WORDS.match(text[end : end + 40].lstrip(" -")):
        name = f"{double[1]}-{double[2]}".lower()
        name = name if name in _UNITS else name.removesuffix("s")
        if name in _UNITS:
            return _UNITS[name], end + text[end:].index(double[0]) + len(double[0])
    match = _UNIT.match(text, end)
    if match is None:
        return None, end
    name = match["unit"]
    known = name if name in _UNITS else name.lower()
    known = known if known in _UNITS or len(known) < 4 else known.removesuffix("s")
    follows = text[match.end() : match.end() + 1]
    if known not in _UNITS or (name[-1].isascii() and follows.isalpha() and follows.isascii()):
        return None, end
    return _UNITS[known], match.end()


def _rounded(value: float) -> float:
    """Half a unit of the last digit that is not zero: 500 for 3000."""
    size = 1.0
    while value and value == int(value) and int(value) % (size * 10) == 0:
        size *= 10
    return size / 2


def _in_digits(text: str) -> list[Quantity]:
    found = []
    for match in _NUMBER.finditer(text):
        digits = match["digits"].strip()
        readings, decimals = _readings(digits)
        scale = _SCALES.get((match["scale"] or match["short"] or "").lower() or "-", 1.0) if not match["cjk"] else 1.0
        if match["short"] == "M":
            scale = 1e6
        for sign in match["cjk"] or "":
            scale *= _CJK_SCALES[sign]
        sign = -1.0 if match["sign"] and not re.search(r"[\w)]$", text[: match.start()]) else 1.0
        values = tuple(sign * value * scale for value in readings)
        half = 0.5 * 10.0**-decimals * scale
        plain = scale == 1 and len(digits) == 4 and digits.isdigit() and 1000 <= readings[0] <= 2100
        unit = _UNITS.get(match["money"].lower()) if match["money"] else None
        one = _made(text, match.start(), match.end(), values, half, unit=unit, nth=bool(match["nth"]))
        year = plain and not (one.unit and one.unit[0] != "time") and not match["money"]
        found.append(replace(one, unit=None, year=True) if year else one)
    return found


def _readings(digits: str) -> tuple[tuple[float, ...], int]:
    """What a written number may mean, and how many decimals it has: 3,5 and 3.5; 1,200 and 1.200 and 1 200."""
    plain = re.sub(r"[\s']", "", digits)
    marks = re.findall(r"[.,]", plain)
    parts = re.split(r"[.,]", plain)
    grouped = all(len(part) == 3 for part in parts[1:]) and len(parts[0]) <= 3
    if not marks:
        return (float(plain),), 0
    if len(set(marks)) == 1 and grouped and parts[0] != "0":
        whole = float("".join(parts))
        if len(marks) > 1:
            return (whole,), 0
        return ((whole,), 0) if marks[0] == "," else ((float(plain), whole), 3)
    if len(marks) == 1 or len(set(marks)) == 2:
        return (float(f"{''.join(parts[:-1])}.{parts[-1]}"),), len(parts[-1])
    return (float("".join(parts)),), 0


def _in_cjk(text: str) -> list[Quantity]:
    found = []
    for match in _CJK_NUMBER.finditer(text):
        total, section, digit = 0.0, 0.0, 0.0
        if all(sign in _DIGITS for sign in match[0]):
            total = float("".join(str(_DIGITS[sign]) for sign in match[0]))
        else:
            for sign in match[0]:
                if sign in _DIGITS:
                    digit = _DIGITS[sign]
                elif _CJK_SCALES[sign] < 1e4:
                    section, digit = section + (digit or 1) * _CJK_SCALES[sign], 0.0
                else:
                    total, section, digit = (total + section + digit or 1) * _CJK_SCALES[sign], 0.0, 0.0
            total += section + digit
        found.append(_made(text, match.start(), match.end(), (total,), 0.5))
    return found


def _in_words(text: str) -> list[Quantity]:
    """Numbers in words; "one" alone is more often a pronoun and is none."""
    found = []
    for match in _SPELT_NUMBER.finditer(text):
        parts = [part for part in re.split(r"[ -]", match[0].lower()) if part and part != "and"]
        if parts in (["one"], ["a"], ["an"]):
            continue
        total, section = 0.0, 0.0
        for part in parts:
            if part in ("hundred", "dozen"):
                section = (section or 1) * (100 if part == "hundred" else 12)
            elif part in _SCALES:
                total, section = total + (section or 1) * _SCALES[part], 0.0
            else:
                section += _WORDS.get(part, 1)
        found.append(_made(text, match.start(), match.end(), (total + section,), 0.5))
    return found


def _ordinals(text: str) -> list[Quantity]:
    found = []
    for match in _ORDINAL.finditer(text):
        value = float(_ORDINALS.index(match[0].lower()) + 1)
        found.append(_made(text, match.start(), match.end(), (value,), 0.5, nth=True))
    return found
