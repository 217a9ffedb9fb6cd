# SPDX-License-Identifier: Apache-2.0
"""Writer of checkpoints of torch.distributed.checkpoint, in its Hugging Face storage of safetensors files."""

from __future__ import annotations

from artifex_devices.checkpoint.writers.artifex_writer import ArtifexWriter
from artifex_devices.checkpoint.writers.writer import Target

_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


class DcpWriter(ArtifexWriter):
    """Writes the files of our format without checkpoint.json: their headers have the boxes and the global shapes."""

    format = "dcp"
    has_values = False

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._check_types("safetensors files of torch.distributed.checkpoint have", lambda dtype: dtype.name in _DTYPES)

    def finish(self, folder: str) -> None:
        """Writes nothing else."""
