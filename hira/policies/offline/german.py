"""What of a German question says only its form: its small words, and what kind of answer it wants."""

import re

_ASKS = re.compile(
    r"^\W*(?:(?:in|an|aus|auf|bei|mit|von|zu|seit|für|um) )?"
    r"(?:wer|wem|wen|wessen|wann|wo|woher|wohin|wie|warum|weshalb|wieso|welche[mnrs]?"
    r"|was (?=(?:ist|sind|war|waren|kostet|kosten|macht|hat|tut|der|die|das|ein)\b))\b",
    re.IGNORECASE,
)
SMALL = frozenset(
    "der die das dem den des ein eine einer eines einem einen und oder ist sind war waren wurde wurden wird werden hat"
    " haben hatte hatten wer wem wen wessen wann wo woher wohin wie viel viele was warum weshalb welche welcher welches"
    " welchen welchem von vom im in am an auf aus zu zum zur bei mit fur uber nach seit es er sie sich auch noch lange"
    " hoch alt weit gross teuer heisst hiess jahr name".split()
)
ADJECTIVES = {
    "alt": "old", "hoch": "high", "lang": "long", "tief": "deep", "breit": "wide", "groß": "large", "schwer": "heavy",
    "schnell": "fast", "weit": "far",
}  # fmt: skip
"""What is measured, in English."""
KINDS = (
    ("hours", r"\böffnungszeiten\b|\bwann\b.*\b(?:geöffnet|offen|auf|geschlossen)\b|\bum wie ?viel uhr\b"),
    ("money", r"\bwas kosten?t?\b|\bwie ?(?:viel|teuer)\b.*\b(?:kosten?t?|ist|sind)\b"),
    ("date", r"\bwann\b|\bin welchem jahr\b|\bwie alt\b"),
    ("number", r"\bwie ?viele?\b|\bwie (?:hoch|lang|weit|tief|breit|gro(?:ß|ss)|schwer|schnell)\b"),
    ("person", r"\bwe(?:r|m|n|ssen)\b"),
    ("place", r"\bwo(?:her|hin)?\b|\bin welche[mr] (?:stadt|ort|land|dorf)\b"),
    ("cause", r"\bwarum\b|\bweshalb\b|\bwieso\b"),
)  # fmt: skip
"""The kinds of answers and the forms of questions, in lower case, that want them; tried in this order."""


def is_german(question: str) -> bool:
    return bool(_ASKS.match(question))
