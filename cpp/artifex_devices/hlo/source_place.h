// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "artifex_devices/hlo/module_text.h"

namespace artifex_devices::hlo {

/// Where an instruction is from.
struct SourcePlace {
  std::string op_name;  // "jit(step)/dot_general"
  std::string file;
  int64_t line = 0;
};

/// Whether a file belongs to an installed package rather than to the user.
bool is_installed_file(std::string_view file) noexcept;

/// The place in the metadata of an instruction: the innermost frame of the user's code, or the innermost one where all
/// are of installed packages.
SourcePlace place_of(const Module& module, const Instruction& instruction);

}  // namespace artifex_devices::hlo
