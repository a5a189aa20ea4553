"""The service: predictions and conversions over HTTP, described at /docs and /openapi.json."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

import nasrlm
from converters.cached_texts import cached_text
from nasrlm.arguments import ascend_around_median
from nasrlm.arrays import FloatArray
from nasrlm.cli.guesses import guesses
from nasrlm.cli.serving.batcher import Batcher
from nasrlm.cli.serving.body_limit import BodyLimit
from nasrlm.cli.serving.description import described
from nasrlm.cli.serving.ending import Ending
from nasrlm.cli.serving.messages import (
    Answer,
    ConvertedNetwork,
    ConvertRequest,
    ConvertResponse,
    Health,
    PredictRequest,
    PredictResponse,
    Problem,
)
from nasrlm.named_spaces import TEXT_SPACE
from nasrlm.prediction import Prediction
from nasrlm.predictor import Predictor
from nasrlm.unsuitable_texts import lost_operations, notations
from spaces import SearchSpace, space_names

VERSION = str(nasrlm.__version__)


@dataclass(frozen=True)
class Limits:
    """Limits of one request.

    Attributes:
        max_networks: number of architectures or texts.
        max_characters: of one text or notation.
        max_quantiles: number of levels.
        max_numbers: networks times objectives times quantiles in the response; so many take a second to write.
        max_bytes: of the body.
        max_seconds: in which the body must arrive.
        max_texts_per_call: texts of all requests that are predicted together.
    """

    max_networks: int = 1024
    max_characters: int = 2**18
    max_quantiles: int = 99
    max_numbers: int = 500_000
    max_bytes: int = 16 * 2**20
    max_seconds: float = 60.0
    max_texts_per_call: int = 4096


REFUSALS: dict[int | str, dict[str, Any]] = {
    408: {"model": Problem, "description": "The body took too long to arrive."},
    413: {"model": Problem, "description": "The body is too large."},
    422: {"model": Problem, "description": "What was expected, and what the request contained."},
    503: {"model": Problem, "description": "The service is stopping and cannot respond."},
}


def create_app(
    predictor: Predictor, limits: Limits | None = None, own_spaces: Sequence[SearchSpace[Any]] = ()
) -> FastAPI:
    """Create the application.

    Args:
        predictor: makes the predictions; it is called by one request at a time.
        limits: of requests.
        own_spaces: spaces that requests may name besides the registered ones, each by its ``name``.

    Raises:
        ValueError: two spaces have the same name.
    """
    service = _Service(predictor, limits or Limits(), _addresses(own_spaces))
    app = FastAPI(
        title="nasrlm",
        version=VERSION,
        description="Accuracy, latency and more of neural networks, predicted from their ONNX text.",
        docs_url=None,  # FastAPI's own pages load scripts from the internet, and are blank without it
        redoc_url=None,
    )
    app.add_middleware(BodyLimit, max_bytes=service.limits.max_bytes, max_seconds=service.limits.max_seconds)
    app.add_middleware(Ending)

    @app.exception_handler(ValueError)
    async def refuse(_: Request, error: ValueError) -> JSONResponse:
        return _refusal(str(error))

    @app.exception_handler(RequestValidationError)
    async def refuse_form(_: Request, error: RequestValidationError) -> JSONResponse:
        return _refusal("; ".join(map(_spell, error.errors())))

    @app.exception_handler(HTTPException)
    async def refuse_body(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400 and error.__cause__ is not None:  # no UTF-8, or JSON nested too deep
            return _refusal(f"body: expected JSON, got {error.__cause__}.")
        return await http_exception_handler(request, error)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(described(app.openapi()))

    @app.get("/health")
    async def health() -> Health:
        """Status of the service, and the objectives and spaces that it knows."""
        return service.health()

    @app.post("/predict", responses=REFUSALS)
    async def predict(request: PredictRequest) -> PredictResponse:
        """Predict calibrated quantiles of objectives; requests that arrive together share one call of the model."""
        return await service.predict(request)

    @app.post("/convert", responses=REFUSALS)
    async def convert(request: ConvertRequest) -> ConvertResponse:
        """Convert architectures to canonical ONNX text."""
        return await run_in_threadpool(service.convert, request)

    return app


class _Service:
    def __init__(self, predictor: Predictor, limits: Limits, addresses: Mapping[str, str]) -> None:
        self.predictor, self.limits, self._addresses = predictor, limits, addresses
        self._batcher = Batcher(self._predict, limits.max_texts_per_call)

    def health(self) -> Health:
        """What /health answers."""
        return Health(
            status="ok",
            version=VERSION,
            parameters=self.predictor.checkpoint.model.num_parameters,
            objectives=list(self.predictor.objectives),
            spaces=list(self._addresses),
        )

    async def predict(self, request: PredictRequest) -> PredictResponse:
        """What /predict answers."""
        name = request.space or TEXT_SPACE
        space = self._addresses.get(name, name)
        objectives = self.predictor.objectives_of(space) if request.objectives is None else request.objectives
        self._check_quantiles(request.quantiles)
        self._check_count("objectives", objectives, len(self.predictor.objectives))
        texts = await run_in_threadpool(self._texts, request)
        numbers = len(texts) * len(objectives) * len(request.quantiles)
        if numbers > self.limits.max_numbers:
            asked = f"{len(texts):,} networks, {len(objectives)} objectives, {len(request.quantiles)} quantiles"
            raise ValueError(
                f"predict: expected a response of up to {self.limits.max_numbers:,} numbers, got {numbers:,}: {asked}. "
                "Request less at a time."
            )
        values = await self._batcher.predict(texts, objectives, request.quantiles, space)
        given, checkpoint = request.texts or (), self.predictor.checkpoint
        doubts = (
            guesses(self.predictor, [space], objectives),
            lost_operations(given, space, checkpoint.measured_spaces),
            notations(given, checkpoint.tokenizer),
        )
        warning = " ".join(filter(None, doubts)) or None
        return await run_in_threadpool(_response, values, objectives, request.quantiles, warning)

    def convert(self, request: ConvertRequest) -> ConvertResponse:
        """What /convert answers."""
        texts = self._converted(request.space, request.architectures, measured=False)
        tokenizer = self.predictor.checkpoint.tokenizer.limited(None)  # without a limit, since nothing is predicted
        pairs = zip(texts, tokenizer.to_ids(texts), strict=True)
        return ConvertResponse(networks=[ConvertedNetwork(text=text, tokens=len(ids)) for text, ids in pairs])

    def _predict(
        self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float], space: str
    ) -> Prediction:
        return self.predictor.of_space(space).predict(texts, objectives, quantiles)

    def _texts(self, request: PredictRequest) -> list[str]:
        if (request.texts is None) == (request.architectures is None):
            raise ValueError("predict: expected either texts, or a space and architectures.")
        if request.architectures is not None:
            return self._converted(request.space, request.architectures, measured=True)
        assert request.texts is not None, "one of the two is there"
        if request.space is not None:
            self._check_space(request.space, {*self._addresses, *self.predictor.checkpoint.spaces})
        self._check_count("texts", request.texts, self.limits.max_networks)
        for row, text in enumerate(request.texts):
            self._check_count(f"text {row}: characters", text, self.limits.max_characters)
        return request.texts

    def _converted(self, space: str | None, architectures: Sequence[str], *, measured: bool) -> list[str]:
        self._check_count("architectures", architectures, self.limits.max_networks)
        for row, notation in enumerate(architectures):
            self._check_count(f"architecture {row}: characters", notation, self.limits.max_characters)
        # Only spaces given at the start: opening any named file would let requests run arbitrary code.
        address = self._addresses[self._check_space(space, self._addresses)]
        return [cached_text(address, notation, measured=measured) for notation in architectures]

    def _check_space(self, name: str | None, names: Collection[str]) -> str:
        if name is None or name not in names:
            raise ValueError(f"space: expected one of {', '.join(sorted(names))}, got {name!r}.")
        return name

    def _check_count(self, what: str, given: Sequence[object], most: int) -> None:
        if not 0 < len(given) <= most:
            raise ValueError(f"{what}: expected 1 to {most:,}, got {len(given):,}.")

    def _check_quantiles(self, levels: Sequence[float]) -> None:
        self._check_count("quantiles", levels, self.limits.max_quantiles)
        if not ascend_around_median(levels):
            raise ValueError(f"quantiles: expected ascending levels in (0, 1) with 0.5 among them, got {levels}.")


def _addresses(own_spaces: Sequence[SearchSpace[Any]]) -> dict[str, str]:
    """Map the name of each space in requests to the address with which ``get_space`` opens it."""
    addresses = {name: name for name in space_names()}
    for space in own_spaces:
        if space.address in addresses:
            raise ValueError(f"serve: expected a space of your own, got {space.address}, which is already served.")
        if space.name in addresses:
            raise ValueError(
                f"serve: expected spaces of different names, got {space.name} twice. Rename {space.address}."
            )
        addresses[space.name] = space.address
    return addresses


def _response(
    values: FloatArray, objectives: Sequence[str], levels: Sequence[float], warning: str | None
) -> PredictResponse:
    """Build the response of /predict from (N, M, Q) values. Cost: some seconds for millions of values."""
    answers = [{name: _answer(row, levels) for name, row in zip(objectives, rows, strict=True)} for rows in values]
    return PredictResponse(predictions=answers, warning=warning)


def _answer(values: FloatArray, levels: Sequence[float]) -> Answer:
    by_level = dict(zip(levels, values.tolist(), strict=True))
    quantiles = {str(level): value for level, value in by_level.items()}
    return Answer(median=by_level[0.5], low=by_level[levels[0]], high=by_level[levels[-1]], quantiles=quantiles)


def _refusal(message: str) -> JSONResponse:
    """Build a response with status 422 whose message is one line that UTF-8 can encode."""
    detail = " ".join(message.split()).encode(errors="replace").decode()
    return JSONResponse({"detail": detail}, status_code=422)


def _spell(error: Any) -> str:
    """Format a validation error as one line: ``architectures.0: Input should be a valid string, got 3``."""
    given, place = error.get("input"), ".".join(str(part) for part in error["loc"][1:])
    if error["type"] == "json_invalid":
        return f"body: expected JSON, got {error['ctx']['error']} at character {place}."
    if place or error["type"] not in ("missing", "model_attributes_type"):
        return f"{place or 'body'}: {error['msg']}, got {str(given)[:80]}"
    if isinstance(given, bytes):
        start = given[:40].decode(errors="replace")
        return f"body: expected content-type application/json, got another with {start!r}."
    return f"body: expected a JSON object, got {'none' if given is None else str(given)[:80]}."
