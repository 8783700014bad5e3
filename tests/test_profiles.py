"""Profiles: what a training run leaves for those who ask with it."""

from pathlib import Path

import pytest

from hira.core.errors import UsageError
from hira.runtime.settings import load

PROFILE = """
model = "hf:./model"
workflow = "matpo"
docs = ["documents"]

[roles.planner]
adapter = "./adapters/planner"
"""
SERVED = """
model = "base"
base_url = "http://127.0.0.1:8000/v1"

[roles.planner]
model = "planner"
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "profile.toml").write_text(PROFILE)
    (folder / "served.toml").write_text(SERVED)
    return folder


def test_paths_of_a_profile_begin_at_its_folder(run: Path, tmp_path: Path) -> None:
    settings = load({"profile": "run"}, {}, tmp_path, tmp_path)
    assert settings.model == f"hf:{run / 'model'}"
    assert settings.roles["planner"].adapter == str(run / "adapters" / "planner")
    assert settings.docs == (run / "documents",)
    assert settings.workflow == "matpo"
    assert settings.origin("model") == str(run / "profile.toml")


def test_a_model_that_is_named_closer_has_none_of_the_profiles_adapters(run: Path, tmp_path: Path) -> None:
    settings = load({"profile": run, "model": "other"}, {}, tmp_path, tmp_path)
    assert settings.model == "other"
    assert settings.roles["planner"].adapter is None


def test_with_a_server_the_adapters_are_called_as_it_serves_them(run: Path, tmp_path: Path) -> None:
    settings = load({"profile": run, "base_url": "http://127.0.0.1:9/v1"}, {}, tmp_path, tmp_path)
    assert (settings.model, settings.roles["planner"].model) == ("base", "planner")
    assert settings.base_url == "http://127.0.0.1:9/v1"


def test_a_profile_that_is_not_there_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the profile does not exist") as raised:
        load({"profile": "nowhere"}, {}, tmp_path, tmp_path)
    assert raised.value.where == str(tmp_path / "nowhere")


@pytest.mark.parametrize(("line", "told"), [('sandbox = "off"', "'sandbox' may not"), ('docs = ["/etc"]', "elsewhere")])
def test_a_profile_may_loosen_no_guard(line: str, told: str, run: Path, tmp_path: Path) -> None:
    (run / "profile.toml").write_text(f"{line}\n")
    with pytest.raises(UsageError, match=told):
        load({"profile": run}, {}, tmp_path, tmp_path)


def test_a_key_of_the_environment_is_not_sent_to_the_base_url_of_a_profile(run: Path, tmp_path: Path) -> None:
    settings = load({"profile": run / "served.toml"}, {"OPENAI_API_KEY": "sk-12345678"}, tmp_path, tmp_path)
    assert settings.base_url == "http://127.0.0.1:8000/v1"
    assert not settings.api_key.get_secret_value()
    assert any("OPENAI_API_KEY" in line for line in settings.withheld)
