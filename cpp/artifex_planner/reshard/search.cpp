// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "artifex_devices/base/interrupt.h"

namespace artifex_devices::planner {
namespace {

using AxisRun = std::vector<int>;

constexpr size_t kLongestGather = 3;  // axes at once, where the far side must keep to a memory limit

std::string key_of(const AxesByDimension& layout) {
  std::string key;
  for (const AxisRun& axes : layout) {
    for (const int axis : axes) key += static_cast<char>(axis + 1);
    key += '\0';
  }
  return key;
}

/// Layouts with the same key have shards of the same shape.
std::string parts_key(const ReshardSpace& space, const AxesByDimension& layout) {
  std::string key;
  for (const AxisRun& axes : layout) {
    int64_t parts = 1;
    for (const int axis : axes) parts *= space.sizes[static_cast<size_t>(axis)];
    key += std::to_string(parts) + ',';
  }
  return key;
}

std::vector<bool> used_axes(const ReshardSpace& space, const AxesByDimension& layout) {
  std::vector<bool> used(space.sizes.size(), false);
  for (const AxisRun& axes : layout) {
    for (const int axis : axes) used[static_cast<size_t>(axis)] = true;
  }
  return used;
}

/// One side of the search. Layouts that cost more than `at_most` are dropped.
class Side {
 public:
  Side(const ReshardSpace& space, const AxesByDimension& start, bool forward, int64_t at_most,
       const SearchLimits& limits)
      : space_(space), forward_(forward), at_most_(at_most), limits_(limits) {
    add(start, space.shard_bytes(start).value(), 0, 0, -1);
  }

  struct State {
    AxesByDimension layout;
    int64_t shard;
    int64_t cost;
    int64_t moves;
    int64_t parent;
    bool is_done = false;
  };

  /// The next state in order of cost, or -1.
  int64_t settle() {
    check_interrupt();
    while (!queue_.empty()) {
      const auto [cost, moves, index] = queue_.top();
      queue_.pop();
      State& state = states_[static_cast<size_t>(index)];
      if (state.is_done || cost != state.cost || moves != state.moves) continue;
      state.is_done = true;
      return index;
    }
    return -1;
  }
  int64_t least_open() const {
    return queue_.empty() ? std::numeric_limits<int64_t>::max() : std::get<0>(queue_.top());
  }
  bool is_full() const { return std::cmp_greater_equal(states_.size(), limits_.states) || looks_ >= limits_.looks; }
  bool was_cut_short() const { return cut_short_; }

  void expand(int64_t index) {
    if (is_full()) {
      cut_short_ = true;
      return;
    }
    const AxesByDimension layout = state(index).layout;
    const std::vector<bool> used = used_axes(space_, layout);
    std::vector<int64_t> parts(layout.size(), 1);
    for (size_t d = 0; d < layout.size(); ++d) {
      for (const int axis : layout[d]) parts[d] *= space_.sizes[static_cast<size_t>(axis)];
    }
    for (size_t d = 0; d < layout.size(); ++d) {
      lengthen(index, layout, d, used, parts[d], state(index).shard, 1);
      int64_t group = 1;
      for (size_t length = 1; length <= layout[d].size(); ++length) {
        const auto run = layout[d].end() - static_cast<std::ptrdiff_t>(length);
        group *= space_.sizes[static_cast<size_t>(*run)];
        // A gather, or slices in reverse.
        visit(index, state(index).shard * group, forward_ ? -1 : 0, 0, [&] {
          AxesByDimension fewer = layout;
          fewer[d].resize(layout[d].size() - length);
          return fewer;
        });
        for (size_t to = 0; to < layout.size(); ++to) {
          if (to == d || space_.shape[static_cast<int64_t>(to)] % (parts[to] * group) != 0) continue;
          visit(index, state(index).shard, -2, group, [&] {
            AxesByDimension next = layout;
            next[d].resize(layout[d].size() - length);
            next[to].insert(next[to].end(), run, layout[d].end());
            return next;
          });
        }
      }
    }
  }

  const State& state(int64_t index) const { return states_[static_cast<size_t>(index)]; }
  int64_t find(const AxesByDimension& layout) const {
    const auto found = index_.find(key_of(layout));
    return found == index_.end() ? -1 : found->second;
  }

  /// From `index` back to the begin of this side.
  std::vector<AxesByDimension> path(int64_t index) const {
    std::vector<AxesByDimension> layouts;
    for (; index >= 0; index = state(index).parent) layouts.push_back(state(index).layout);
    return layouts;
  }

 private:
  /// Slices, or gathers in reverse. A slice over several axes equals several slices; so does a gather, unless there is
  /// a memory limit, which the layouts in between would exceed.
  void lengthen(int64_t from, const AxesByDimension& layout, size_t dimension, const std::vector<bool>& used,
                int64_t parts, int64_t shard, size_t length) {
    for (size_t axis = 0; axis < used.size(); ++axis) {
      const int64_t more_parts = parts * space_.sizes[axis];
      if (used[axis] || space_.shape[static_cast<int64_t>(dimension)] % more_parts != 0) continue;
      const auto longer = [&] {
        AxesByDimension next = layout;
        next[dimension].push_back(static_cast<int>(axis));
        return next;
      };
      visit(from, shard / space_.sizes[axis], forward_ ? 0 : -1, 0, longer);
      if (forward_ || !space_.memory_limit || length == kLongestGather || is_full()) continue;
      std::vector<bool> more = used;
      more[axis] = true;
      lengthen(from, longer(), dimension, more, more_parts, shard / space_.sizes[axis], length + 1);
    }
  }

  /// kind 0: a slice; -1: a gather; -2: an all-to-all. `make` returns the layout, if it is needed.
  template <class Make>
  void visit(int64_t from, int64_t shard, int kind, int64_t group, Make make) {
    ++looks_;
    const int64_t here = state(from).shard;
    const int64_t before = forward_ ? here : shard;
    const int64_t after = forward_ ? shard : here;
    // The far end does not know which state is the source; the near end checks its steps.
    if (!space_.allows(before, after, forward_ && state(from).parent < 0)) return;
    if (shard > space_.largest_shard) return;
    const int64_t bytes = kind == 0 ? 0 : kind == -1 ? after - before : here / group * (group - 1);
    const int64_t cost = state(from).cost + bytes;
    if (cost > at_most_) return;
    add(make(), shard, cost, state(from).moves + (kind == 0 ? 0 : 1), from);
  }

  void add(const AxesByDimension& layout, int64_t shard, int64_t cost, int64_t moves, int64_t parent) {
    const std::string key = key_of(layout);
    const auto found = index_.find(key);
    if (found == index_.end()) {
      if (is_full()) {
        cut_short_ = true;
        return;
      }
      const auto index = static_cast<int64_t>(states_.size());
      index_.emplace(key, index);
      states_.push_back({layout, shard, cost, moves, parent});
      queue_.emplace(cost, moves, index);
      return;
    }
    State& known = states_[static_cast<size_t>(found->second)];
    if (known.is_done || std::tie(known.cost, known.moves) <= std::tie(cost, moves)) return;
    known.cost = cost;
    known.moves = moves;
    known.parent = parent;
    queue_.emplace(cost, moves, found->second);
  }

  using Entry = std::tuple<int64_t, int64_t, int64_t>;  // cost, moves, state
  const ReshardSpace& space_;
  bool forward_;
  int64_t at_most_;
  SearchLimits limits_;
  int64_t looks_ = 0;
  bool cut_short_ = false;
  std::vector<State> states_;
  std::unordered_map<std::string, int64_t> index_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

/// Takes the last axis of `size` from a run, or returns -1.
int take_last(const ReshardSpace& space, AxisRun* axes, int64_t size) {
  for (size_t i = axes->size(); i-- > 0;) {
    const int axis = (*axes)[i];
    if (space.sizes[static_cast<size_t>(axis)] != size) continue;
    axes->erase(axes->begin() + static_cast<std::ptrdiff_t>(i));
    return axis;
  }
  return -1;
}

int first_unused(const ReshardSpace& space, const AxesByDimension& layout, int64_t size, const AxisRun& preferred) {
  const std::vector<bool> used = used_axes(space, layout);
  for (const int axis : preferred) {
    if (!used[static_cast<size_t>(axis)] && space.sizes[static_cast<size_t>(axis)] == size) return axis;
  }
  for (size_t axis = 0; axis < used.size(); ++axis) {
    if (!used[axis] && space.sizes[axis] == size) return static_cast<int>(axis);
  }
  return -1;  // unreachable: both ends are sharded over the same axes
}

}  // namespace

std::optional<int64_t> ReshardSpace::shard_bytes(const AxesByDimension& layout) const {
  int64_t pieces = 1;
  for (size_t d = 0; d < layout.size(); ++d) {
    int64_t parts = 1;
    for (const int axis : layout[d]) parts *= sizes[static_cast<size_t>(axis)];
    if (shape[static_cast<int64_t>(d)] % parts != 0) return std::nullopt;
    pieces *= parts;
  }
  return array_bytes / pieces;
}

std::optional<std::vector<int>> exchanged_axes(const AxesByDimension& before, const AxesByDimension& after) {
  size_t shorter = before.size();
  size_t longer = before.size();
  int differing = 0;
  for (size_t d = 0; d < before.size(); ++d) {
    if (before[d] == after[d]) continue;
    (after[d].size() < before[d].size() ? shorter : longer) = d;
    ++differing;
  }
  if (differing != 2 || shorter == before.size() || longer == before.size()) return std::nullopt;
  AxisRun moved(before[shorter].begin() + static_cast<std::ptrdiff_t>(after[shorter].size()), before[shorter].end());
  AxisRun whole = after[shorter];
  whole.insert(whole.end(), moved.begin(), moved.end());
  AxisRun grown = before[longer];
  grown.insert(grown.end(), moved.begin(), moved.end());
  if (whole != before[shorter] || grown != after[longer]) return std::nullopt;
  return moved;
}

int64_t move_bytes(const ReshardSpace& space, const AxesByDimension& before, const AxesByDimension& after) {
  const int64_t from = space.shard_bytes(before).value();
  const int64_t to = space.shard_bytes(after).value();
  if (to < from || before == after) return 0;
  if (to > from) return to - from;
  const auto moved = exchanged_axes(before, after);
  if (!moved) return from;
  int64_t group = 1;
  for (const int axis : *moved) group *= space.sizes[static_cast<size_t>(axis)];
  return from / group * (group - 1);
}

ReshardPath safe_path(const ReshardSpace& space, const AxesByDimension& source, const AxesByDimension& destination) {
  const size_t rank = source.size();
  struct Transfer {
    size_t from, to;
    int64_t size;
  };
  std::vector<Transfer> transfers;
  ReshardPath path{{source}};
  AxesByDimension sliced = source;
  AxesByDimension gathered = destination;  // before its gathers
  std::vector<std::pair<size_t, int>> gathers;
  std::map<int64_t, int> primes;
  for (const int64_t size : space.sizes) ++primes[size];
  for (const auto& [size, total] : primes) {
    std::vector<size_t> surplus;
    std::vector<size_t> deficit;
    for (size_t d = 0; d < rank; ++d) {
      const auto count = [&, p = size](const AxisRun& axes) {
        return std::ranges::count_if(axes, [&](int axis) { return space.sizes[static_cast<size_t>(axis)] == p; });
      };
      const auto had = count(source[d]);
      const auto wanted = count(destination[d]);
      for (auto i = wanted; i < had; ++i) surplus.push_back(d);
      for (auto i = had; i < wanted; ++i) deficit.push_back(d);
    }
    const size_t moves = std::min(surplus.size(), deficit.size());
    for (size_t i = 0; i < moves; ++i) transfers.push_back({surplus[i], deficit[i], size});
    for (size_t i = moves; i < deficit.size(); ++i) {
      sliced[deficit[i]].push_back(first_unused(space, sliced, size, destination[deficit[i]]));
      path.layouts.push_back(sliced);
    }
    for (size_t i = moves; i < surplus.size(); ++i) {
      const int axis = first_unused(space, gathered, size, source[surplus[i]]);
      gathered[surplus[i]].push_back(axis);
      gathers.emplace_back(surplus[i], axis);
    }
  }
  // Axes that move become innermost, then all of them move, dimension by dimension.
  std::ranges::stable_sort(transfers, {}, [](const Transfer& t) { return std::pair(t.from, t.to); });
  AxesByDimension arranged = sliced;
  std::vector<std::tuple<size_t, size_t, AxisRun>> runs;
  for (auto t = transfers.rbegin(); t != transfers.rend(); ++t) {  // innermost first
    const int axis = take_last(space, &arranged[t->from], t->size);
    if (runs.empty() || std::get<0>(runs.back()) != t->from || std::get<1>(runs.back()) != t->to) {
      runs.emplace_back(t->from, t->to, AxisRun{});
    }
    AxisRun& run = std::get<2>(runs.back());
    run.insert(run.begin(), axis);
  }
  for (auto outer = runs.rbegin(); outer != runs.rend(); ++outer) {
    const auto& [from, to, run] = *outer;
    arranged[from].insert(arranged[from].end(), run.begin(), run.end());
  }
  const auto go = [&](const AxesByDimension& layout) {
    if (layout != path.layouts.back()) path.layouts.push_back(layout);
  };
  go(arranged);
  for (const auto& [from, to, run] : runs) {
    AxisRun& left = arranged[from];
    if (!std::equal(run.rbegin(), run.rend(), left.rbegin(), left.rbegin() + static_cast<std::ptrdiff_t>(run.size()))) {
      std::erase_if(left, [&, &moved = run](int axis) { return std::ranges::find(moved, axis) != moved.end(); });
      left.insert(left.end(), run.begin(), run.end());  // axes that arrived meanwhile
      go(arranged);
    }
    left.resize(left.size() - run.size());
    arranged[to].insert(arranged[to].end(), run.begin(), run.end());
    go(arranged);
  }
  go(gathered);
  for (auto last = gathers.rbegin(); last != gathers.rend(); ++last) {
    gathered[last->first].pop_back();
    go(gathered);
  }
  for (size_t i = 1; i < path.layouts.size(); ++i)
    path.bytes_in += move_bytes(space, path.layouts[i - 1], path.layouts[i]);
  return path;
}

ReshardSearchResult search_reshards(const ReshardSpace& space, const AxesByDimension& source,
                                    const AxesByDimension& destination, int64_t at_most, const SearchLimits& limits) {
  Side near(space, source, true, at_most, limits);
  Side far(space, destination, false, at_most, limits);
  struct Best {
    int64_t cost;
    int64_t moves;
    int64_t near = -1;
    int64_t far = -1;
  } best{at_most, std::numeric_limits<int64_t>::max()};
  // Of all settled states with shards of one shape, the cheapest of each side.
  std::unordered_map<std::string, int64_t> near_of_parts;
  std::unordered_map<std::string, int64_t> far_of_parts;

  const auto consider = [&](int64_t here, int64_t there) {
    const auto& a = near.state(here);
    const auto& b = far.state(there);
    const bool is_same = a.layout == b.layout;
    if (!is_same && !space.allows(a.shard, b.shard, a.parent < 0)) return;
    const int64_t cost = a.cost + b.cost + (is_same ? 0 : a.shard);
    const int64_t moves = a.moves + b.moves + (is_same ? 0 : 1);
    if (std::tie(cost, moves) < std::tie(best.cost, best.moves)) best = {cost, moves, here, there};
  };
  // The best path is final when the cheapest open states of both sides cost more.
  while (near.least_open() < best.cost || far.least_open() < best.cost) {
    const bool from_near = near.least_open() <= far.least_open();
    Side& side = from_near ? near : far;
    Side& other = from_near ? far : near;
    const int64_t index = side.settle();
    if (index < 0) continue;
    const AxesByDimension layout = side.state(index).layout;
    const auto join = [&](int64_t there) { from_near ? consider(index, there) : consider(there, index); };
    if (const int64_t met = other.find(layout); met >= 0) join(met);
    const std::string parts = parts_key(space, layout);
    const auto& known = from_near ? far_of_parts : near_of_parts;
    if (const auto found = known.find(parts); found != known.end()) join(found->second);
    (from_near ? near_of_parts : far_of_parts).try_emplace(parts, index);
    if (side.state(index).cost < best.cost) side.expand(index);
  }
  ReshardSearchResult result;
  const bool any_gather = !space.memory_limit || space.sizes.size() <= kLongestGather;
  result.is_complete = any_gather && !near.was_cut_short() && !far.was_cut_short();
  if (best.near < 0) return result;
  ReshardPath path;
  path.bytes_in = best.cost;
  path.layouts = near.path(best.near);
  std::ranges::reverse(path.layouts);
  for (const AxesByDimension& layout : far.path(best.far)) {
    if (path.layouts.back() != layout) path.layouts.push_back(layout);
  }
  result.path = std::move(path);
  return result;
}

}  // namespace artifex_devices::planner
