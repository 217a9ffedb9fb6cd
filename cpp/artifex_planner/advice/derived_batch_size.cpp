// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/advice/derived_batch_size.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {

DerivedBatchSize derived_batch_size(const Accelerator& accelerator) {
  const bool has_bfloat16 = accelerator.peak(MatmulFormat::kBFloat16).has_value();
  const MatmulFormat format = has_bfloat16 ? MatmulFormat::kBFloat16 : MatmulFormat::kFloat16;
  const auto peak = accelerator.peak(format);
  if (!peak || accelerator.memory_bandwidth <= 0) {
    throw_error(
        "derived_batch_size: the catalogue has no 16-bit FLOP/s and memory bandwidth of {}; expected both; measure it",
        accelerator.name);
  }
  std::string sources;
  for (const std::string_view id : accelerator.sources) {
    const CatalogueSource* source = id.empty() ? nullptr : find_catalogue_source(id);
    if (source) sources += fmt::format("{}{}", sources.empty() ? "" : "; ", source->title);
  }
  const int64_t critical = std::llround(*peak / accelerator.memory_bandwidth);
  return {.min_batch_size = (critical + 3) / 4,
          .optimal_batch_size = (critical + 63) / 64 * 64,
          .critical_batch_size = critical,
          .notes = fmt::format("Derived for 16-bit weights, not from the built-in table and not measured: {} has "
                               "{:.4g} {} FLOP/s and {:.4g} bytes/s of memory by {}",
                               accelerator.name, *peak, to_string(format), accelerator.memory_bandwidth, sources)};
}

const Accelerator* accelerator_of(std::string_view hardware) {
  const Accelerator* row = find_accelerator_by_name(hardware);
  if (row == nullptr) row = find_accelerator_by_kind(hardware);
  return row != nullptr ? row : find_accelerator_by_pci(hardware);
}

}  // namespace artifex_devices::planner
