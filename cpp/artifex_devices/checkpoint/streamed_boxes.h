// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// A file of a checkpoint whose boxes come one after another, in pieces of any size. It computes the checksums of the
/// format; the caller writes the bytes behind the header, whose size is known before, and the header at the end.
class StreamedBoxes {
 public:
  struct Tensor {
    std::string name;
    DType dtype;
    Dims global_shape;
    IndexDomain box;
    std::vector<uint32_t> checksums = {};
  };

  explicit StreamedBoxes(std::vector<Tensor> tensors);

  /// The next bytes of the boxes.
  void add(const std::byte* data, int64_t bytes);
  std::string header() const;

 private:
  void next_piece();

  std::vector<Tensor> tensors_;
  size_t tensor_ = 0;  // that the next byte belongs to
  int64_t piece_ = -1;
  int64_t left_ = 0;  // bytes of the piece
};

}  // namespace artifex_devices
