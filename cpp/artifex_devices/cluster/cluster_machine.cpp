// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/cluster_machine.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

std::string ClusterMachine::to_xml() const {
  throw_error<Unavailable>(
      "to_xml: {} is a cluster, and its hosts are not known; expected a machine that hwloc loaded; write the XML "
      "on one of its hosts",
      source_);
}

}  // namespace artifex_devices
