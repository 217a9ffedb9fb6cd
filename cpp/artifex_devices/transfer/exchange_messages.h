// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "artifex_devices/transfer/cross_reshard.h"
#include "artifex_devices/transfer/transport.h"

namespace artifex_devices {

/// The memory of a client in which the host packs and unpacks `bytes`; of GPUs it is locked, which they copy at the
/// rate of the bus.
MemorySpace& packing_space(const Client& client, int64_t bytes);

/// Sends and receives all messages of a reshard that has begun, in at most half of `budget` bytes of packed messages
/// for each direction, but at least one message. `exchange` has begun.
void exchange_messages(const CrossReshard& reshard, Exchange& exchange, int64_t budget);

}  // namespace artifex_devices
