// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>

#include "artifex_devices/cluster/torus_rates.h"
#include "artifex_devices/cluster/torus_vectors.h"

namespace artifex_devices {
namespace {

/// The best assignment of the axes 0 .. l, given the share of each physical axis in the later ones. The cost of an axis
/// depends only on that, so each state is evaluated once.
class Search {
 public:
  Search(const Torus& torus, const std::vector<int64_t>& mesh, const std::vector<double>& traffic, bool may_split)
      : torus_(torus), mesh_(mesh), traffic_(traffic), may_split_(may_split) {}

  std::optional<TorusAssignment> best() {
    std::vector<int64_t> used(torus_.dims.size(), 1);
    if (cost(mesh_.size(), used) == kNone) return std::nullopt;
    TorusAssignment result{
        std::vector<std::vector<int64_t>>(torus_.dims.size(), std::vector<int64_t>(mesh_.size(), 1))};
    for (size_t l = mesh_.size(); l-- > 0;) {
      const std::vector<int64_t>& parts = known_.at({l + 1, used}).parts;
      for (size_t p = 0; p < used.size(); ++p) {
        result.factors[p][l] = parts[p];
        used[p] *= parts[p];
      }
    }
    return result;
  }

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  struct Choice {
    double seconds = kNone;
    std::vector<int64_t> parts;
  };

  double seconds_of_axis(size_t axis, const std::vector<int64_t>& used, const std::vector<int64_t>& parts) const {
    // The parts of later axes as one following axis.
    TorusAssignment pair;
    for (size_t p = 0; p < parts.size(); ++p) pair.factors.push_back({parts[p], used[p]});
    return seconds_of(torus_, rates_of(torus_, pair), {traffic_[axis], 0});
  }

  double cost(size_t axes, const std::vector<int64_t>& used) {
    if (axes == 0) return 0;
    const auto known = known_.find({axes, used});
    if (known != known_.end()) return known->second.seconds;
    std::vector<int64_t> free(used.size());
    for (size_t p = 0; p < used.size(); ++p) free[p] = torus_.dims[p] / used[p];
    Choice best;
    for_each_division(mesh_[axes - 1], free, [&](const std::vector<int64_t>& parts) {
      std::vector<int64_t> then = used;
      for (size_t p = 0; p < parts.size(); ++p) {
        if (!may_split_ && parts[p] != 1 && parts[p] != torus_.dims[p]) return;
        then[p] *= parts[p];
      }
      const double rest = cost(axes - 1, then);
      if (rest == kNone) return;
      const double seconds = rest + seconds_of_axis(axes - 1, used, parts);
      if (seconds <= best.seconds) best = {seconds, parts};  // of equal ones the lexicographically larger, as in JAX
    });
    const double seconds = best.seconds;
    known_.emplace(std::pair(axes, used), std::move(best));
    return seconds;
  }

  const Torus& torus_;
  const std::vector<int64_t>& mesh_;
  const std::vector<double>& traffic_;
  const bool may_split_;
  std::map<std::pair<size_t, std::vector<int64_t>>, Choice> known_;
};

}  // namespace

std::optional<TorusAssignment> assign_exactly(const Torus& torus, const std::vector<int64_t>& mesh,
                                              const std::vector<double>& traffic, bool may_split) {
  std::optional<TorusAssignment> best = Search(torus, mesh, traffic, may_split).best();
  if (!best) return std::nullopt;
  AssignmentAttempt jax = assign_whole_axes(torus.dims, mesh);
  if (!jax.found && may_split) jax = assign_split_axes(torus.dims, mesh);
  if (!jax.found) return best;
  const auto seconds = [&](const TorusAssignment& each) { return seconds_of(torus, rates_of(torus, each), traffic); };
  // Sums of doubles in another order may differ in their last bits.
  return seconds(*jax.found) <= seconds(*best) * (1 + 1e-12) ? jax.found : best;
}

}  // namespace artifex_devices
