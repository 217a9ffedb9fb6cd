// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "artifex_devices/flight/flight_recorder.h"
#include "pybind.h"

namespace artifex_devices::bindings {

/// A group of processes and the recorder of its meetings. Needs the GIL.
class __attribute__((visibility("hidden"))) RecordedGroup {
 public:
  RecordedGroup(std::shared_ptr<FlightRecorder> recorder, const std::vector<int>& processes)
      : recorder_(std::move(recorder)), group_(processes) {}

  /// Records that a meeting begins, at the line of the program that called into the package; returns its number. Takes
  /// a str and bytes of Python; pybind11::error_already_set where the text has no UTF-8.
  uint64_t begin(PyObject* text, PyObject* digest);
  /// The number of the meeting that began last.
  uint64_t last() const noexcept { return last_; }
  FlightRecorder& recorder() const noexcept { return *recorder_; }

 private:
  // A description and the objects it was made of. They are kept alive because equal addresses must mean equal objects.
  struct Known {
    pybind11::object text, digest, file;
    int line;
    FlightDescription description;
  };

  std::shared_ptr<FlightRecorder> recorder_;
  FlightGroup group_;
  std::array<std::optional<Known>, 16> known_;  // by text and line
  uint64_t last_ = 0;
};

}  // namespace artifex_devices::bindings
