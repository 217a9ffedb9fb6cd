// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "artifex_devices/array/array.h"
#include "artifex_devices/array/host_view.h"
#include "artifex_devices/transfer/joint_copies.h"
#include "artifex_devices/transfer/reshard.h"
#include "artifex_devices/transfer/transfer_guard.h"

namespace artifex_devices {

/// Where a value is to be placed, and how it is stored there.
struct PlacementTarget {
  ShardingRef sharding = nullptr;  // null: the sharding that an Array has already
  bool committed = false;
  std::shared_ptr<const Layout> layout = nullptr;        // null: the layout of an Array, else row-major
  std::optional<MemoryKind> memory_kind = std::nullopt;  // without a sharding: the same devices, in this kind of memory
};

/// When a placement deletes its source. With kLater the caller deletes it, so the result must not be the source itself.
enum class Donation : uint8_t { kNone, kNow, kLater };

struct PlacementOptions {
  Donation donation = Donation::kNone;
  std::optional<bool> may_alias = std::nullopt;  // true: share the source's memory where possible; false: never
  bool is_shareable = false;                     // may_alias would share the source, for the record of transfers
  bool is_explicit = true;                       // the user asked for this transfer by name
  TransferGuards guards = {};
  Transport* transport = nullptr;          // to other processes
  std::string_view source_type = "array";  // of a host value, for messages
  JointCopies* joint = nullptr;            // copies of host values that are not brief are added to it

  /// Throws InvalidArgument where the source is to be both deleted and shared.
  void check() const;
};

/// Strategies to move an Array to its new placement.
enum class PlacementStrategy : uint8_t {
  kUnchanged,        // the result is the source
  kReshard,          // reshard() within this process
  kExchange,         // reshard between processes (CrossReshard)
  kThroughHost,      // device_get and device_put: two worlds share no memory
  kValuePerProcess,  // the same, to devices of several processes: each process must have the same value
};

struct ArrayPlacement {
  PlacementStrategy strategy = PlacementStrategy::kUnchanged;
  ShardingRef sharding;
  ReshardOptions options;  // its layout is always set
};

/// Decides how `source` gets to `target`, after all checks and guards; nothing has moved when it returns. Throws
/// DeletedArray, TransferGuardError, and InvalidArgument for a layout that does not fit.
ArrayPlacement plan_placement(const Array& source, const PlacementTarget& target, const PlacementOptions& options);

/// Executes plan_placement(); `options.transport` carries the data of other processes. Example: an Array that
/// already has the target's sharding is returned itself.
ArrayRef place(const ArrayRef& source, const PlacementTarget& target, const PlacementOptions& options = {});

/// Copies host data to `target`, whose sharding must be set, or shows its memory where `may_alias` is true, the memory
/// has an owner and can_alias() is true. On devices of several processes all of them must give the same value: with a
/// transport that is checked. Throws TransferGuardError, InvalidArgument, and as device_put() and Transport.
ArrayRef place(const HostView& source, const PlacementTarget& target, const PlacementOptions& options = {});

/// Throws InvalidArgument for a sharding that no data can be placed with: on an AbstractMesh, or with an UNCONSTRAINED
/// dimension.
void check_placeable(const Sharding& sharding, std::string_view operation);

/// Whether an Array can show the memory of `source` itself: it is row-major and the sharding has one buffer that holds
/// all of it, in host memory that need not be locked.
bool can_alias(const HostView& source, const Sharding& sharding);

/// Whether each device of `target` already holds its part of `source`, in the same kind of memory.
bool is_already_placed(const Array& source, const Sharding& target);

}  // namespace artifex_devices
