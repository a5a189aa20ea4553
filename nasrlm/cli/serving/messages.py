"""The JSON bodies of requests and responses. Their docstrings become descriptions in /openapi.json."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Architectures = Annotated[
    list[str], Field(description="In the space's published notation.", examples=[["|nor_conv_3x3~0|+|none~0|…"]])
]


class PredictRequest(BaseModel):
    """Networks, as architectures of a space or as texts, and what to predict for them."""

    model_config = ConfigDict(extra="forbid")

    space: str | None = Field(
        None,
        description="A space that /health lists; for texts, any space that the checkpoint knows, or none.",
        examples=["nasbench201"],
    )
    architectures: Architectures | None = None
    texts: list[str] | None = Field(
        None,
        description="Instead of architectures: ONNX texts, as of nasrlm.to_measured_text; predicted as networks of "
        "the space if given.",
    )
    objectives: list[str] | None = Field(
        None, description="Objectives to predict, see /health; default: all that the checkpoint learned for the space."
    )
    quantiles: list[float] = Field([0.1, 0.5, 0.9], description="Ascending levels in (0, 1), including 0.5.")


class Answer(BaseModel):
    """Prediction of one objective for one network, in the objective's own unit."""

    median: float
    low: float = Field(description="The lowest quantile.")
    high: float = Field(description="The highest quantile.")
    quantiles: dict[str, float]


class PredictResponse(BaseModel):
    """Predictions for each network, in the order of the request, by objective."""

    predictions: list[dict[str, Answer]]
    warning: str | None = Field(
        None,
        description="Which predictions may be unreliable, because the checkpoint was not trained for them or for such "
        "texts.",
    )


class ConvertRequest(BaseModel):
    """Architectures to convert."""

    model_config = ConfigDict(extra="forbid")

    space: str = Field(description="A space that /health lists.", examples=["nasbench201"])
    architectures: Architectures


class ConvertedNetwork(BaseModel):
    """A network as canonical ONNX text."""

    text: str
    tokens: int = Field(description="Number of tokens with the checkpoint's tokenizer; its model may read fewer.")


class ConvertResponse(BaseModel):
    """A text for each architecture, in the order given."""

    networks: list[ConvertedNetwork]


class Health(BaseModel):
    """Status of the service, and the objectives and spaces that it knows."""

    status: str
    version: str
    parameters: int
    objectives: list[str]
    spaces: list[str]


class Problem(BaseModel):
    """Why a request was refused: what was expected and what it contained."""

    detail: str
