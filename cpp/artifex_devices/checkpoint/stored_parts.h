// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/checkpoint/safetensors.h"

namespace artifex_devices {

/// The box of an array of `rank` dimensions that a tensor has, without the dimension of pairs.
IndexDomain box_of(const StoredTensor& tensor, int64_t rank);

/// Throws InvalidArgument unless a tensor has the type of a dtype and is inside an array of `shape`.
void check_part(std::string_view operation, const std::string& name, DType dtype, const Dims& shape,
                const StoredTensor& tensor);

/// Throws InvalidArgument if two boxes of an array overlap. Interruptible.
void check_disjoint(std::string_view operation, const std::string& name, std::span<const IndexDomain> boxes);

}  // namespace artifex_devices
