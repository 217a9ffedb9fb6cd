// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/failures/interval.h"

#include <algorithm>
#include <cmath>

namespace artifex_devices::planner {

namespace {

constexpr int kGoldenSteps = 200;
constexpr double kGolden = 0.6180339887498949;

}  // namespace

double young_interval(double mtbf, double save) noexcept { return std::sqrt(2 * save * mtbf); }

double daly_interval(double mtbf, double save) noexcept {
  if (save >= 2 * mtbf) return std::max(mtbf, save);
  const double part = save / (2 * mtbf);
  return std::max(young_interval(mtbf, save) * (1 + std::sqrt(part) / 3 + part / 9) - save, save);
}

double useful_share(double mtbf, double save, double recovery, double interval) noexcept {
  // Seconds of `interval` seconds of work and one save: mtbf e^(recovery / mtbf) (e^((interval + save) / mtbf) - 1).
  const double seconds = mtbf * std::exp(recovery / mtbf) * std::expm1((interval + save) / mtbf);
  return interval / seconds;
}

double best_interval(double mtbf, double save, double recovery) noexcept {
  // The share has one maximum. Golden sections of the logarithm.
  double low = std::log(young_interval(mtbf, save)) - 5;
  double high = low + 10;
  const auto share = [&](double logarithm) { return useful_share(mtbf, save, recovery, std::exp(logarithm)); };
  for (int i = 0; i < kGoldenSteps && high - low > 1e-9; ++i) {
    const double width = kGolden * (high - low);
    if (share(high - width) > share(low + width)) {
      high = low + width;
    } else {
      low = high - width;
    }
  }
  return std::exp((low + high) / 2);
}

}  // namespace artifex_devices::planner
