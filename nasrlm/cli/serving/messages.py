"""The JSON bodies of requests and responses. Their docstrings become descriptions in /openapi.json."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Architectures = Annotated[
    list[str], Field(description="In the space's published notation.", examples=[["|nor_conv_3x3~0|+|none~0|…"]])
]


class PredictRequest(BaseModel):
    """Networks, as architectures of a space or as texts, and what to predict of them."""

    model_config = ConfigDict(extra="forbid")

    space: str | None = Field(
        None,
        description="A space that /health names, or of texts another that the checkpoint learned; texts need none.",
        examples=["nasbench201"],
    )
    architectures: Architectures | None = None
    texts: list[str] | None = Field(
        None, description="Instead: canonical ONNX text; read by what was learned of the space, if one is named."
    )
    objectives: list[str] | None = Field(
        None, description="All that the checkpoint learned of the space if left out; see /health."
    )
    quantiles: list[float] = Field([0.1, 0.5, 0.9], description="Ascending in (0, 1), 0.5 among them.")


class Answer(BaseModel):
    """One objective of one network, in the objective's own unit."""

    median: float
    low: float = Field(description="The lowest quantile.")
    high: float = Field(description="The highest quantile.")
    quantiles: dict[str, float]


class PredictResponse(BaseModel):
    """An answer for each network, in the order asked, by objective."""

    predictions: list[dict[str, Answer]]
    warning: str | None = Field(None, description="What of it is a guess, for the checkpoint learned nothing of it.")


class ConvertRequest(BaseModel):
    """Architectures to convert."""

    model_config = ConfigDict(extra="forbid")

    space: str = Field(description="A space that /health names.", examples=["nasbench201"])
    architectures: Architectures


class ConvertedNetwork(BaseModel):
    """A network as canonical ONNX text."""

    text: str
    tokens: int = Field(description="Of the checkpoint; its model may read fewer.")


class ConvertResponse(BaseModel):
    """A text for each architecture, in the order given."""

    networks: list[ConvertedNetwork]


class Health(BaseModel):
    """That the service answers, and about what."""

    status: str
    version: str
    parameters: int
    objectives: list[str]
    spaces: list[str]


class Problem(BaseModel):
    """Why a request was refused: what was expected and what it had."""

    detail: str
