"""What every kind of work is made of: bounds of its parameters, and how much one execution is."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

INT64 = {"format": "int64"}
DType = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "int8"]
MatrixSide = Annotated[int, Field(ge=1, le=131_072, json_schema_extra=INT64)]
Bytes = Annotated[int, Field(ge=4, le=2**40, json_schema_extra=INT64)]
Elements = Annotated[int, Field(ge=1, le=2**36, json_schema_extra=INT64)]


@dataclass(frozen=True, slots=True)
class WorkAmount:
    """Work of one execution; what does not apply is 0."""

    flops: int = 0
    moved_bytes: int = 0
    parts: int = 1
    """Equal parts of which the time of one is the figure, such as launches."""
