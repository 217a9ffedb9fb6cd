// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/cluster.h"

#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMostDevices = int64_t{1} << 24;
constexpr int kMostChipsJoined = 1024;  // by one switch domain or full mesh; NVLink 5 joins up to 576 GPUs

/// Collects the mistakes in the parts.
class Problems {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (!text_.empty()) text_ += "; ";
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }
  void check(const std::optional<SourcedNumber>& figure, std::string_view what, bool may_be_zero = false) {
    if (!figure) return;
    const double value = figure->value;
    if (!std::isfinite(value) || value < 0 || (value == 0 && !may_be_zero)) {
      add("{} is {}; expected a finite number {}", what, value, may_be_zero ? "of 0 or more" : "above 0");
    }
    if (figure->source.empty()) add("{} has no source; expected its origin, such as \"given\"", what);
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

void check_chip(const ClusterChip& chip, Problems& problems) {
  if (chip.name.empty()) problems.add("the chip has no name");
  if (chip.platform != "tpu" && chip.platform != "gpu" && chip.platform != "cpu") {
    problems.add("the chip's platform is {:?}; expected \"tpu\", \"gpu\" or \"cpu\"", chip.platform);
  }
  if (chip.devices_per_chip < 1 || chip.devices_per_chip > 64) {
    problems.add("devices_per_chip is {}; expected 1 to 64", chip.devices_per_chip);
  }
  for (int i = 0; i < kMatmulFormatCount; ++i) {
    const auto format = static_cast<MatmulFormat>(i);
    problems.check(chip.peak(format), fmt::format("peak_flops of {}", to_string(format)));
  }
  problems.check(chip.memory_bytes, "memory_bytes");
  if (chip.memory_bytes && chip.memory_bytes->value > 0x1p62) {
    problems.add("memory_bytes is {}; expected at most 2^62", chip.memory_bytes->value);
  }
  problems.check(chip.memory_bandwidth, "memory_bandwidth");
  problems.check(chip.host_bandwidth, "host_bandwidth");
}

void check_network(const ClusterParts& parts, Problems& problems) {
  const SliceNetwork& inside = parts.inside;
  const size_t axes = inside.dims.size();
  const bool is_torus = inside.kind == NetworkKind::kTorus;
  if (is_torus ? axes < 1 || axes > 3 : axes != 1) {
    problems.add("dims is [{}]; expected {} for a {}", fmt::join(inside.dims, ", "),
                 is_torus ? "1 to 3 numbers of chips" : "one number of chips", to_string(inside.kind));
  }
  if (!is_torus && axes == 1 && inside.dims[0] > kMostChipsJoined) {
    problems.add("dims is [{}]; expected at most {} chips joined by one {}; plan with several slices or nodes",
                 inside.dims[0], kMostChipsJoined, to_string(inside.kind));
  }
  if (inside.wraps.size() != (is_torus ? axes : 0)) {
    problems.add("wraps has {} values; expected {}", inside.wraps.size(),
                 is_torus ? fmt::format("one for each of the {} axes", axes) : "none: only a torus has them");
  }
  if (parts.host_shape.size() != axes) {
    problems.add("host_shape is [{}]; expected one number for each of the {} axes of dims",
                 fmt::join(parts.host_shape, ", "), axes);
  }
  for (size_t a = 0; a < axes; ++a) {
    if (inside.dims[a] < 1) problems.add("dims[{}] is {}; expected 1 or more", a, inside.dims[a]);
    if (parts.host_shape.size() != axes) continue;
    const int host = parts.host_shape[a];
    if (host < 1 || inside.dims[a] < 1 || inside.dims[a] % host != 0) {
      problems.add("host_shape[{}] is {}; expected a divisor of dims[{}], {}", a, host, a, inside.dims[a]);
    }
  }
  problems.check(inside.bandwidth, "the slice's bandwidth");
  problems.check(inside.latency, "the slice's latency", true);
  problems.check(parts.between.bandwidth, "the bandwidth between slices");
  problems.check(parts.between.latency, "the latency between slices", true);
}

void check_size(const ClusterParts& parts, Problems& problems) {
  if (parts.slices < 1) problems.add("slices is {}; expected 1 or more", parts.slices);
  std::optional<int64_t> devices = parts.slices;
  for (const int size : parts.inside.dims) devices = devices ? checked_mul(*devices, size) : devices;
  if (devices) devices = checked_mul(*devices, parts.chip.devices_per_chip);
  if (!devices || *devices > kMostDevices) {
    problems.add("{} slices of {} chips have {} devices; expected {} at most", parts.slices,
                 fmt::join(parts.inside.dims, "x"), devices ? std::to_string(*devices) : "more than 2^63",
                 kMostDevices);
  }
}

const SourcedNumber& known(const std::optional<SourcedNumber>& figure, const Cluster& cluster, const char* what,
                           const char* argument) {
  if (!figure) {
    throw_error<Unavailable>("cluster {:?}: its {} is not known; expected a number to compute seconds with; give {}",
                             cluster.name(), what, argument);
  }
  return *figure;
}

}  // namespace

std::string_view to_string(NetworkKind kind) noexcept {
  switch (kind) {
    case NetworkKind::kTorus:
      return "torus";
    case NetworkKind::kSwitch:
      return "switch";
    case NetworkKind::kFullMesh:
      return "full mesh";
  }
  return "unknown";
}

std::shared_ptr<const Cluster> Cluster::make(ClusterParts parts) {
  Problems problems;
  if (parts.name.empty()) problems.add("the cluster has no name");
  check_chip(parts.chip, problems);
  problems.check(parts.host_memory, "host_memory_bytes");
  check_network(parts, problems);
  check_size(parts, problems);
  if (!problems.text().empty()) throw_error("cluster {:?}: {}", parts.name, problems.text());
  return std::shared_ptr<const Cluster>(new Cluster(std::move(parts)));
}

Cluster::Cluster(ClusterParts parts) noexcept : parts_(std::move(parts)), chips_per_slice_(1), chips_per_host_(1) {
  for (const int size : parts_.inside.dims) chips_per_slice_ *= size;
  for (const int size : parts_.host_shape) chips_per_host_ *= size;
}

std::optional<int64_t> Cluster::device_memory_bytes() const noexcept {
  if (!parts_.chip.memory_bytes) return std::nullopt;
  return static_cast<int64_t>(parts_.chip.memory_bytes->value) / parts_.chip.devices_per_chip;
}

ClusterPlace Cluster::place_of(int64_t id) const noexcept {
  const int64_t cores = parts_.chip.devices_per_chip;
  ClusterPlace place;
  place.core_on_chip = static_cast<int>(id % cores);
  const int64_t chip = id / cores;
  place.slice = chip / chips_per_slice_;
  place.chip = chip % chips_per_slice_;
  int64_t rest = place.chip;
  int64_t host = 0;
  int64_t hosts = 1;
  int64_t in_host = 0;
  int64_t so_far = 1;
  for (size_t a = 0; a < parts_.inside.dims.size(); ++a) {
    const int64_t size = parts_.inside.dims[a];
    const int64_t of_host = parts_.host_shape[a];
    const int64_t at = rest % size;
    rest /= size;
    place.coords[a] = static_cast<int>(at);
    host += at / of_host * hosts;
    hosts *= size / of_host;
    in_host += at % of_host * so_far;
    so_far *= of_host;
  }
  place.process = place.slice * hosts_per_slice() + host;
  place.local_id = in_host * cores + place.core_on_chip;
  return place;
}

const SourcedNumber& Cluster::link_bandwidth() const {
  return known(parts_.inside.bandwidth, *this, "bandwidth inside a slice", "`bandwidth` (bytes/s, one way)");
}

const SourcedNumber& Cluster::link_latency() const {
  return known(parts_.inside.latency, *this, "latency inside a slice", "`latency` (seconds)");
}

const SourcedNumber& Cluster::network_bandwidth() const {
  return known(parts_.between.bandwidth, *this, "bandwidth between slices",
               "`network_bandwidth` (bytes/s of each chip, one way)");
}

const SourcedNumber& Cluster::network_latency() const {
  return known(parts_.between.latency, *this, "latency between slices", "`network_latency` (seconds)");
}

}  // namespace artifex_devices
