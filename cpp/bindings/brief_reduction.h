// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scheduler.h"

namespace artifex_devices::bindings {

/// Computes and delivers the results of a collective whose members all have arrived, if it combines so little data that
/// the calls of Python around it would take longer. Returns false without a change where Python must do it: other
/// collectives, more data, blocks that are not dense, an open trace, and errors, which Python finds again and reports.
/// `last` is the member that arrived last. Needs the GIL.
bool complete_brief_reduction(Participants& all, const KnownCollective& known, GroupId group, ParticipantId last);

}  // namespace artifex_devices::bindings
