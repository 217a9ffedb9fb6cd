// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace artifex_devices::planner {

/// Young's interval between checkpoints, sqrt(2 save mtbf) (Communications of the ACM 17, 1974). Example: 10 s and
/// 20,000 s have 632.5 s.
double young_interval(double mtbf, double save) noexcept;

/// Daly's interval of higher order, equation 37 (Future Generation Computer Systems 22, 2006). At least `save`.
double daly_interval(double mtbf, double save) noexcept;

/// The expected part of the time that is useful, with failures at random times, also while a checkpoint is saved or
/// restored (Daly 2006, equation 20): each failure takes `recovery` seconds and the work since the last checkpoint.
double useful_share(double mtbf, double save, double recovery, double interval) noexcept;

/// The interval with the largest useful_share().
double best_interval(double mtbf, double save, double recovery) noexcept;

}  // namespace artifex_devices::planner
