// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/base/config.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/planner/copy_terms.h"
#include "artifex_devices/planner/relative_fit.h"
#include "bind_planner.h"
#include "gil.h"
#include "numpy_bridge.h"

namespace artifex_devices::bindings {
namespace {

namespace py = pybind11;

CopyLimits limits_with(int64_t cache_bytes) {
  return {.parallel_bytes = config().parallel_copy_bytes.load(std::memory_order_relaxed), .cache_bytes = cache_bytes};
}

/// (terms, [(memory from, memory to, bytes)]) of the copies between devices of this machine.
py::tuple reshard_copy_terms(py::handle global_shape, int64_t itemsize, const std::shared_ptr<Sharding>& source,
                             const std::shared_ptr<Sharding>& destination, int64_t cache_bytes) {
  const Dims shape = dims_from_python(global_shape, kPlanReshard, "shape");
  for (const Sharding* sharding : {source.get(), destination.get()}) {
    if (sharding->is_abstract() || handle_of_cluster(*sharding->devices()->client()) ||
        !sharding->is_fully_addressable()) {
      throw_error(
          "{}: {} has devices of a cluster, of other processes, or none; expected devices of this process for seconds "
          "that a calibration gives; leave calibration= out",
          kPlanReshard, sharding->to_string());
    }
  }
  if (source->memory_kind() != destination->memory_kind()) {
    throw_error(
        "{}: the ends are in memory of two kinds, {} and {}, and calibration is given; expected the one kind that was "
        "measured; leave calibration= out",
        kPlanReshard, to_string(source->memory_kind()), to_string(destination->memory_kind()));
  }
  const PlacedCopies placed =
      without_gil([&] { return placed_copies(*source, *destination, shape, itemsize, nullptr, kMostCopies); });
  const CopyTerms terms =
      copy_terms(placed.direct, placed.source, placed.destination, itemsize, limits_with(cache_bytes));
  py::list memories;
  for (const MemoryBytes& each : bytes_by_memory(placed.direct, placed.source, placed.destination)) {
    memories.append(py::make_tuple(each.from, each.to, each.bytes));
  }
  return py::make_tuple(std::vector<double>(terms.begin(), terms.end()), memories);
}

py::tuple fit(const std::vector<std::vector<double>>& terms, const std::vector<double>& seconds) {
  if (terms.size() != seconds.size()) {
    throw_error("fit_relative: {} samples have {} times; expected one each; give as many", terms.size(),
                seconds.size());
  }
  std::vector<TimedTerms> samples;
  for (size_t i = 0; i < terms.size(); ++i) samples.push_back({terms[i], seconds[i]});
  const RelativeFit found = fit_relative(samples);
  return py::make_tuple(found.coefficients, found.relative_errors);
}

}  // namespace

void bind_calibration(py::module_& module) {
  module.def(
      "_copy_term_names", [] { return std::vector<std::string>(kCopyTerms.begin(), kCopyTerms.end()); },
      "What the seconds of copies inside one machine are a sum of, in the order of _copy_terms.");
  module.def("_copy_terms", &reshard_copy_terms, py::arg("shape"), py::arg("itemsize"), py::arg("source"),
             py::arg("destination"), py::arg("cache_bytes"),
             "(terms, [(memory from, memory to, bytes)]) of the direct copies between devices of this process.");
  module.def(
      "_dense_copy_terms",
      [](int64_t bytes, int64_t copies, int64_t cache_bytes) {
        const CopyTerms terms = dense_copy_terms(bytes, copies, limits_with(cache_bytes));
        return std::vector<double>(terms.begin(), terms.end());
      },
      py::arg("bytes"), py::arg("copies"), py::arg("cache_bytes"), "Terms of dense copies of so many bytes together.");
  module.def(
      "_fit_relative", &fit, py::arg("terms"), py::arg("seconds"),
      "(coefficients, relative errors): non-negative least squares of relative errors; a list of terms a sample.");
}

}  // namespace artifex_devices::bindings
