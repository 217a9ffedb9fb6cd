// SPDX-License-Identifier: Apache-2.0
// A module of HLO text: its computations and instructions, as views into the text, which must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace artifex_devices::hlo {

/// "[ROOT] %name = shape opcode(operands), attributes".
struct Instruction {
  std::string_view name;
  std::string_view shape;
  std::string_view opcode;
  std::string_view arguments;   // between the parentheses
  std::string_view attributes;  // behind them
  int32_t computation = 0;
  int32_t first_operand = 0;  // in Module::operands
  int32_t operand_count = 0;
};

struct Computation {
  std::string_view name;
  int32_t first = 0;  // instruction
  int32_t count = 0;
  int32_t root = -1;  // instruction; -1: the text lacks it
};

/// Source file and line of a frame, and the frame that called it.
struct Frame {
  int64_t location = 0;
  int64_t parent = 0;  // 0: none
};
struct FileLocation {
  int64_t file = 0;
  int64_t line = 0;
};

struct Module {
  std::string_view name;
  std::string_view attributes;  // of the first line
  std::vector<Computation> computations;
  std::vector<Instruction> instructions;
  std::vector<int32_t> operands;  // instructions of the same computation; -1: not in the text
  int32_t entry = -1;             // computation; -1: the text lacks it
  bool is_cut = false;            // the text ends inside a computation, or before its entry
  int64_t unread_lines = 0;
  std::unordered_map<std::string_view, int32_t> computation_of;
  std::unordered_map<int64_t, std::string_view> files;
  std::unordered_map<int64_t, FileLocation> locations;
  std::unordered_map<int64_t, Frame> frames;

  const int32_t* begin_operands(const Instruction& instruction) const {
    return operands.data() + instruction.first_operand;
  }
};

/// Whether a text begins as HLO text does, behind blank lines and comments.
bool is_hlo_text(std::string_view text) noexcept;

/// Reads HLO text as far as it goes. Throws InvalidArgument for other text, and for more than 2^27 instructions.
Module read_module(std::string_view text);

}  // namespace artifex_devices::hlo
