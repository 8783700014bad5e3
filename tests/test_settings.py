"""Where settings come from, which of them wins, and what is said when one is wrong."""

import os
from pathlib import Path
from typing import Any

import pytest

from hira import Hira
from hira.core.errors import UsageError
from hira.policies.openai import OpenAIPolicy
from hira.runtime.settings import TRUST, Settings, load


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".config" / "hira").mkdir(parents=True)
    return tmp_path / "home"


def config(home: Path, text: str) -> Path:
    path = home / ".config" / "hira" / "hira.toml"
    path.write_text(text, encoding="utf-8")
    return path


def project(folder: Path, text: str) -> Path:
    path = folder / "hira.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_each_place_wins_over_the_ones_below_it(folder: Path, home: Path) -> None:
    user_file = config(home, 'model = "user"\nparallel = 2\nmax_subtasks = 3\ntop_k = 7')
    project_file = project(folder, 'model = "project"\nparallel = 4\nmax_subtasks = 5')
    settings = load({"model": "flag"}, {"HIRA_MODEL": "environment", "HIRA_PARALLEL": "6"}, folder, home)
    found = {name: (getattr(settings, name), settings.origin(name)) for name in ("model", "parallel", "max_subtasks")}
    assert found == {
        "model": ("flag", "--model"),
        "parallel": (6, "HIRA_PARALLEL"),
        "max_subtasks": (5, str(project_file)),
    }
    assert (settings.top_k, settings.origin("top_k")) == (7, str(user_file))
    assert (settings.temperature, settings.top_p, settings.origin("temperature")) == (0.7, 0.95, "default")


@pytest.mark.parametrize("values", [{"temperature": 9}, {"roles": {"planner": {"temperature": 2.5}}}])
def test_a_temperature_that_no_endpoint_takes_is_an_error(values: dict[str, Any], folder: Path, home: Path) -> None:
    with pytest.raises(UsageError, match="temperature must be at most 2, got "):
        load(values, {}, folder, home)


def test_the_user_configuration_is_looked_for_where_xdg_says(folder: Path, home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "xdg" / "hira"
    elsewhere.mkdir(parents=True)
    (elsewhere / "hira.toml").write_text('model = "there"', encoding="utf-8")
    assert load({}, {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}, folder, home).model == "there"


def test_hiras_own_variables_win_over_those_of_other_programs(folder: Path, home: Path) -> None:
    environ = {"OPENAI_API_KEY": "general", "OPENAI_BASE_URL": "http://general/v1", "HIRA_API_KEY": "own"}
    settings = load({}, environ, folder, home)
    assert settings.api_key.get_secret_value() == "own"
    assert settings.origin("api_key") == "HIRA_API_KEY"
    assert settings.base_url == "http://general/v1"


def test_a_key_is_never_shown(folder: Path, home: Path) -> None:
    settings = load({}, {"OPENAI_API_KEY": "sk-secret", "SERPER_API_KEY": "sp-secret"}, folder, home)
    assert "secret" not in repr(settings) + str(settings) + settings.model_dump_json()
    with pytest.raises(UsageError) as error:
        load({"parallel": "many"}, {"OPENAI_API_KEY": "sk-secret"}, folder, home)
    assert "secret" not in str(error.value)


HIDDEN = "https://me:hidden-7@models.example/v1"


@pytest.mark.parametrize(
    "given",
    [
        {"base_url": HIDDEN},
        {"searxng_url": HIDDEN, "otel": HIDDEN},
        {"roles": {"planner": {"base_url": HIDDEN}}},
        {"mcp": {"files": {"url": HIDDEN}}},
        {"mcp": {"files": {"command": "serve", "args": ["--store", HIDDEN]}}},
        {"experts": {"diver": {"object": "my:diver", "store": HIDDEN, "api_key": "hidden-7"}}},
    ],
)
def test_a_password_is_never_shown(given: dict[str, Any]) -> None:
    settings = Settings(model="small-1", **given)
    assert "hidden-7" not in repr(settings) + str(settings)
    assert "hidden-7" in settings.secrets
    hira = Hira("small-1", base_url=HIDDEN, otel=HIDDEN, roles={"planner": f"small-1@{HIDDEN}"})
    assert "hidden-7" not in repr(hira)
    assert "base_url='https://models.example/v1'" in repr(hira)


@pytest.mark.parametrize("wrong", ["ftp://me:hidden-7@models.example", "http://me:hidden-7@models.example:port/v1"])
def test_an_error_about_a_url_shows_no_password(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"models\.example") as error:
        OpenAIPolicy("small-1", base_url=wrong)
    assert "hidden-7" not in str(error.value)
    with pytest.raises(UsageError, match=r"models\.example") as error:
        Settings(api=wrong)  # type: ignore[arg-type]
    assert "hidden-7" not in str(error.value)


def test_an_unknown_key_is_an_error_that_names_the_nearest_one(folder: Path, home: Path) -> None:
    path = project(folder, 'modle = "x"')
    with pytest.raises(UsageError) as error:
        load({}, {}, folder, home)
    assert str(error.value) == f"unknown key 'modle' in hira.toml\nin {path}\ndid you mean 'model'?"
    project(folder, "[roles.planner]\ntemprature = 0.1")
    with pytest.raises(UsageError, match=r"table \[roles.planner\]\ndid you mean 'temperature'"):
        load({}, {}, folder, home)
    project(folder, '[hira]\nmodel = "m"')
    with pytest.raises(UsageError, match=r"unknown table \[hira\].*\n.*\nmove its keys to the beginning of the file"):
        load({}, {}, folder, home)
    with pytest.raises(UsageError, match="unknown setting 'modle'\ndid you mean 'model'"):
        Settings(modle="x")  # type: ignore[call-arg]


def test_a_file_with_a_byte_order_mark_is_read_and_a_time_may_have_a_unit(home: Path, folder: Path) -> None:
    (folder / "hira.toml").write_text('max_time = "10m"\n', encoding="utf-8-sig")
    assert load({}, {}, folder, home).max_time == 600
    assert load({}, {"HIRA_MAX_TIME": "90s"}, folder, home).max_time == 90
    assert Settings(max_time="1.5h").max_time == 5400


def test_a_folder_of_settings_that_may_not_be_read_is_named(home: Path, folder: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may read every folder")
    (home / ".config").mkdir(mode=0)
    with pytest.raises(UsageError, match="cannot be read: Permission denied"):
        load({}, {}, folder, home)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"max_time": -1}, "max_time must be more than 0, got -1"),
        ({"temperature": float("inf")}, "temperature must be a number, got inf"),
        ({"dialect": "tag"}, "dialect must be 'native', 'tags', 'xml' or 'json', got 'tag'\ndid you mean"),
        ({"roles": {"planner": {"temperature": "hot"}}}, "roles.planner.temperature must be a number, got 'hot'"),
        ({"api_key": 12345678}, "api_key must be text\n"),
        ({"search_keys": {"serper": 12345678}}, "search_keys.serper must be text\n"),
        ({"docs": ""}, "docs must be a list, got ''"),
        (
            {"max_calls": "x" * 50_000},
            f"max_calls must be a whole number, got '{'x' * 99}…\n",
        ),
    ],
)
def test_a_wrong_value_of_settings_made_by_hand_is_told_without_what_may_be_a_key(
    values: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError) as error:
        Settings(**values)
    assert str(error.value).startswith(says)


def test_a_single_path_and_a_journal_that_is_off_may_be_set_as_text() -> None:
    settings = Settings(docs="notes", exclude="notes/drafts", journal="off")  # type: ignore[arg-type]
    assert (settings.docs, settings.exclude, settings.journal) == ((Path("notes"),), (Path("notes/drafts"),), None)


def test_what_is_not_said_to_load_is_that_of_this_process(
    folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(folder, 'model = "project"\nmax_calls = 7\nexclude = ["drafts"]')
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "HIRA_MAX_CALLS", "HIRA_EXCLUDE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HIRA_MODEL", "environment")
    settings = load({"max_time": 60})
    assert (settings.max_time, settings.model, settings.max_calls) == (60, "environment", 7)
    assert settings.exclude == (folder / "drafts",)
    assert settings.journal is None  # a program that does not name one records nothing
    with pytest.raises(UsageError, match=r"max_time must .*\nset by load\(max_time=…\)"):
        load({"max_time": -1})


def test_a_mistyped_variable_of_hira_is_an_error_and_one_that_means_something_else_is_not(
    folder: Path, home: Path
) -> None:
    settings = load({}, {"HIRA_MODLE": "x", "HIRA_ANOTHER_PROGRAM": "y"}, folder, home)
    assert settings.withheld == ("the environment variable HIRA_MODLE is not used; did you mean HIRA_MODEL?",)
    load({}, {"HIRA_QUITE_ANOTHER_THING": "x"}, folder, home)


def test_a_wrong_value_is_told_with_where_it_was_set(folder: Path, home: Path) -> None:
    with pytest.raises(UsageError) as error:
        load({}, {"HIRA_MAX_SUBTASKS": "many"}, folder, home)
    assert error.value.what == "max_subtasks must be a whole number, got 'many'"
    assert error.value.where == "set by HIRA_MAX_SUBTASKS"
    path = project(folder, 'dialect = "tag"')
    with pytest.raises(UsageError) as error:
        load({}, {}, folder, home)
    assert (error.value.where, error.value.fix) == (f"set by {path}", "did you mean 'tags'?")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model = ", "is not valid TOML"),
        ("model = small", "texts need quotation marks"),
        ("rewrite = False", "true and false are in lower case"),
        ('model = "a"\nmodel = "b"', "name each key and table once"),
        ("roles = 3", "roles in hira.toml is not a table"),
        ("[workflow.hira]\nmax_subtasks = 3", r"workflow in hira.toml is not a table\n.*\nwrite \[workflows.hira\]"),
        ("a = " + "[" * 50_000, "is not valid TOML"),
        ("a" + ".a" * 40_000 + " = 1", "not a file of at most 64 KB"),
        (None, "not a file of at most 64 KB"),
    ],
    ids=[
        "no value",
        "no quotation marks",
        "a capital letter",
        "twice",
        "no table",
        "a table",
        "deep",
        "long",
        "a pipe",
    ],
)
def test_a_file_that_cannot_be_read_is_named(folder: Path, home: Path, text: str | None, says: str) -> None:
    path = folder / "hira.toml"
    if text is None:
        os.mkfifo(path)
    else:
        path.write_text(text)
    with pytest.raises(UsageError, match=says) as error:
        load({}, {}, folder, home)
    assert str(path) in error.value.where


def test_values_of_files_and_variables_are_merged_and_paths_start_at_the_folder(folder: Path, home: Path) -> None:
    project(folder, 'docs = ["papers"]')
    roles = '[roles.planner]\nmodel = "big"\ntemperature = 0.1\n[roles.code]\nmodel = "coder"'
    config(home, f'[search_keys]\nserper = "file"\njina = "file"\n{roles}')
    environ = {"SERPER_API_KEY": "environment", "BRAVE_API_KEY": "environment", "HIRA_WITHOUT": "code, search"}
    settings = load({"roles": {"planner": {"model": "other"}}}, environ, folder, home)
    keys = {name: key.get_secret_value() for name, key in settings.search_keys.items()}
    assert keys == {"serper": "environment", "jina": "file", "brave": "environment"}
    planner = settings.roles["planner"]
    assert (planner.model, planner.temperature, settings.roles["code"].model) == ("other", 0.1, "coder")
    assert (settings.without, settings.docs) == ({"code", "search"}, (folder / "papers",))
    assert load({}, {"HIRA_DOCS": "a:b"}, folder, home).docs == (folder / "a", folder / "b")


def test_a_list_of_experts_keeps_the_options_that_a_file_gives_them(folder: Path, home: Path) -> None:
    table = '[experts.sql]\nobject = "shop:sql"\nurl = "sqlite:shop.db"\n[experts.diver]\nobject = "lakes:Diver"\n'
    config(home, table)
    settings = load({}, {"HIRA_EXPERTS": "shop:sql,own:Cook"}, folder, home)
    listed = {name: expert.to_json() for name, expert in settings.experts.items()}
    assert listed == {
        "sql": {"object": "shop:sql", "url": "sqlite:shop.db"},
        "own:Cook": {"object": "own:Cook"},
    }


def test_a_list_of_experts_replaces_a_table_whose_object_is_no_text(folder: Path, home: Path) -> None:
    config(home, '[experts.sql]\nobject = ["shop:sql"]\n')
    assert list(load({}, {"HIRA_EXPERTS": "shop:sql"}, folder, home).experts) == ["shop:sql"]
    with pytest.raises(UsageError, match=r"experts\.sql\.object|experts\.str"):
        load({}, {}, folder, home)


def test_only_the_user_sets_the_sandbox_and_the_collector(folder: Path, home: Path) -> None:
    assert load({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, folder, home).otel == "http://c:4318"
    for name, value in (("sandbox", "off"), ("otel", "http://elsewhere")):
        project(folder, f'{name} = "{value}"')
        with pytest.raises(UsageError, match=f"'{name}' may not be set by a project's file"):
            load({}, {}, folder, home)


def test_a_projects_file_names_nothing_outside_its_folder(folder: Path, home: Path) -> None:
    for elsewhere in ("..", "~", "/etc", "papers/../../home"):
        project(folder, f'docs = ["{elsewhere}"]')
        with pytest.raises(UsageError, match="may not name documents elsewhere"):
            load({}, {}, folder, home)
    for line in ('journal = "/etc/runs.sqlite"', 'cache = "~/.cache"', 'journal = "../runs.sqlite"'):
        project(folder, line)
        with pytest.raises(UsageError, match=r"may not name a (journal|cache) elsewhere"):
            load({}, {}, folder, home)
    project(folder, 'journal = "off"\ncache = "kept"')
    load({}, {}, folder, home)
    config(home, 'docs = ["/etc"]')
    project(folder, 'docs = "papers"')
    assert load({}, {}, folder, home).docs == (folder / "papers",)


def test_documents_named_closer_than_a_web_search_keep_the_question_off_the_web(folder: Path, home: Path) -> None:
    config(home, 'search = "serper"')
    settings = load({"docs": ["notes"]}, {}, folder, home)
    assert settings.search == ""
    assert "search 'serper'" in settings.withheld[0]
    assert load({"docs": ["notes"], "search": "brave"}, {}, folder, home).search == "brave"
    config(home, 'search = "serper"\ndocs = ["notes"]')
    assert load({}, {}, folder, home).search == "serper"


def test_changed_settings_remember_where_the_others_came_from(folder: Path, home: Path) -> None:
    settings = load({}, {"HIRA_MODEL": "m", "HIRA_PARALLEL": "2"}, folder, home).with_values(
        {"model": "n"}, "elsewhere"
    )
    assert (settings.model, settings.origin("model")) == ("n", "elsewhere")
    assert (settings.parallel, settings.origin("parallel")) == (2, "HIRA_PARALLEL")


def test_secrets_are_those_set_and_those_of_the_environment_and_survive_a_change(tmp_path: Path) -> None:
    environ = {
        "OPENAI_API_KEY": "sk-12345678",
        "GITHUB_TOKEN": "gh-12345678",
        "KEYBOARD": "layout-us",
        "A_KEY": "short",
    }
    settings = load({}, environ, tmp_path, tmp_path).with_values({"model": "m"}, "test")
    assert settings.secrets == {"sk-12345678", "gh-12345678"}


@pytest.mark.parametrize(
    "text",
    [
        'model = "litellm/openai/x"\nbase_url = "https://evil.example/v1"',
        'model = "m, litellm/openai/x@https://evil.example/v1"',
        'model = "litellm/huggingface/https://evil.example/v1"',
        '[roles.planner]\nmodel = "litellm/openai/x"\nbase_url = "https://evil.example/v1"',
        'base_url = "https://evil.example/v1"\n[roles.planner]\nmodel = "litellm/openai/x"',
        'model = "litellm/openai/x"\n[roles.planner]\nbase_url = "https://evil.example/v1"',
    ],
)
def test_a_projects_file_gives_no_model_of_litellm_an_address(folder: Path, home: Path, text: str) -> None:
    path = project(folder, text)
    with pytest.raises(UsageError, match="may not name a base URL for 'litellm/") as error:
        load({}, {"OPENAI_API_KEY": "openai"}, folder, home)
    assert error.value.where == f"in {path}"
    config(home, text)
    path.unlink()
    load({}, {}, folder, home)


def test_a_projects_file_gives_the_users_model_of_litellm_no_address_either(folder: Path, home: Path) -> None:
    project(folder, '[roles.planner]\nbase_url = "https://evil.example/v1"')
    with pytest.raises(UsageError, match="'litellm/openai/x'"):
        load({"model": "litellm/openai/x"}, {}, folder, home)
    with pytest.raises(UsageError, match="'litellm/openai/x'"):
        load({"roles": {"planner": {"model": "litellm/openai/x"}}}, {}, folder, home)
    load({"roles": {"code": {"model": "litellm/openai/x"}}}, {TRUST: "https://evil.example/v1"}, folder, home)


def test_a_password_in_a_url_is_a_secret_and_is_not_recorded() -> None:
    def url(password: str) -> str:
        return f"https://me:{password}@host.example/v1"

    settings = Settings(
        model=f"m@{url('in-model-1')}, n@{url('in-model-2')}",
        base_url=url("in-base-url"),
        searxng_url=url("in-searxng"),
        roles={"planner": {"base_url": url("in-role%2Furl"), "model": f"x@{url('in-role-model')}"}},  # type: ignore[dict-item]
        mcp={"m": {"url": url("in-mcp-url")}},  # type: ignore[dict-item]
    )
    shown = settings.to_json()
    assert "in-" not in str(shown)
    assert (shown["base_url"], shown["searxng_url"]) == ("https://host.example/v1",) * 2
    assert shown["model"] == "m@https://host.example/v1, n@https://host.example/v1"
    assert settings.secrets == {
        "in-model-1",
        "in-model-2",
        "in-base-url",
        "in-searxng",
        "in-role%2Furl",
        "in-role/url",
        "in-role-model",
        "in-mcp-url",
    }


def test_one_chain_of_reasoning_and_native_calls_are_not_set_together(folder: Path, home: Path) -> None:
    for values in (
        {"continuation": "prefix"},
        {"continuation": "prefix", "dialect": "tags", "roles": {"planner": {"dialect": "native"}}},
        {"roles": {"planner": {"continuation": "completions"}}},
        {"dialect": "tags", "roles": {"planner": {"continuation": "prefix", "dialect": "native"}}},
    ):
        with pytest.raises(UsageError, match='dialect = "tags"'):
            Settings(**values)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match='dialect = "tags"'):
            load(values, {}, folder, home)
    Settings(continuation="prefix", dialect="tags")
    Settings(dialect="tags", roles={"planner": {"continuation": "prefix"}})  # type: ignore[dict-item]
