// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/cluster/accelerator_catalogue.h"

namespace artifex_devices {

/// A number and its source: an id of the catalogue's sources ("S5"), several of them ("S2 S5"), "measured",
/// "model" (derived from other numbers), "given" (by the caller), or the path of the file that has it.
struct SourcedNumber {
  double value = 0;
  std::string source;
  friend bool operator==(const SourcedNumber&, const SourcedNumber&) = default;
};

/// Kind of network between the chips of one slice.
enum class NetworkKind : uint8_t {
  kTorus,     // links to neighbours along each axis
  kSwitch,    // every chip to every other at its full egress
  kFullMesh,  // one link for each pair
};
std::string_view to_string(NetworkKind kind) noexcept;  // "torus", "switch", "full mesh"

/// One chip of a cluster. Unknown values are nullopt, never 0.
struct ClusterChip {
  std::string name;         // the catalogue's, such as "TPU v5p", or a name of the file's
  std::string platform;     // of its devices: "tpu", "gpu" or "cpu"
  std::string device_kind;  // name that its devices report
  int devices_per_chip = 1;
  std::array<std::optional<SourcedNumber>, kMatmulFormatCount> peak_flops;  // FLOP/s of the chip, dense
  std::optional<SourcedNumber> memory_bytes;
  std::optional<SourcedNumber> memory_bandwidth;  // bytes/s
  std::optional<SourcedNumber> host_bandwidth;    // bytes/s between host and chip, one way (PCIe)

  const std::optional<SourcedNumber>& peak(MatmulFormat format) const noexcept {
    return peak_flops[static_cast<size_t>(format)];
  }
  friend bool operator==(const ClusterChip&, const ClusterChip&) = default;
};

/// The network inside one slice (a TPU slice, an NVLink domain, a node).
struct SliceNetwork {
  NetworkKind kind = NetworkKind::kSwitch;
  std::string link_kind;    // "ICI", "NVLink 4", "PCIe", ...; "" where not known
  std::vector<int> dims;    // torus: chips along x, y, z (1 to 3 axes); else one number, the chips of the slice
  std::vector<bool> wraps;  // torus: for each axis whether its ends are joined; else empty
  std::optional<SourcedNumber>
      bandwidth;  // bytes/s one way. Torus: of one link. Switch: out of a chip. Full mesh: of a pair's link.
  std::optional<SourcedNumber> latency;  // seconds: of a hop in a torus, else of a step from chip to chip

  friend bool operator==(const SliceNetwork&, const SliceNetwork&) = default;
};

/// The network between slices: through the hosts' NICs.
struct NetworkBetween {
  std::optional<SourcedNumber> bandwidth;  // bytes/s of each chip, one way; the chips of a host share the host's
  std::optional<SourcedNumber> latency;    // seconds of a step
  friend bool operator==(const NetworkBetween&, const NetworkBetween&) = default;
};

/// Position of one device of a cluster.
struct ClusterPlace {
  int64_t slice = 0;
  int64_t process = 0;          // of its host; counts on over slices
  int64_t chip = 0;             // in its slice: x fastest, then y, then z
  std::array<int, 3> coords{};  // of the chip; {chip, 0, 0} without a torus
  int core_on_chip = 0;         // 0 to devices_per_chip - 1
  int64_t local_id = 0;         // among the devices of its process
  friend bool operator==(const ClusterPlace&, const ClusterPlace&) = default;
};

/// Parts of a Cluster.
struct ClusterParts {
  std::string name;
  ClusterChip chip;
  SliceNetwork inside;
  int64_t slices = 1;
  NetworkBetween between;                    // of no meaning for one slice
  std::vector<int> host_shape;               // chips of a host along each of inside.dims, each a divisor of the slice's
  std::string host_source;                   // of host_shape
  std::optional<SourcedNumber> host_memory;  // bytes of a host
  std::vector<std::string> notes;            // assumptions, and contradictions between sources
  friend bool operator==(const ClusterParts&, const ClusterParts&) = default;
};

/// A description of chips to plan with, for machines that you do not own: an immutable value of a few hundred bytes.
/// Devices are numbered slice by slice, in a slice chip by chip with x fastest, on a chip core by core; the place of
/// device i is computed. Thread-safe.
/// Example: 2 slices of 4x4x8 TPU v5p have 256 devices; device 130 is in slice 1 at (2, 0, 0), process 33: the second
/// host along x of 4 chips (2x2x1), as a slice has 2 * 2 * 8 hosts.
class Cluster {
 public:
  /// Checks the parts. Throws InvalidArgument naming all that is wrong: no chips, more than 2^24 devices, wraps or
  /// host_shape of another number of axes than dims, an axis that is not a multiple of its host's, figures that are not
  /// positive (latencies may be 0) and finite.
  static std::shared_ptr<const Cluster> make(ClusterParts parts);

  const std::string& name() const noexcept { return parts_.name; }
  const ClusterChip& chip() const noexcept { return parts_.chip; }
  const SliceNetwork& inside() const noexcept { return parts_.inside; }
  const NetworkBetween& between() const noexcept { return parts_.between; }
  const ClusterParts& parts() const noexcept { return parts_; }

  int64_t slices() const noexcept { return parts_.slices; }
  int64_t chips_per_slice() const noexcept { return chips_per_slice_; }
  int64_t chips_per_host() const noexcept { return chips_per_host_; }
  int64_t hosts_per_slice() const noexcept { return chips_per_slice_ / chips_per_host_; }
  int64_t chip_count() const noexcept { return chips_per_slice_ * parts_.slices; }
  int64_t process_count() const noexcept { return hosts_per_slice() * parts_.slices; }
  int64_t devices_per_slice() const noexcept { return chips_per_slice_ * parts_.chip.devices_per_chip; }
  int64_t device_count() const noexcept { return devices_per_slice() * parts_.slices; }
  /// Bytes of one device's memory: the chip's, shared out among its devices; nothing where not known.
  std::optional<int64_t> device_memory_bytes() const noexcept;

  /// Where device `id` (0 to device_count() - 1) is.
  ClusterPlace place_of(int64_t id) const noexcept;
  /// The device at a place; only slice, chip and core_on_chip of it count.
  int64_t device_at(int64_t slice, int64_t chip, int core_on_chip) const noexcept {
    return (slice * chips_per_slice_ + chip) * parts_.chip.devices_per_chip + core_on_chip;
  }

  /// The rates that cost models need. Each function throws Unavailable if its rate is unknown; the message names the
  /// rate, the cluster and the argument that sets it.
  const SourcedNumber& link_bandwidth() const;     // inside().bandwidth
  const SourcedNumber& link_latency() const;       // inside().latency
  const SourcedNumber& network_bandwidth() const;  // between().bandwidth
  const SourcedNumber& network_latency() const;    // between().latency

  friend bool operator==(const Cluster& a, const Cluster& b) { return a.parts_ == b.parts_; }

 private:
  explicit Cluster(ClusterParts parts) noexcept;
  ClusterParts parts_;
  int64_t chips_per_slice_ = 0;
  int64_t chips_per_host_ = 0;
};

using ClusterRef = std::shared_ptr<const Cluster>;

}  // namespace artifex_devices
