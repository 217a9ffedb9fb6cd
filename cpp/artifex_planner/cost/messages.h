// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/cost/efficiency.h"
#include "artifex_planner/cost/transfer_cost.h"

namespace artifex_devices::planner {

/// Kinds of links that messages between devices of a cluster use.
enum class ClusterLink : uint8_t { kSameDevice, kSameChip, kInside, kNetwork };
inline constexpr int kClusterLinks = 4;

/// Bytes from one device of a cluster to another.
struct DeviceMessage {
  int64_t from = 0;
  int64_t to = 0;
  int64_t bytes = 0;
};

/// Kind of link between two devices of the cluster.
ClusterLink link_between(const Cluster& cluster, int64_t from, int64_t to) noexcept;

using LinkBytes = std::array<int64_t, kClusterLinks>;  // by ClusterLink
LinkBytes bytes_by_link(const Cluster& cluster, const std::vector<DeviceMessage>& messages) noexcept;

struct MessagesPrice {
  TransferPrice price;
  LinkBytes bytes{};
};

/// Estimates the time of all messages at once. In a torus each takes its shortest path along x, then y, then z, and the
/// busiest link counts. Behind switches the busiest chip counts, in a full mesh the busiest pair, and between slices
/// the busiest host, because its chips share their parts of the network. Copies on one chip take no time in this model.
/// Rates are the part that messages of as many bytes as the busiest link has reach by `efficiency`. Each message is
/// sent with `times` its bytes. Throws Unavailable for rates that are needed and not known, InvalidArgument for ids
/// that are not devices, as errors of `operation`.
MessagesPrice price_messages(const Cluster& cluster, const std::vector<DeviceMessage>& messages,
                             const Efficiency& efficiency = ideal_efficiency(),
                             std::string_view operation = "plan_reshard", double times = 1);

/// For transfers between device memory and host memory: all messages also cross the links between hosts and chips, on
/// the side that `from_device` selects; the slower part counts. Throws Unavailable where their rate is not known.
void add_host_link(const Cluster& cluster, const std::vector<DeviceMessage>& messages, bool from_device,
                   const Efficiency& efficiency, TransferPrice* price);

/// Links into a chip: in a torus a chip at the end of an axis that does not wrap has fewer.
double links_into(const Cluster& cluster, int64_t chip) noexcept;
/// Whether all chips have as many links.
bool chips_have_equal_links(const Cluster& cluster) noexcept;

/// Lower bound of the seconds: the bytes that each chip and each slice must receive, over all links into it.
/// `chip_bytes` are by number of the chip, and may end before the last chip. `most_slice_bytes` is the maximum over
/// `slices`; with one slice the network's rates need not be known.
double least_seconds(const Cluster& cluster, const std::vector<double>& chip_bytes, double most_slice_bytes,
                     int64_t slices);
/// The same, with the bytes of each slice that has any of the devices.
double least_seconds(const Cluster& cluster, const std::vector<int64_t>& chip_bytes,
                     const std::vector<int64_t>& slice_bytes);

}  // namespace artifex_devices::planner
