// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "artifex_planner/calibration/copy_terms.h"
#include "artifex_planner/kind_names.h"

namespace artifex_devices::planner {

/// Collectives that programs of this machine's devices run: lax.all_gather, psum_scatter, psum, all_to_all, ppermute.
enum class ProgramCollective : uint8_t { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kPermute };
template <>
inline constexpr std::array<std::string_view, 5> kKindNames<ProgramCollective>{"all_gather", "reduce_scatter",
                                                                               "all_reduce", "all_to_all", "permute"};

/// Executor of a program: one thread runs all devices in turn, or each device has a thread.
enum class ProgramExecutor : uint8_t { kCooperative, kThreads };
template <>
inline constexpr std::array<std::string_view, 2> kKindNames<ProgramExecutor>{"cooperative", "threads"};

/// Terms of the seconds of collectives, in addition to the terms of copies.
inline constexpr std::array<std::string_view, 7> kProgramTerms = {
    "cooperative programs", "cooperative participants", "threads programs", "threads participants", "results",
    "added in caches",      "added from memory"};

struct CollectiveTerms {
  CopyTerms copies{};
  std::array<double, kProgramTerms.size()> program{};
};

/// Returns the terms of one program with one collective, in which `groups` groups of `devices` devices do the same.
/// `bytes` is the size of the full array of a group: the gathered result, one device's unreduced input, or the global
/// array of an all-to-all. Example: an all_gather of 1 MiB by 4 devices, cooperative: 1 program, 4 participants, 1
/// result, 1 call on workers, 4 copies and 1048576 cached bytes.
CollectiveTerms collective_terms(ProgramCollective op, double bytes, int64_t devices, int64_t groups,
                                 ProgramExecutor executor, const CopyLimits& limits);

/// The executor that shard_map chooses for such blocks: threads for blocks of at least `threads_bytes`.
ProgramExecutor executor_for(ProgramCollective op, double bytes, int64_t devices, double threads_bytes) noexcept;

}  // namespace artifex_devices::planner
