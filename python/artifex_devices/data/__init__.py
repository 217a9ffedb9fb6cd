# SPDX-License-Identifier: Apache-2.0
"""Input: global batches whose order is arithmetic, on any number of hosts, before and after every failure."""

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.data.batching import Batches, batches
from artifex_devices.data.finding import source
from artifex_devices.data.grain_loading import GrainSource
from artifex_devices.data.mixing import mix
from artifex_devices.data.packing import pack
from artifex_devices.data.reading import SampleError
from artifex_devices.data.sources import Source
from artifex_devices.data.statistics import BatchStats, SkippedSample
from artifex_devices.data.stream import Stream, concatenate
from artifex_devices.data.torch_loading import TorchLoader, TorchSampler

__all__ = [
    "BatchStats",
    "Batches",
    "GrainSource",
    "SampleError",
    "SkippedSample",
    "Source",
    "Stream",
    "TorchLoader",
    "TorchSampler",
    "batches",
    "concatenate",
    "mix",
    "pack",
    "source",
]
add_public_lookup(__name__)
