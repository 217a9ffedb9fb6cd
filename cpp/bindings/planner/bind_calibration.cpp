// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/base/config.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/calibration/copy_terms.h"
#include "artifex_planner/calibration/relative_fit.h"
#include "artifex_planner/calibration/terms.h"
#include "bind_planner.h"
#include "struct_caster.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

CopyLimits limits_with(int64_t cache_bytes) {
  return {.parallel_bytes = config().parallel_copy_bytes.load(std::memory_order_relaxed), .cache_bytes = cache_bytes};
}

/// (terms, [(memory from, memory to, bytes)]) of the copies between devices of this machine.
py::tuple copy_terms_of(const std::vector<int64_t>& global_shape, int64_t itemsize,
                        const std::shared_ptr<Sharding>& source, const std::shared_ptr<Sharding>& destination,
                        int64_t cache_bytes) {
  const Dims shape = dims(global_shape);
  const ReshardCopyTerms found = run_blocking(
      [&] { return reshard_copy_terms(*source, *destination, shape, itemsize, limits_with(cache_bytes)); });
  py::list memories;
  for (const MemoryBytes& each : found.memories) {
    memories.append(py::make_tuple(each.from.number(), each.to.number(), each.bytes));
  }
  return py::make_tuple(std::vector<double>(found.terms.begin(), found.terms.end()), memories);
}

py::tuple fit(const std::vector<std::vector<double>>& terms, const std::vector<double>& seconds) {
  if (terms.size() != seconds.size()) {
    throw_error("fit_relative: {} samples have {} times; expected one time for each sample", terms.size(),
                seconds.size());
  }
  std::vector<TimedTerms> samples;
  for (size_t i = 0; i < terms.size(); ++i) samples.push_back({terms[i], seconds[i]});
  const RelativeFit found = fit_relative(samples);
  return py::make_tuple(found.coefficients, found.relative_errors);
}

}  // namespace

void bind_calibration(py::module_& module) {
  module.attr("COPY_TERMS") = py::tuple(py::cast(kCopyTerms));
  module.attr("PROGRAM_TERMS") = py::tuple(py::cast(kProgramTerms));
  module.attr("PROGRAM_COLLECTIVES") = py::tuple(py::cast(kKindNames<ProgramCollective>));
  module.def("copy_terms", &copy_terms_of, py::arg("shape"), py::arg("itemsize"), py::arg("source").none(false),
             py::arg("destination").none(false), py::arg("cache_bytes"),
             "Returns (COPY_TERMS, [(memory from, memory to, bytes)]) of the direct copies between devices of "
             "this process.");
  module.def(
      "collective_terms",
      [](const std::string& op, double bytes, int64_t devices, int64_t groups, const std::string& executor,
         int64_t cache_bytes) {
        const CollectiveTerms terms =
            collective_terms(kind_named<ProgramCollective>("calibrate: op", op), bytes, devices, groups,
                             kind_named<ProgramExecutor>("calibrate: executor", executor), limits_with(cache_bytes));
        std::vector<double> all(terms.copies.begin(), terms.copies.end());
        all.insert(all.end(), terms.program.begin(), terms.program.end());
        return all;
      },
      py::arg("op"), py::arg("bytes"), py::arg("devices"), py::arg("groups"), py::arg("executor"),
      py::arg("cache_bytes"), "Returns the COPY_TERMS, then the PROGRAM_TERMS, of one program with one collective.");
  module.def(
      "executor_for",
      [](const std::string& op, double bytes, int64_t devices, double threads_bytes) {
        const auto kind = kind_named<ProgramCollective>("calibrate: op", op);
        return std::string(to_string(executor_for(kind, bytes, devices, threads_bytes)));
      },
      py::arg("op"), py::arg("bytes"), py::arg("devices"), py::arg("threads_bytes"),
      "Returns the executor that shard_map chooses for a collective of `bytes` bytes: \"cooperative\" or "
      "\"threads\".");
  module.def("fit_relative", &fit, py::arg("terms"), py::arg("seconds"),
             R"(Fits non-negative coefficients of terms to measured seconds by least squares of relative errors.

Args:
    terms: One list of terms for each sample.
    seconds: Measured seconds of each sample.

Returns:
    (coefficient of each term, relative error of each sample).
)");
}

}  // namespace artifex_devices::planner::bindings
