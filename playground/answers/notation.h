// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/shape.h"
#include "artifex_devices/partition/abstract_mesh.h"
#include "artifex_devices/partition/partition_spec.h"

// What people type into the page. Every function throws InvalidArgument for text that it cannot read.
namespace artifex_devices::playground {

/// "data=4, model=2", or as Python writes it: {"data": 4, "model": 2}.
AbstractMesh mesh_of(std::string_view text);

/// "4096, 1024", (4096, 1024) or 4096 x 1024; "()" and "" are a scalar.
Dims shape_of(std::string_view text);

/// P("data", None, ("x", "y")), with or without P( ) and quotes.
PartitionSpec spec_of(std::string_view text);

/// A dtype of whole bytes by its name.
DType dtype_of(std::string_view name);

}  // namespace artifex_devices::playground
