"""The HTTP service answers as the predictor does, and refuses in one line."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from converters import to_measured_text, to_onnx_text
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.cli.verbs import serve
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.predictor import Predictor
from spaces import get_space, space_names
from tests.nasrlm.cli.test_cli import ARCHITECTURE
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.scenes import CODE, OBJECTIVES, SIZES

pytest.importorskip("fastapi", reason="needs the extra `serve`")
uvicorn = pytest.importorskip("uvicorn", reason="needs the extra `serve`")
testclient = pytest.importorskip("starlette.testclient", reason="needs httpx2", exc_type=RuntimeError)

from nasrlm.cli.serving import patience  # noqa: E402
from nasrlm.cli.serving.app import Limits, create_app  # noqa: E402
from nasrlm.cli.serving.body_limit import BodyLimit  # noqa: E402

SPACE = get_space("nasbench201")
NETWORKS = {"space": SPACE.name, "architectures": [ARCHITECTURE]}
LIMITS = Limits(max_networks=3, max_characters=100, max_quantiles=4, max_numbers=23, max_bytes=5000)


@pytest.fixture(scope="module")
def predictor(checkpoint_folder: Path) -> Predictor:
    return Predictor.from_pretrained(checkpoint_folder)


TWO_WIDTHS = """
from converters.builder import GraphBuilder
from spaces import GenotypeSpace

class TwoWidths(GenotypeSpace):
    name = "two_widths"
    choices = {"width": (16, 24)}

    def build(self, architecture):
        g = GraphBuilder((1, 3, 8, 8))
        return g.build(g.conv(g.input, architecture["width"], kernel=3))
"""


@pytest.fixture(scope="module")
def client(predictor: Predictor) -> Iterator[Any]:
    with testclient.TestClient(create_app(predictor, LIMITS)) as client:
        yield client


def test_architectures_are_predicted(client: Any, predictor: Predictor) -> None:
    answered = client.post("/predict", json=NETWORKS)
    assert answered.status_code == 200
    (row,) = answered.json()["predictions"]
    expected = predictor.predict([to_measured_text(SPACE, SPACE.parse(ARCHITECTURE))])
    assert list(row) == list(OBJECTIVES)
    for index, name in enumerate(OBJECTIVES):
        low, median, high = expected.values[0, index].tolist()
        assert (row[name]["low"], row[name]["median"], row[name]["high"]) == pytest.approx((low, median, high))
        assert row[name]["quantiles"] == pytest.approx({"0.1": low, "0.5": median, "0.9": high})


def test_texts_are_predicted_in_their_order(client: Any, predictor: Predictor) -> None:
    texts = ["Conv3\n", "Pool\nPool\n", "Conv3\n"]
    asked = {"texts": texts, "objectives": [OBJECTIVES[1]], "quantiles": [0.25, 0.5]}
    rows = client.post("/predict", json=asked).json()["predictions"]
    medians = predictor.predict(texts, [OBJECTIVES[1]], [0.5]).median[:, 0]
    assert [row[OBJECTIVES[1]]["median"] for row in rows] == pytest.approx(medians.tolist(), rel=1e-3)


def test_texts_of_another_kind_than_the_learned_ones_are_told(checkpoint: Checkpoint) -> None:
    architecture = SPACE.parse("|nor_conv_3x3~0|+|nor_conv_3x3~0|none~1|+|skip_connect~0|none~1|none~2|")
    canonical, measured = to_onnx_text(SPACE, architecture), to_measured_text(SPACE, architecture)
    learned = replace(checkpoint, card={**checkpoint.card, "measured_spaces": [SPACE.name]})
    with testclient.TestClient(create_app(Predictor(learned))) as other:

        def warning(text: str, space: str) -> Any:
            return other.post("/predict", json={"space": space, "texts": [text]}).json()["warning"]

        with pytest.warns(UserWarning, match="expected measured texts"):
            assert "expected measured texts of nasbench201, got canonical" in warning(canonical, SPACE.name)
        assert warning(measured, SPACE.name) is None
        assert warning(canonical, "darts") is None
        with pytest.warns(UserWarning, match="looks like a notation"):
            assert "got a line that looks like a notation" in warning(ARCHITECTURE, "darts")


def test_guesses_are_told(client: Any, checkpoint: Checkpoint) -> None:
    assert client.post("/predict", json=NETWORKS).json()["warning"] is None
    asked = {"space": "nasbench_macro", "architectures": ["00000000"]}
    learned = replace(checkpoint, card={**checkpoint.card, "test": {SPACE.name: {}}})
    with testclient.TestClient(create_app(Predictor(learned))) as other:
        assert other.post("/predict", json=NETWORKS).json()["warning"] is None
        assert (
            "predictions for nasbench_macro may be unreliable" in other.post("/predict", json=asked).json()["warning"]
        )
        assert (
            "networks whose space is not named may be unreliable"
            in other.post("/predict", json={"texts": ["Conv3\n"]}).json()["warning"]
        )


def test_architectures_are_converted(client: Any, predictor: Predictor) -> None:
    (network,) = client.post("/convert", json=NETWORKS).json()["networks"]
    assert network["text"] == to_onnx_text(SPACE, SPACE.parse(ARCHITECTURE))
    assert network["tokens"] == len(predictor.to_ids([network["text"]])[0])


def test_a_space_of_ones_own_is_asked_by_its_name(predictor: Predictor, tmp_path: Path) -> None:
    (tmp_path / "own_space.py").write_text(TWO_WIDTHS)
    own = get_space(f"{tmp_path}/own_space.py:TwoWidths")
    with testclient.TestClient(create_app(predictor, own_spaces=[own])) as client:
        assert client.get("/health").json()["spaces"][-1] == "two_widths"
        asked = {"space": "two_widths", "architectures": ["[16]"]}
        (network,) = client.post("/convert", json=asked).json()["networks"]
        assert network["text"] == to_onnx_text(own, own.parse("[16]"))
        assert len(client.post("/predict", json=asked).json()["predictions"]) == 1
        refused = client.post("/convert", json={**asked, "space": own.address})
        assert "space: expected one of" in refused.json()["detail"]
    with pytest.raises(ValueError, match="spaces of different names, got two_widths twice"):
        create_app(predictor, own_spaces=[own, own])
    with pytest.raises(ValueError, match="expected a space of your own, got nasbench201, which is already served"):
        create_app(predictor, own_spaces=[get_space("nasbench201")])


def test_texts_are_read_by_what_was_learned_of_their_space(checkpoint: Checkpoint) -> None:
    low = [level / 200 for level in range(1, 100)]
    by_space: dict[str, dict[str, list[float]]] = {SPACE.name: {OBJECTIVES[1]: low}, "mine.py:Mine": {}}
    predictor = Predictor(replace(checkpoint, calibration_by_space=by_space))
    texts = ["Conv3\n", "Pool\nPool\n"]
    expected = predictor.of_space(SPACE.name).predict(texts)
    assert expected.values.tolist() != predictor.predict(texts, expected.objectives).values.tolist()
    with testclient.TestClient(create_app(predictor)) as client:
        rows = client.post("/predict", json={"texts": texts, "space": SPACE.name}).json()["predictions"]
        assert [[row[name]["low"] for name in expected.objectives] for row in rows] == pytest.approx(expected.low)
        for other in ("mine.py:Mine", "darts"):  # learned of a user's own space; not learned of
            assert client.post("/predict", json={"texts": texts, "space": other}).status_code == 200


@pytest.mark.parametrize("truncation", ["error", "head"])
def test_a_text_beyond_the_models_context_is_converted_all_the_same(checkpoint: Checkpoint, truncation: Any) -> None:
    sizes = replace(SIZES, max_text_tokens=8, truncation=truncation)
    model = RegressionLanguageModel(sizes, checkpoint.tokenizer.vocabulary_size, len(OBJECTIVES), CODE).eval()
    short = replace(checkpoint, model=model, tokenizer=checkpoint.tokenizer.limited(sizes.token_limit))
    with testclient.TestClient(create_app(Predictor(short))) as client:
        (network,) = client.post("/convert", json=NETWORKS).json()["networks"]
        assert network["text"] == to_onnx_text(SPACE, SPACE.parse(ARCHITECTURE))
        assert network["tokens"] > 8
        if truncation == "error":
            assert "expected 1 to 8 tokens" in client.post("/predict", json=NETWORKS).json()["detail"]


def test_health_and_description(client: Any) -> None:
    health = client.get("/health").json()
    assert (health["status"], health["objectives"], health["spaces"]) == ("ok", list(OBJECTIVES), list(space_names()))
    assert {"/predict", "/convert", "/health"} <= client.get("/openapi.json").json()["paths"].keys()


def test_the_page_of_the_routes_needs_no_network(client: Any) -> None:
    page = client.get("/docs").text
    assert not re.findall(r"<(?:script|link|img)|https?://", page)
    for words in (
        "POST /predict",
        "POST /convert",
        "GET /health",
        "<code>architectures</code> (list of string): In the",
    ):
        assert words in page
    models = client.get("/openapi.json").json()["components"]["schemas"]
    own = [model for name, model in models.items() if name not in ("HTTPValidationError", "ValidationError", "Problem")]
    assert all(f"<code>{field}</code>" in page for model in own for field in model["properties"])


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/predict", {}, "predict: expected either texts, or a space and architectures."),
        ("/predict", {"texts": ["x"], **NETWORKS}, "predict: expected either texts, or a space and architectures."),
        ("/predict", {"texts": ["x"], "space": "moon"}, "two_path, got 'moon'."),
        ("/predict", {"texts": []}, "texts: expected 1 to 3, got 0."),
        ("/predict", {"texts": ["x"] * 4}, "texts: expected 1 to 3, got 4."),
        ("/predict", {"texts": ["x", "x" * 101]}, "text 1: characters: expected 1 to 100, got 101."),
        (
            "/predict",
            {"space": SPACE.name, "architectures": [" " * 101]},
            "architecture 0: characters: expected 1 to 100, got 101.",
        ),
        ("/predict", {"texts": ["\ud800"]}, "surrogates not allowed"),
        ("/predict", {"texts": ["x"], "objectives": ["latency_ms@raspi"]}, "Did you mean latency_ms@raspi4?"),
        ("/predict", {"texts": ["x"], "objectives": []}, "objectives: expected 1 to 2, got 0."),
        ("/predict", {"texts": ["x"], "quantiles": [0.9, 0.5]}, "quantiles: expected ascending levels in (0, 1)"),
        ("/predict", {"texts": ["x"], "quantiles": [0.1] * 5}, "quantiles: expected 1 to 4, got 5."),
        (
            "/predict",
            {"texts": ["x", "y", "z"], "quantiles": [0.1, 0.2, 0.5, 0.9]},
            "predict: expected a response of up to 23 numbers, got 24: 3 networks, 2 objectives, 4 quantiles.",
        ),
        ("/predict", {"texts": ["x"], "quantile": 3}, "quantile: Extra inputs are not permitted, got 3"),
        ("/predict", {"texts": ["x", 3]}, "texts.1: Input should be a valid string, got 3"),
        ("/predict", {"space": "moon", "architectures": ["x"]}, "space: expected one of "),
        ("/predict", {"space": "tests/space.py:Mine", "architectures": ["x"]}, "space: expected one of "),
        ("/predict", {"space": SPACE.name, "architectures": ["|conv~0|"]}, "nasbench201"),
        ("/convert", {"space": SPACE.name, "architectures": ["\ud800"]}, "nasbench201"),
        ("/convert", {"space": SPACE.name, "\ud800": 1}, "unable to parse raw data as a unicode string, got ?"),
        ("/convert", {"space": SPACE.name}, "architectures: Field required"),
        ("/convert", {"space": SPACE.name, "architectures": ["x"] * 4}, "architectures: expected 1 to 3, got 4."),
        ("/convert", [1], "body: expected a JSON object, got [1]."),
        ("/convert", "x", "body: expected a JSON object, got x."),
    ],
)
def test_bad_requests_are_told_what_was_expected(client: Any, path: str, body: object, message: str) -> None:
    answered = client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
    assert answered.status_code == 422
    assert list(answered.json()) == ["detail"]
    assert message in answered.json()["detail"]
    assert "\n" not in answered.json()["detail"]


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"", "application/json", "body: expected a JSON object, got none."),
        (b'{"space": 1, ', "application/json", "body: expected JSON, got Expecting property name enclosed in double q"),
        (b"\xff", "application/json", "body: expected JSON, got "),
        (b"[" * 4900, "application/json", "body: expected JSON, got "),
        (b"hello", "text/plain", "body: expected content-type application/json, got another with 'hello'."),
        (b"\xff\xfe", "text/plain", "body: expected content-type application/json, got another with "),
        (b"space=x", "application/x-www-form-urlencoded", "body: expected content-type application/json, got another"),
    ],
)
def test_bodies_that_are_no_json_are_told_so(client: Any, body: bytes, kind: str, message: str) -> None:
    answered = client.post("/convert", content=body, headers={"content-type": kind})
    assert answered.status_code == 422
    assert answered.json()["detail"].startswith(message)


def test_the_row_of_many_texts_is_told_as_it_was_asked(predictor: Predictor) -> None:
    asked = {"texts": ["Conv3\n"] * 200 + ["Pool " * 600]}
    with testclient.TestClient(create_app(predictor)) as client:
        assert "in row 200 ('Pool Pool" in client.post("/predict", json=asked).json()["detail"]


def test_large_bodies_are_refused(client: Any) -> None:
    answered = client.post("/predict", content=b" " * 5001)
    assert (answered.status_code, answered.json()["detail"][:40]) == (413, "body: expected at most 5,000 bytes, got ")
    in_pieces = client.post("/predict", content=(b" " * 1000 for _ in range(6)))
    assert in_pieces.status_code == 413


def test_half_a_body_is_not_waited_for() -> None:
    arrived = iter([{"type": "http.request", "body": b'{"a', "more_body": True}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(arrived, None) or await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async def never(*_: Any) -> None:
        raise AssertionError("handed on")

    asyncio.run(BodyLimit(never, max_bytes=1000, max_seconds=0.01)({"type": "http"}, receive, send))
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["detail"] == "body: expected all of it within 0.01 seconds, got only a part."


def test_connections_that_ask_nothing_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "MAX_SECONDS", 0.2)
    line, head = b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.5)
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})

    async def answers(port: int, *parts: bytes) -> bytes:
        """What a client gets that sends parts, each after the answer to one before."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        read = b""
        for part in parts:
            writer.write(part)
            read += await asyncio.wait_for(reader.readuntil(b"\r\n\r\n") if part == head else reader.read(), 10)
        writer.close()
        return read

    async def check() -> None:
        config = uvicorn.Config(slow, log_level="warning", lifespan="off")
        state = uvicorn.server.ServerState()
        async with await asyncio.get_running_loop().create_server(
            lambda: patience.PatientProtocol(config, state, {}), "127.0.0.1", 0
        ) as server:
            port = server.sockets[0].getsockname()[1]
            assert await answers(port, b"") == b""
            assert await answers(port, line) == b""
            assert (await answers(port, head)).startswith(b"HTTP/1.1 204")
            assert (await answers(port, head, line)).count(b"HTTP/1.1") == 1
        assert not state.connections

    asyncio.run(check())


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="needs IPv6")


@pytest.mark.slow
@pytest.mark.parametrize("host", [[], pytest.param(["--host", "::1"], marks=needs_ipv6)])
def test_the_command_serves_until_it_is_ended(checkpoint_folder: Path, host: Sequence[str]) -> None:
    words = [sys.executable, "-c", "from nasrlm.cli import main; main()", "serve", "--port", "0"]
    with subprocess.Popen(
        [*words, *host, "--checkpoint", str(checkpoint_folder)], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        with urllib.request.urlopen(f"{address}/health", timeout=30) as answered:
            assert json.load(answered)["status"] == "ok"
        server.terminate()
        server.wait(30)


def test_a_port_in_use_is_told_in_one_line(nasrlm: CommandLine, checkpoint_folder: Path) -> None:
    with serve._listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        finished = nasrlm("serve", "--port", port, "--checkpoint", checkpoint_folder)
    assert finished.status == 2
    assert f"serve: expected a free address, got 127.0.0.1:{port} (" in finished.stderr


@needs_ipv6
def test_an_address_of_ipv6_stands_in_brackets(nasrlm: CommandLine, checkpoint_folder: Path) -> None:
    with serve._listen("::1", 0) as taken:
        port = taken.getsockname()[1]
        finished = nasrlm("serve", "--host", "::1", "--port", port, "--checkpoint", checkpoint_folder)
    assert finished.status == 2
    assert f"serve: expected a free address, got [::1]:{port} (" in finished.stderr


def test_without_the_extra_one_line_says_what_to_install(nasrlm: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    finished = nasrlm("serve")
    assert finished.status == 2
    told = "nasrlm: serve: expected the package uvicorn, got none. Install nasrlm[serve].\n"
    assert finished.stderr == told
