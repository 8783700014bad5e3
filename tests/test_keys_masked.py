"""A key of the user is masked wherever and however it is spelled, and nothing beside it."""

import base64
import json
import sys
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.core.masking import MASK, mask
from hira.core.sanitize import clean, redact

KEY = "sk-Live_7+g/Q=9&é"
KEYS = frozenset({KEY, "another-key-0001"})
SPELLINGS = {
    "as it is": KEY,
    "zero-width": "\u200b".join(KEY),
    "soft hyphens": "\xad\u2060".join(KEY),
    "escapes": KEY.replace("_", "_\x1b[31m\x1b]8;;http://a.example\x07"),
    "percent": "".join(f"%{byte:02x}" for byte in KEY.encode()),
    "percent where URLs need it": quote(KEY),
    "percent twice": quote(quote(KEY, safe=""), safe=""),
    "HTML": "".join(f"&#{ord(sign)};" for sign in KEY),
    "HTML, hexadecimal": "".join(f"&#x00{ord(sign):X};" for sign in KEY),
    "HTML, names": KEY.replace("&", "&amp;").replace("+", "&plus;").replace("/", "&sol;"),
    "HTML in percent": quote("".join(f"&#{ord(sign)}" for sign in KEY)),
    "JSON": json.dumps(KEY)[1:-1],
    "JSON, all": "".join(f"\\u{ord(sign):04x}" for sign in KEY),
    "hexadecimal": KEY.encode().hex(),
    "zero-width in percent": "\u200b".join(f"%{byte:02X}" for byte in KEY.encode()),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_key_is_masked_in_every_disguise(name: str) -> None:
    assert mask(f"100% of <b> {SPELLINGS[name]}, a\u200bb & c", KEYS) == f"100% of <b> {MASK}, a\u200bb & c"


@given(st.binary(max_size=8), st.binary(max_size=90), st.sampled_from([0, 19, 76]), st.booleans())
def test_a_key_is_masked_within_base64_of_any_alignment(before: bytes, after: bytes, width: int, url: bool) -> None:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    packed = encode(before + KEY.encode() + after).decode()
    lines = [packed[at : at + width] for at in range(0, len(packed), width)] if width else [packed]
    hidden = "".join(mask("\n".join(lines), KEYS).split())
    assert MASK in hidden
    assert packed[len(before) // 3 * 4 + 4 :][:8] not in hidden


@given(st.text(alphabet="sk-Live_7+g/Q=9&é%26abc;#x0\\u\u200b\xad\x1b[m \n", max_size=80))
def test_masking_changes_nothing_where_no_key_is(text: str) -> None:
    assert mask(text, KEYS) == text


@given(st.sampled_from(sorted(SPELLINGS)), st.text(max_size=20), st.text(max_size=20))
def test_cleaning_never_restores_a_key(name: str, before: str, after: str) -> None:
    assert KEY not in clean(mask(f"{before} {SPELLINGS[name]} {after}", KEYS))


def test_keys_are_masked_in_every_text_of_a_json_value() -> None:
    value = {"a": [SPELLINGS["HTML"], 1, None], SPELLINGS["percent"]: "b"}
    assert redact(value, KEYS) == {"a": [MASK, 1, None], MASK: "b"}
    assert redact(clear := {"a": ["b"]}, KEYS) is clear


@pytest.mark.parametrize(
    "unit", ["%", "%25", "&#", "&#0", "&amp;", "\\u00", "\u200b", "\x1b]", "\x1b[0", "sk-", "c2st", "%73%6b", " "]
)
def test_masking_takes_time_in_proportion_to_the_text(unit: str) -> None:
    def count(size: int) -> int:
        calls = 0

        def note(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(note)
        try:
            mask(unit * size, KEYS)
        finally:
            sys.setprofile(None)
        return calls

    count(10)
    assert count(8_000) <= 4.2 * count(2_000) + 100
