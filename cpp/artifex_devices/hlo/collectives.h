// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "artifex_devices/hlo/array_shape.h"
#include "artifex_devices/hlo/execution_counts.h"
#include "artifex_devices/hlo/mesh_axes.h"
#include "artifex_devices/hlo/module_text.h"

namespace artifex_devices::hlo {

/// One collective operation of a program.
struct Collective {
  std::string name;
  std::string_view kind;  // "all_gather", ...
  std::vector<std::string_view> dtypes;
  std::vector<std::vector<int64_t>> shapes;  // of the operands, on one device
  std::optional<int64_t> bytes;              // least that one device sends on a ring in one run
  size_t groups = 0;                         // in GroupTable
  bool has_pairs = false;                    // the groups are pairs of source and target
  std::optional<std::vector<size_t>> axes;   // of the mesh
  std::optional<int64_t> runs;
  bool is_async = false;
  bool overlaps = false;
  bool in_loop = false;
  std::string op_name;
  std::string file;
  int64_t line = 0;
  int32_t instruction = -1;  // of the HLO module
  int64_t operand_bytes = 0;
};

/// What collectives need of their groups.
struct GroupSummary {
  int64_t largest = 0;  // members of a group
  int64_t devices = 0;  // the largest device and 1
  bool moves = false;   // some group begins with two different devices, as a pair does
};

/// Groups of collectives, each once: programs have thousands of collectives and few sets of groups.
class GroupTable {
 public:
  GroupTable();

  /// The number of the groups that a text has; 0 where they could not be read. `parse` is called for a new text.
  template <class Parse>
  size_t add(std::string_view text, const Parse& parse) {
    const auto known = numbers_.find(text);
    if (known != numbers_.end()) return known->second;
    return insert(text, parse());
  }
  const Groups& at(size_t number) const { return groups_[number]; }
  const GroupSummary& summary(size_t number) const { return summaries_[number]; }
  size_t size() const noexcept { return groups_.size(); }
  /// Whether groups were left out, because a text could not be read or all groups would take too much memory.
  bool is_incomplete() const noexcept { return is_incomplete_; }

 private:
  size_t insert(std::string_view text, std::optional<Groups> groups);
  size_t number_of(Groups groups);

  std::vector<Groups> groups_;
  std::vector<GroupSummary> summaries_;
  std::map<std::string, size_t, std::less<>> numbers_;  // by text: the same groups have several notations
  std::unordered_multimap<uint64_t, size_t> by_digest_;
  int64_t devices_ = 0;
  bool is_incomplete_ = false;
};

/// The kind of an operation "all-gather", "all_gather", "all-gather-start"; empty for other operations and for "-done".
std::string_view collective_kind(std::string_view opcode) noexcept;

/// The least number of bytes that one device sends on a ring when groups of `size` run a collective of this kind with
/// operands of `bytes`: (size - 1) * bytes for a gather, 2 (size - 1) / size * bytes for an all-reduce, rounded up.
/// Nothing for ragged exchanges, whose sizes are data.
std::optional<int64_t> ring_bytes(std::string_view kind, std::optional<int64_t> bytes, int64_t size);

/// ring_bytes of a collective with these groups or pairs.
std::optional<int64_t> bytes_sent(std::string_view kind, std::optional<int64_t> bytes, const GroupSummary& groups,
                                  bool has_pairs);

/// The collectives of a module in the order of its text. Sets `devices` to the number that the text states or needs.
std::vector<Collective> find_collectives(const Module& module, const std::vector<Execution>& executions,
                                         GroupTable& table, int64_t& devices);

}  // namespace artifex_devices::hlo
