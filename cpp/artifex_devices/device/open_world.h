// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "artifex_devices/device/client.h"

namespace artifex_devices {

/// A world that `simulate` has opened, and the world around it. The caller knows the innermost world of its context; in
/// Python, a context variable stores it. Not thread-safe except `is_left`; neither are the functions below.
struct OpenWorld : std::enable_shared_from_this<OpenWorld> {
  OpenWorld(ClientRef opened, std::shared_ptr<OpenWorld> around)
      : client(std::move(opened)), outer(std::move(around)) {}

  ClientRef client;
  std::shared_ptr<OpenWorld> outer;  // null: the base client is around it
  std::atomic<bool> is_left{false};  // it was left without an update of the context: it is skipped from then on
};

/// The first world from `world` outwards that was not left; null without one.
OpenWorld* skip_left(OpenWorld* world) noexcept;

/// Throws Unavailable unless `left` is the innermost world.
void check_innermost(const OpenWorld& left, const OpenWorld* innermost);

/// Returns the client of a platform for code in the world `innermost` (null: the base client), or null. It is the
/// world's client if its platform matches. For the CPU, it is else the nearest outer world of CPU devices, or the CPU
/// devices of this machine.
ClientRef client_of_platform(std::string_view platform, OpenWorld* innermost);

}  // namespace artifex_devices
