// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/hlo/collectives.h"
#include "artifex_devices/hlo/module_text.h"

namespace artifex_devices::hlo {

/// Something suspicious about a program. Python has the texts for each kind.
struct Finding {
  std::string_view kind;
  size_t collective = 0;        // number in the program
  int64_t bytes = 0;            // that one device sends in one run, or holds; of an axis of size 1, of the operands
  std::string other;            // name of a second instruction, for texts
  bool is_of_compiler = false;  // what the compiler does by itself: a note, not a finding
};

/// What is suspicious about the collectives of a module. Doubtful cases are left out.
std::vector<Finding> find_suspicious(const Module& module, const std::vector<Collective>& collectives,
                                     const GroupTable& table, int64_t devices, std::string_view backend);

}  // namespace artifex_devices::hlo
