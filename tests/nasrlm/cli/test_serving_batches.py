"""Requests that come together share calls of the model; what nobody waits for is not computed."""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasrlm.cli.verbs import serve
from nasrlm.prediction import Prediction
from nasrlm.predictor import Predictor

pytest.importorskip("fastapi", reason="needs the extra `serve`")
uvicorn = pytest.importorskip("uvicorn", reason="needs the extra `serve`")

from nasrlm.cli.serving.app import create_app  # noqa: E402
from nasrlm.cli.serving.batcher import Batcher  # noqa: E402
from nasrlm.cli.serving.ending import DETAIL  # noqa: E402


class SlowPredictor:
    """Gives the length of each text; the first call waits until it is let go."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.called, self.go = threading.Event(), threading.Event()

    def predict(
        self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float], space: str
    ) -> Prediction:
        self.calls.append(list(texts))
        self.called.set()
        assert self.go.wait(10)
        if "" in texts:
            raise ValueError("text: expected some, got none.")
        lengths = np.array([len(text) for text in texts], dtype=float)[:, None, None]
        return Prediction(tuple(objectives), tuple(quantiles), lengths * np.ones((1, len(objectives), len(quantiles))))


def answers_of(requests: Sequence[tuple[Sequence[str], str]], max_texts: int = 10) -> tuple[SlowPredictor, list[Any]]:
    """What a batcher answers to the first request, and then to the others, which come while it is busy."""
    slow = SlowPredictor()

    async def ask() -> list[Any]:
        batcher = Batcher(slow.predict, max_texts)
        tasks = [asyncio.create_task(batcher.predict(*requests[0], [0.5], "text"))]  # type: ignore[arg-type]
        await asyncio.to_thread(slow.called.wait, 10)
        tasks += [asyncio.create_task(batcher.predict(texts, [name], [0.5], "text")) for texts, name in requests[1:]]
        await asyncio.sleep(0)
        slow.go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    return slow, asyncio.run(ask())


def test_requests_that_wait_share_a_call() -> None:
    slow, answers = answers_of([(["a"], "x"), (["bb"], "x"), (["ccc", "d"], "x"), (["eeeee"], "x")])
    assert slow.calls == [["a"], ["bb", "ccc", "d", "eeeee"]]
    assert [answer[:, 0, 0].tolist() for answer in answers] == [[1], [2], [3, 1], [5]]


def test_only_the_same_questions_share_a_call_and_only_while_they_fit() -> None:
    slow, answers = answers_of([(["a"], "x"), (["bb"], "x"), (["c"], "y"), (["d"] * 3, "x"), (["ee"], "x")], 3)
    assert slow.calls == [["a"], ["bb", "ee"], ["c"], ["d", "d", "d"]]
    assert [len(answer) for answer in answers] == [1, 1, 1, 3, 1]


def test_a_request_that_fails_does_not_spoil_the_others() -> None:
    slow, (_, good, bad, other) = answers_of([(["a"], "x"), (["bb"], "x"), ([""], "x"), (["ccc"], "x")])
    assert len(slow.calls) == 5
    assert isinstance(bad, ValueError)
    assert (good[0, 0, 0], other[0, 0, 0]) == (2, 3)


def test_what_nobody_waits_for_any_more_is_not_computed() -> None:
    slow = SlowPredictor()

    async def ask() -> Any:
        batcher = Batcher(slow.predict, max_texts=10)
        asked = [asyncio.create_task(batcher.predict(["a"] * 500, [name], [0.5], "text")) for name in "xyz"]
        await asyncio.to_thread(slow.called.wait, 10)
        for task in asked[:2]:
            task.cancel()
        await asyncio.wait(asked[:2])
        slow.go.set()
        return await asked[2]

    assert asyncio.run(ask()).shape == (500, 1, 1)
    assert [len(texts) for texts in slow.calls] == [128, *[128, 128, 128, 116]]


def test_what_is_not_answered_in_time_at_the_end_is_told_so(
    checkpoint_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowPredictor()

    slow.go.set()

    def predict(_: Predictor, *asked: Any) -> Prediction:
        answer = slow.predict(*asked, space="")
        time.sleep(0.5)
        return answer

    monkeypatch.setattr(Predictor, "predict", predict)
    app = create_app(Predictor.from_pretrained(checkpoint_folder))
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)

    def ask(port: int) -> tuple[int, Any]:
        body = json.dumps({"texts": ["Conv3\n"] * 1024}).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/predict", body, headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        return refused.value.code, json.load(refused.value)

    async def check() -> tuple[int, Any]:
        server = uvicorn.Server(config)
        with serve._listen("127.0.0.1", 0) as listening:
            running = asyncio.create_task(server.serve([listening]))
            asked = asyncio.create_task(asyncio.to_thread(ask, listening.getsockname()[1]))
            await asyncio.to_thread(slow.called.wait, 10)
            server.should_exit = True
            await running
            return await asked

    assert asyncio.run(check()) == (503, {"detail": DETAIL})
    assert len(slow.calls) < 1024 / 128
