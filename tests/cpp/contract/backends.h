// SPDX-License-Identifier: Apache-2.0
// The backends whose devices hold arrays. A new backend is a row here: the tests of this folder run on each.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>

#include "../transfer/host_arrays.h"
#include "artifex_devices/device/cuda/cuda_backend.h"
#include "artifex_devices/device/emulated_gpu/emulated_gpu_backend.h"

namespace artifex_devices::test {

struct BackendRow {
  std::string name;
  std::function<BackendRef()> make;
  bool is_host_readable;
};

inline void PrintTo(const BackendRow& row, std::ostream* out) { *out << row.name; }

/// CUDA on the stand-in for its driver (tests/cpp/cuda_stand_in), which ends the process on misuse.
inline BackendRef make_stand_in_backend() {
  setenv("ARTIFEX_CUDA_LIBRARY", ARTIFEX_CUDA_STAND_IN, 0);
  setenv("CUDA_STAND_IN", "gpus=8", 0);
  return make_cuda_backend();
}

inline const std::vector<BackendRow>& backends() {
  static const auto* rows = new std::vector<BackendRow>{
      {"cpu", [] { return BackendRef(); }, true},
      {"emulated_gpu", [] { return make_emulated_gpu_backend({}); }, false},
      {"cuda", [] { return make_stand_in_backend(); }, false},
  };
  return *rows;
}

class Contract : public testing::TestWithParam<BackendRow> {
 protected:
  static ClientRef make(int nodes, int64_t devices, std::optional<int64_t> bytes_limit = {}) {
    return make_world(nodes, devices, bytes_limit, GetParam().make());
  }
};

#define INSTANTIATE_ON_EVERY_BACKEND(suite)                                                       \
  INSTANTIATE_TEST_SUITE_P(backends, suite, testing::ValuesIn(artifex_devices::test::backends()), \
                           [](const auto& tested) { return tested.param.name; })

}  // namespace artifex_devices::test
