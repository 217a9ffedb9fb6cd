// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/calibration/terms.h"

#include <algorithm>
#include <cmath>

namespace artifex_devices::planner {
namespace {

enum ProgramTerm : uint8_t { kResults = 4, kAddedInCaches, kAddedFromMemory };

size_t copy_term(std::string_view name) noexcept {
  return static_cast<size_t>(std::ranges::find(kCopyTerms, name) - kCopyTerms.begin());
}

/// Terms of dense copies; more than 2^62 bytes are scaled, as from far less on each byte costs the same.
CopyTerms dense_terms(double bytes, int64_t copies, const CopyLimits& limits) {
  constexpr auto kLargest = static_cast<double>(int64_t{1} << 62);
  CopyTerms terms = dense_copy_terms(static_cast<int64_t>(std::nearbyint(std::min(bytes, kLargest))), copies, limits);
  const double scale = std::max(1.0, bytes / kLargest);
  for (size_t i = copy_term("alone"); i < terms.size(); ++i) terms[i] *= scale;
  return terms;
}

}  // namespace

CollectiveTerms collective_terms(ProgramCollective op, double bytes, int64_t devices, int64_t groups,
                                 ProgramExecutor executor, const CopyLimits& limits) {
  CollectiveTerms terms;
  const auto participants = static_cast<double>(devices * groups);
  const auto group_count = static_cast<double>(groups);
  const size_t programs = executor == ProgramExecutor::kCooperative ? 0 : 2;
  terms.program[programs] = 1;
  terms.program[programs + 1] = participants;
  const bool is_shared = op == ProgramCollective::kAllGather || op == ProgramCollective::kAllReduce;
  terms.program[kResults] = is_shared ? group_count : participants;
  if (devices == 1 || op == ProgramCollective::kPermute) return terms;  // permuted blocks are not copied
  if (op == ProgramCollective::kAllGather || op == ProgramCollective::kAllToAll) {
    const int64_t copies = op == ProgramCollective::kAllGather ? devices : devices * devices;
    terms.copies = dense_terms(bytes, copies, limits);
    for (double& count : terms.copies) count *= group_count;
    return terms;
  }
  // The members of a group share one result: all inputs are read and it is written.
  const CopyTerms moved = dense_terms(bytes * static_cast<double>((devices + 1) * groups), 1, limits);
  const size_t on_workers = copy_term("calls on workers");
  terms.copies[on_workers] = moved[on_workers];
  terms.program[kAddedFromMemory] = moved[copy_term("memory")];
  terms.program[kAddedInCaches] = moved[copy_term("alone")] + moved[copy_term("cached")] + moved[copy_term("warm")];
  return terms;
}

ProgramExecutor executor_for(ProgramCollective op, double bytes, int64_t devices, double threads_bytes) noexcept {
  const bool has_full_blocks = op == ProgramCollective::kReduceScatter || op == ProgramCollective::kAllReduce;
  const double block = has_full_blocks ? bytes : bytes / static_cast<double>(devices);
  return block >= threads_bytes && devices > 1 ? ProgramExecutor::kThreads : ProgramExecutor::kCooperative;
}

}  // namespace artifex_devices::planner
