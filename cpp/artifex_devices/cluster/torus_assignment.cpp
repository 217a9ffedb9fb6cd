// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/torus_assignment.h"

#include <numeric>
#include <tuple>

#include "artifex_devices/cluster/torus_vectors.h"

namespace artifex_devices {
namespace {

// Bit sets of `axes`, larger sets first, equally large ones in lexicographic order of their members.
std::vector<unsigned> sets_by_size(const std::vector<int>& axes) {
  std::vector<unsigned> sets;
  const auto count = static_cast<int>(axes.size());
  for (int size = count; size >= 1; --size) {
    std::vector<int> chosen(static_cast<size_t>(size));
    std::iota(chosen.begin(), chosen.end(), 0);
    for (;;) {
      unsigned set = 0;
      for (const int each : chosen) set |= 1U << axes[static_cast<size_t>(each)];
      sets.push_back(set);
      int last = size - 1;
      while (last >= 0 && chosen[static_cast<size_t>(last)] == count - size + last) --last;
      if (last < 0) break;
      ++chosen[static_cast<size_t>(last)];
      for (int i = last + 1; i < size; ++i) chosen[static_cast<size_t>(i)] = chosen[static_cast<size_t>(i - 1)] + 1;
    }
  }
  return sets;
}

TorusAssignment nothing_assigned(size_t physical, size_t logical) {
  return {std::vector<std::vector<int64_t>>(physical, std::vector<int64_t>(logical, 1))};
}

using Preference = std::tuple<int64_t, int64_t, int64_t>;

Preference preference_of(const std::vector<int64_t>& parts, const std::vector<int64_t>& dims,
                         const std::vector<int64_t>& used) {
  int64_t whole = 1;
  int64_t whole_axes = 0;
  int64_t on_used = 1;
  for (size_t p = 0; p < dims.size(); ++p) {
    if (parts[p] == dims[p]) {
      whole *= parts[p];
      whole_axes += parts[p] > 1;
    }
    if (used[p] > 1) on_used *= parts[p];
  }
  return {whole, whole_axes, on_used};
}

}  // namespace

AssignmentAttempt assign_whole_axes(const std::vector<int64_t>& dims, const std::vector<int64_t>& mesh) {
  TorusAssignment assignment = nothing_assigned(dims.size(), mesh.size());
  std::vector<int64_t> remaining = dims;
  for (size_t l = mesh.size(); l-- > 0;) {
    std::vector<int> free;
    for (size_t p = 0; p < dims.size(); ++p) {
      if (remaining[p] != 0) free.push_back(static_cast<int>(p));
    }
    bool found = mesh[l] == 1;
    for (const unsigned set : sets_by_size(free)) {
      int64_t product = 1;
      for (size_t p = 0; p < dims.size(); ++p) product *= (set >> p & 1U) != 0 ? dims[p] : 1;
      if (product != mesh[l]) continue;
      for (size_t p = 0; p < dims.size(); ++p) {
        if ((set >> p & 1U) == 0) continue;
        assignment.factors[p][l] = dims[p];
        remaining[p] = 0;
      }
      found = true;
      break;
    }
    if (!found) return {std::nullopt, {static_cast<int>(l), std::move(remaining)}};
  }
  return {std::move(assignment), {}};
}

AssignmentAttempt assign_split_axes(const std::vector<int64_t>& dims, const std::vector<int64_t>& mesh) {
  TorusAssignment assignment = nothing_assigned(dims.size(), mesh.size());
  std::vector<int64_t> used(dims.size(), 1);
  for (size_t l = mesh.size(); l-- > 0;) {
    std::vector<int64_t> free(dims.size());
    for (size_t p = 0; p < dims.size(); ++p) free[p] = dims[p] / used[p];
    std::optional<std::vector<int64_t>> best;
    Preference best_preference;
    // Ascending lexicographically: of equally good ones the last stays.
    for_each_division(mesh[l], free, [&](const std::vector<int64_t>& parts) {
      const Preference preference = preference_of(parts, dims, used);
      if (best && preference < best_preference) return;
      best = parts;
      best_preference = preference;
    });
    if (!best) return {std::nullopt, {static_cast<int>(l), std::move(free)}};
    for (size_t p = 0; p < dims.size(); ++p) {
      assignment.factors[p][l] = (*best)[p];
      used[p] *= (*best)[p];
    }
  }
  return {std::move(assignment), {}};
}

std::vector<int64_t> order_of(const TorusAssignment& assignment) {
  const auto& factors = assignment.factors;
  struct Digit {
    int64_t size;
    int64_t stride;
  };
  const size_t logical = factors.empty() ? 0 : factors[0].size();
  std::vector<std::vector<Digit>> digits(factors.size(), std::vector<Digit>(logical));
  int64_t stride = 1;
  for (size_t p = factors.size(); p-- > 0;) {
    for (size_t l = logical; l-- > 0;) {
      digits[p][l] = {factors[p][l], stride};
      stride *= factors[p][l];
    }
  }
  // The fastest digit of the mesh first.
  std::vector<int64_t> order = {0};
  order.reserve(static_cast<size_t>(stride));
  for (size_t l = logical; l-- > 0;) {
    for (size_t p = factors.size(); p-- > 0;) {
      const Digit digit = digits[p][l];
      const size_t so_far = order.size();
      for (int64_t i = 1; i < digit.size; ++i) {
        for (size_t k = 0; k < so_far; ++k) order.push_back(order[k] + i * digit.stride);
      }
    }
  }
  return order;
}

}  // namespace artifex_devices
