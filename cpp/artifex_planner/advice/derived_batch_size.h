// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "artifex_devices/cluster/accelerator_catalogue.h"

namespace artifex_devices::planner {

/// Batch sizes in examples, derived from a chip's published numbers: a model, not a measurement.
struct DerivedBatchSize {
  int64_t min_batch_size = 0;
  int64_t optimal_batch_size = 0;
  int64_t critical_batch_size = 0;
  std::string notes;  // says that the sizes are derived, with the numbers and their sources
};

/// For 16-bit weights whose matrix is far larger than the batch: critical is peak FLOP/s over bytes/s of the memory,
/// rounded, where memory no longer limits the product; optimal is the next multiple of 64; minimum is a quarter of
/// critical, rounded up, where a quarter of the peak is reached. The H200, 9.89e14 / 4.8e12: 52, 256, 206.
/// `accelerator` must have a 16-bit peak; all in the catalogue have one.
DerivedBatchSize derived_batch_size(const Accelerator& accelerator);

/// The accelerator of the catalogue with this name, kind of device or PCI id; nullptr if the name is unknown.
const Accelerator* accelerator_of(std::string_view hardware);

}  // namespace artifex_devices::planner
