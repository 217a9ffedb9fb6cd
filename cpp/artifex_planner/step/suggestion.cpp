// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/suggestion.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/step/axis_choices.h"

namespace artifex_devices::planner {
namespace {

constexpr const char* kSearchOperation = "suggest";
constexpr int64_t kBetweenReports = 1024;   // candidates
constexpr int64_t kWorkToReport = 1 << 16;  // operations of candidates

/// Meshes of the same sizes in any order: one set of rules means the same work on all of them.
struct Family {
  std::vector<int64_t> sizes;  // ascending
  struct Member {
    size_t mesh = 0;
    std::vector<size_t> places;  // of each axis of `sizes` in the mesh
    StepNetwork network;         // for the axes of `sizes`
  };
  std::vector<Member> members;
};

std::vector<Family> families_of(const SuggestionSpace& space) {
  std::map<std::vector<int64_t>, Family> found;
  for (size_t mesh = 0; mesh < space.meshes.size(); ++mesh) {
    const std::vector<int64_t>& sizes = space.meshes[mesh].sizes;
    std::vector<size_t> places(sizes.size());
    std::iota(places.begin(), places.end(), size_t{0});
    std::ranges::stable_sort(places, {}, [&](size_t place) { return sizes[place]; });
    std::vector<int64_t> sorted;
    for (const size_t place : places) sorted.push_back(sizes[place]);
    Family& family = found[sorted];
    family.sizes = std::move(sorted);
    family.members.push_back({mesh, std::move(places), {}});
  }
  std::vector<Family> families;
  for (auto& [sizes, family] : found) families.push_back(std::move(family));
  return families;
}

/// Number of candidates of all families, from the numbers of sets for axes of each size: the sets may be too many to
/// store.
int64_t count_of(const std::vector<Family>& families, const AxisChoices& choices) {
  std::map<int64_t, double> sets;  // by size
  double total = 0;
  for (const Family& family : families) {
    double candidates = 1;
    for (const int64_t size : family.sizes) {
      auto found = sets.find(size);
      if (found == sets.end()) found = sets.emplace(size, static_cast<double>(choices.count_for_size(size))).first;
      candidates *= found->second;
    }
    total += candidates;
  }
  return total < 1e18 ? static_cast<int64_t>(total) : int64_t{1'000'000'000'000'000'000};
}

/// Groups for each set of axes; none where they are not boxes of the cluster.
StepNetwork network_of(const Cluster& cluster, const ClusterMesh& mesh, const std::vector<size_t>& places,
                       const std::vector<int64_t>& sizes) {
  StepNetwork network{sizes, std::vector<std::vector<NodeGroup>>(size_t{1} << sizes.size())};
  for (MeshAxes axes = 1; axes < network.groups.size(); ++axes) {
    MeshAxes own = 0;
    for (size_t axis = 0; axis < places.size(); ++axis) {
      if ((axes >> axis & 1) != 0) own |= MeshAxes{1} << places[axis];
    }
    check_interrupt();
    try {
      network.groups[axes] =
          std::move(step_network(cluster, mesh.sizes, mesh.devices, {own}, kSearchOperation).groups[own]);
    } catch (const InvalidArgument&) {  // not boxes: options that need them are counted
    }
  }
  return network;
}

/// Order of options: less is better.
using Rank = std::tuple<float, float, float, size_t, int>;

class Search {
 public:
  Search(const StepModel& model, const Cluster& cluster, const SuggestionSpace& space, const Efficiency& efficiency,
         const std::function<void(int64_t)>& progress)
      : model_(model),
        space_(space),
        efficiency_(efficiency),
        progress_(progress),
        hardware_(device_rates(cluster, kSearchOperation)),
        choices_(model, space.shardable),
        families_(families_of(space)) {
    const int64_t count = count_of(families_, choices_);
    if (count > kMostCandidates) {
      throw_error(
          "{}: the space has {} candidates; expected at most {}; allow fewer axes of the mesh, or name fewer logical "
          "axes by axes=",
          kSearchOperation, count, kMostCandidates);
    }
    for (Family& family : families_) {
      for (const int64_t size : family.sizes) {
        if (!sets_of_size_.contains(size)) sets_of_size_.emplace(size, choices_.for_size(size));
      }
      for (Family::Member& member : family.members) {
        member.network = network_of(cluster, space.meshes[member.mesh], member.places, family.sizes);
      }
    }
  }

  Suggestions found() {
    for (const Family& family : families_) {
      std::vector<AxisSet> sets;
      walk(family, sets);
    }
    Suggestions result = std::move(result_);
    if (!best_.empty()) result.largest_batch = 0;
    for (Entry& entry : best_) result.best.push_back(std::move(entry.option));
    if (fastest_too_large_) result.fastest_too_large = std::move(fastest_too_large_->option);
    if (smallest_) result.smallest = std::move(smallest_->option);
    return result;
  }

 private:
  /// Number of parts of each set of axes: equal for options that are the same to a user.
  using Meaning = std::vector<std::pair<AxisSet, int64_t>>;
  struct Entry {
    Rank rank;
    Meaning meaning;
    Suggested option;
  };

  void walk(const Family& family, std::vector<AxisSet>& sets) {
    if (sets.size() < family.sizes.size()) {
      for (const AxisSet set : sets_of_size_.at(family.sizes[sets.size()])) {
        sets.push_back(set);
        walk(family, sets);
        sets.pop_back();
      }
      return;
    }
    check_interrupt();
    if (done_ % kBetweenReports == 0 || work_ >= kWorkToReport) {
      work_ = 0;
      if (progress_) progress_(done_);
    }
    ++done_;
    if (choices_.fit_together(family.sizes, sets)) price(family, sets);
  }

  void price(const Family& family, const std::vector<AxisSet>& sets) {
    work_ += static_cast<int64_t>(model_.ops.size() * (1 + family.members.size()));
    StepRules rules(model_.logical_axes.size(), 0);
    int sharded_count = 0;
    for (size_t axis = 0; axis < sets.size(); ++axis) {
      sharded_count += std::popcount(sets[axis]);
      for (AxisSet rest = sets[axis]; rest != 0; rest &= rest - 1) {
        rules[static_cast<size_t>(std::countr_zero(rest))] |= MeshAxes{1} << axis;
      }
    }
    const StepWork work = step_work(model_, family.sizes, rules, kSearchOperation);
    const double memory = work.memory.at(1);
    const bool fits = memory <= static_cast<double>(hardware_.memory_bytes);
    const bool is_hopeless = cannot_lead(work, fits, memory);
    bool is_possible = false;
    for (const Family::Member& member : family.members) {
      const bool has_network = std::ranges::none_of(
          work.collectives, [&](const StepCollective& each) { return member.network.groups[each.axes].empty(); });
      if (!has_network) {
        ++result_.without_network;
        continue;
      }
      ++result_.possible;
      if (!fits) ++result_.too_large;
      is_possible = true;
      if (is_hopeless) continue;
      const ExpectedStep step = expected_step(work, hardware_, member.network, efficiency_);
      const double first = space_.overlaps ? step.overlapped() : step.serial();
      const double second = space_.overlaps ? step.serial() : step.overlapped();
      const auto rank = Rank{static_cast<float>(first), static_cast<float>(second), static_cast<float>(memory),
                             family.sizes.size(), sharded_count};
      const auto entry = [&] {
        Entry made{rank, meaning_of(family, sets), {member.mesh, rules_of(member, rules), step, memory}};
        return made;
      };
      const Rank by_memory{static_cast<float>(memory), std::get<0>(rank), std::get<1>(rank), family.sizes.size(),
                           sharded_count};
      if (!smallest_ || by_memory < smallest_->rank) {
        smallest_ = entry();
        smallest_->rank = by_memory;
      }
      if (!fits && (!fastest_too_large_ || rank < fastest_too_large_->rank)) fastest_too_large_ = entry();
      if (fits && (best_.size() < static_cast<size_t>(space_.top) || rank < best_.back().rank)) add(entry());
    }
    if (is_possible && !fits && best_.empty()) {
      const double batch = largest_step_batch(model_, family.sizes, rules, work.memory, hardware_.memory_bytes);
      result_.largest_batch = std::max(result_.largest_batch, batch);
    }
  }

  /// Whether an option cannot be among the results even if its collectives took no time.
  bool cannot_lead(const StepWork& work, bool fits, double memory) const {
    const bool is_full = fits ? best_.size() == static_cast<size_t>(space_.top) : fastest_too_large_.has_value();
    if (!is_full || !smallest_ || static_cast<float>(memory) <= std::get<0>(smallest_->rank)) return false;
    const ExpectedStep least = expected_device_seconds(work, hardware_, efficiency_);
    const Rank& worst = fits ? best_.back().rank : fastest_too_large_->rank;
    return static_cast<float>(least.serial()) > std::get<0>(worst);
  }

  void add(Entry entry) {
    const auto same = std::ranges::find(best_, entry.meaning, &Entry::meaning);
    if (same != best_.end()) {
      if (entry.rank >= same->rank) return;
      best_.erase(same);
    }
    best_.insert(std::ranges::upper_bound(best_, entry.rank, {}, &Entry::rank), std::move(entry));
    if (best_.size() > static_cast<size_t>(space_.top)) best_.pop_back();
  }

  static Meaning meaning_of(const Family& family, const std::vector<AxisSet>& sets) {
    std::map<AxisSet, int64_t> parts;
    for (size_t axis = 0; axis < sets.size(); ++axis) {
      int64_t& each = parts.try_emplace(sets[axis], 1).first->second;
      each *= family.sizes[axis];
    }
    return {parts.begin(), parts.end()};
  }

  /// The rules by the axes of the mesh instead of the sorted ones.
  static StepRules rules_of(const Family::Member& member, const StepRules& rules) {
    StepRules own;
    for (const MeshAxes axes : rules) {
      MeshAxes moved = 0;
      for (size_t axis = 0; axis < member.places.size(); ++axis) {
        if ((axes >> axis & 1) != 0) moved |= MeshAxes{1} << member.places[axis];
      }
      own.push_back(moved);
    }
    return own;
  }

  const StepModel& model_;
  const SuggestionSpace& space_;
  const Efficiency& efficiency_;
  const std::function<void(int64_t)>& progress_;
  DeviceRates hardware_;
  AxisChoices choices_;
  std::vector<Family> families_;
  std::map<int64_t, std::vector<AxisSet>> sets_of_size_;  // that a mesh axis may shard
  int64_t done_ = 0;
  int64_t work_ = 0;  // since the last report
  Suggestions result_;
  std::vector<Entry> best_;
  std::optional<Entry> fastest_too_large_;
  std::optional<Entry> smallest_;
};

void add_shapes(int64_t rest, size_t axes, std::vector<int64_t>& shape, std::vector<std::vector<int64_t>>& shapes) {
  if (axes == 1) {
    shape.push_back(rest);
    shapes.push_back(shape);
    shape.pop_back();
    return;
  }
  for (int64_t size = 2; size <= rest / 2; ++size) {
    if (rest % size != 0) continue;
    shape.push_back(size);
    add_shapes(rest / size, axes - 1, shape, shapes);
    shape.pop_back();
  }
}

}  // namespace

std::vector<std::vector<int64_t>> mesh_shapes(int64_t devices, int most_axes) {
  if (devices < 1 || most_axes < 1 || most_axes > kStepMeshAxes) {
    throw_error("{}: there are {} devices and at most {} axes; expected 1 or more devices, 1 to {} axes; correct them",
                kSearchOperation, devices, most_axes, kStepMeshAxes);
  }
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int64_t> shape;
  for (int axes = 1; axes <= most_axes; ++axes) {
    if (axes > 1 && devices >> axes == 0) break;
    add_shapes(devices, static_cast<size_t>(axes), shape, shapes);
  }
  return shapes;
}

int64_t count_of_candidates(const StepModel& model, const SuggestionSpace& space) {
  const AxisChoices choices(model, space.shardable);
  return count_of(families_of(space), choices);
}

Suggestions suggest_steps(const StepModel& model, const Cluster& cluster, const SuggestionSpace& space,
                          const Efficiency& efficiency, const std::function<void(int64_t)>& progress) {
  return Search(model, cluster, space, efficiency, progress).found();
}

}  // namespace artifex_devices::planner
