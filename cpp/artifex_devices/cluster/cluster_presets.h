// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/cluster/cluster.h"

namespace artifex_devices {

/// The chip of a row of the catalogue.
ClusterChip chip_of(const Accelerator& row);

/// Whether each axis of a torus of these chips wraps, by the rule of the catalogue. "cube4": all axes, if all are
/// multiples of 4. "axis16": axes of length 16. Without a rule, no axis.
std::vector<bool> wraps_by_rule(const Accelerator& row, const std::vector<int>& dims);

/// Whether `tpu_cluster` knows a generation, or `gpu_cluster` a GPU.
bool is_tpu_generation(std::string_view generation);
bool is_catalogue_gpu(std::string_view gpu);

/// The short names of both, for messages: "v4, v5e, ..., h100, ...".
std::string preset_names();

/// The shapes, ascending, of the slices of a generation that have this number of chips; empty if none has.
std::vector<std::vector<int>> tpu_shapes(std::string_view generation, int64_t chips);

/// Bytes of memory of a host with this number of chips, if published. The catalogue has virtual machines with TPU v5e,
/// hosts with v6e, DGX A100, H100 and H200, the DGX-2, and a server with 8 MI300X.
std::optional<SourcedNumber> host_memory_of(std::string_view chip_name, int64_t chips_per_host);

/// `slices` TPU slices of a shape, from the catalogue. `generation` is "v4", "v5e", "v5p", "v6e" or "7x" (with or
/// without "TPU "). Throws InvalidArgument, which lists the known ones, for another generation, or for a shape that is
/// not offered. Shapes:
/// - v5e, v6e: 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16 (or the axes swapped); an axis of 16 wraps;
/// - v4, v5p, 7x: 2x2x1, 2x2x2, 2x2x4, 2x4x4, or three multiples of 4, ascending, within the pod; these
///   multiples wrap on all axes, the other shapes on none.
/// Sources: the catalogue's; a hop's 1e-6 s [S5]; the data-centre network's step as NCCL's model has it [S22].
/// `host_memory` replaces the catalogue's.
ClusterRef tpu_cluster(std::string_view generation, const std::vector<int>& shape, int64_t slices,
                       const std::optional<SourcedNumber>& host_memory = std::nullopt);

/// Values of a GPU's nodes that replace the catalogue's.
struct GpuOptions {
  std::optional<int> chips_per_node{};               // nullopt: the catalogue's domain
  std::optional<SourcedNumber> network_bandwidth{};  // of each chip, one way; nullopt: the catalogue's
  std::optional<SourcedNumber> host_memory{};        // bytes of each host; nullopt: the catalogue's
};

/// `nodes` NVLink domains (or nodes of MI300X, each pair joined) of one GPU of the catalogue, by its HardwareType
/// ("h100"), name, device kind or short name ("h200", "b200", "gb200", "mi300x", "v100-32gb", "a100-40gb"). Throws
/// InvalidArgument for another GPU (the message lists the known ones), for nodes below 1, and for a chip with an
/// unknown domain without `chips_per_node`.
ClusterRef gpu_cluster(std::string_view gpu, int64_t nodes, const GpuOptions& options);

/// Network of `count` GPUs that report the name `device_kind`: one node, or whole nodes if `count` exceeds the
/// catalogue's number per node. Null if the catalogue does not know it, or if `count` is not a number of whole nodes.
ClusterRef links_of_gpus(std::string_view device_kind, int64_t count);

}  // namespace artifex_devices
