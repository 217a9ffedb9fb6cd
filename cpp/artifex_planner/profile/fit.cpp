// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/profile/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/calibration/relative_fit.h"
#include "artifex_planner/profile/overlap.h"

namespace artifex_devices::planner {
namespace {

using Factors = std::vector<Factor>;

constexpr double kLeastFactor = 0.01;
constexpr double kMostScale = 1e4;  // of a factor
constexpr int kHalvings = 100;
constexpr double kDifference = 1e-4;  // relative, of finite differences
constexpr double kPull = 1e-4;        // weight that keeps a factor near its value if the messages do not determine it
constexpr double kHold = 1e3;         // weight that keeps a factor from changing
constexpr int kMessageRounds = 20;
constexpr double kNamedError = 0.05;  // of a kind of message that the fitted factors do not explain
constexpr double kSeenPart = 1e-6;    // part of the messages below which a factor does not count

double& number_of(Efficiency& efficiency, Factor factor) {
  return efficiency.factors[static_cast<size_t>(factor)].value;
}

Efficiency scaled(Efficiency efficiency, const Factors& factors, double by) {
  for (const Factor factor : factors) {
    number_of(efficiency, factor) = std::clamp(number_of(efficiency, factor) * by, kLeastFactor, 1.0);
  }
  return efficiency;
}

/// Fits factors in turn, and notes each factor that it cannot fit.
class Fitter {
 public:
  Fitter(KindPricer& pricer, const ProfileParts& parts, const Efficiency& start, const std::string& source)
      : pricer_(pricer), measured_(parts.busy), source_(source) {
    fit_.efficiency = start;
    fit_.before = pricer.seconds(start).kinds;
    if (at(measured_, ProfileKind::kAllToAll) <= 0 && at(fit_.before, ProfileKind::kAllToAll) > 0 &&
        at(fit_.before, ProfileKind::kSend) <= 0 && at(measured_, ProfileKind::kSend) > 0) {
      std::swap(at(measured_, ProfileKind::kAllToAll), at(measured_, ProfileKind::kSend));
      sends_are_exchanges_ = true;
      note("send: {:.4g} s count as all_to_all, because libraries build it from sends; the plan has no other sends",
           at(measured_, ProfileKind::kAllToAll));
    }
    for (size_t i = 0; i < measured_.size(); ++i) note_difference(static_cast<ProfileKind>(i));
  }

  /// Scales factors until the kinds take the measured seconds.
  void fit(std::initializer_list<ProfileKind> kinds, const Factors& factors) {
    double target = 0;
    for (const ProfileKind kind : kinds) target += at(measured_, kind);
    const auto expected = [&](const Efficiency& efficiency) {
      const KindSeconds found = pricer_.seconds(efficiency);
      double sum = 0;
      for (const ProfileKind kind : kinds) sum += at(found.kinds, kind);
      return sum;
    };
    if (target <= 0 || expected(fit_.efficiency) <= 0) return;
    double low = 1 / kMostScale;
    double high = kMostScale;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = std::sqrt(low * high);
      (expected(scaled(fit_.efficiency, factors, middle)) > target ? low : high) = middle;
    }
    fit_.efficiency = scaled(fit_.efficiency, factors, std::sqrt(low * high));
    const double reached = expected(fit_.efficiency);
    if (std::abs(reached / target - 1) > 1e-3) {
      note("{}: {:.4g} s measured, {:.4g} s with the {} factor: {}", to_string(*kinds.begin()), target, reached,
           reached > target ? "largest" : "smallest",
           reached > target ? "parts of it may run inside other kernels, or the configuration differs"
                            : "the configuration may differ");
    }
    mark(factors);
  }

  void fit_messages();

  void set(Factor factor, double to) {
    number_of(fit_.efficiency, factor) = to;
    mark({factor});
  }

  template <typename... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    fit_.notes.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  const PerKind<double>& measured() const noexcept { return measured_; }
  bool sends_are_exchanges() const noexcept { return sends_are_exchanges_; }
  ProfileFit take() && {
    fit_.after = pricer_.seconds(fit_.efficiency).kinds;
    return std::move(fit_);
  }
  const Efficiency& efficiency() const noexcept { return fit_.efficiency; }
  ProfileFit& result() noexcept { return fit_; }

 private:
  void mark(const Factors& factors) {
    for (const Factor factor : factors) {
      fit_.efficiency.factors[static_cast<size_t>(factor)].source = source_;
      if (std::ranges::count(fit_.fitted, factor) == 0) fit_.fitted.push_back(factor);
    }
  }
  void note_difference(ProfileKind kind) {
    const bool is_attention = kind == ProfileKind::kAttentionForward || kind == ProfileKind::kAttentionBackward ||
                              kind == ProfileKind::kAttention;
    if (kind == ProfileKind::kOther || (is_attention && kind != ProfileKind::kAttentionForward)) return;
    double expected = at(fit_.before, kind);
    double found = at(measured_, kind);
    if (is_attention) {
      expected += at(fit_.before, ProfileKind::kAttentionBackward);
      found += at(measured_, ProfileKind::kAttentionBackward) + at(measured_, ProfileKind::kAttention);
    }
    const std::string_view name = is_attention ? "attention" : to_string(kind);
    if (expected > 0 && found <= 0) {
      note("{}: no operation of the profile is of this kind, the plan has {:.4g} s; {}", name, expected,
           is_attention ? "without a fused kernel write flash_attention=False" : "its factors are not fitted");
    } else if (expected <= 0 && found > 0) {
      note("{}: the profile has {:.4g} s, the plan none; {}", name, found,
           is_attention ? "with a fused kernel write flash_attention=True" : "the configuration may differ");
    }
  }

  KindPricer& pricer_;
  PerKind<double> measured_;
  const std::string& source_;
  ProfileFit fit_;
  bool sends_are_exchanges_ = false;
};

/// Seconds of messages are terms that are proportional to 1 / fraction, and latencies.
void Fitter::fit_messages() {
  const std::array<Factors, 2> groups = {{{Factor::kLinkFraction, Factor::kNvls}, {Factor::kNetwork, Factor::kSharp}}};
  std::array<bool, 2> counts{};
  for (int round = 0; round < kMessageRounds; ++round) {
    const PerKind<double> now = pricer_.seconds(fit_.efficiency).kinds;
    std::array<PerKind<double>, 2> more{};
    for (size_t g = 0; g < groups.size(); ++g) {
      more[g] = pricer_.seconds(scaled(fit_.efficiency, groups[g], 1 / (1 + kDifference))).kinds;
    }
    std::vector<TimedTerms> samples;
    for (int i = 0; i < kMessageCount; ++i) {
      const ProfileKind kind = profile_kind(static_cast<MessageKind>(i));
      if (at(measured_, kind) <= 0 || at(now, kind) <= 0) continue;
      TimedTerms sample{{}, at(measured_, kind)};
      double rest = at(now, kind);
      for (size_t g = 0; g < groups.size(); ++g) {
        const double term = std::max((at(more[g], kind) - at(now, kind)) / kDifference, 0.0);
        counts[g] = counts[g] || term > kSeenPart * at(now, kind);
        sample.terms.push_back(term);
        rest -= term;
      }
      sample.terms.push_back(std::max(rest, 0.0));
      samples.push_back(std::move(sample));
    }
    if (samples.empty()) return;
    samples.push_back({{1, 0, 0}, 1, kPull});
    samples.push_back({{0, 1, 0}, 1, kPull});
    samples.push_back({{0, 0, 1}, 1, kHold});
    const std::vector<double> found = fit_relative(samples).coefficients;
    for (size_t g = 0; g < groups.size(); ++g) {
      if (counts[g]) fit_.efficiency = scaled(fit_.efficiency, groups[g], 1 / std::clamp(found[g], 0.01, 100.0));
    }
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    if (counts[g]) mark(groups[g]);
  }
  const PerKind<double> now = pricer_.seconds(fit_.efficiency).kinds;
  for (int i = 0; i < kMessageCount; ++i) {
    const ProfileKind kind = profile_kind(static_cast<MessageKind>(i));
    const double target = at(measured_, kind);
    if (target > 0 && at(now, kind) > 0 && std::abs(at(now, kind) / target - 1) > kNamedError) {
      note("{}: {:.4g} s measured, {:.4g} s with the fitted links and network", to_string(kind), target, at(now, kind));
    }
  }
}

}  // namespace

ProfileFit fit_profile(const TransformerShape& shape, const Cluster& cluster, const TrainingConfig& config,
                       int64_t stage, const ProfileParts& parts, const Efficiency& start, const std::string& source) {
  const std::string wrong = training_mistakes(shape, config, cluster.device_count());
  if (!wrong.empty()) throw_error("fit_profile: {}; correct the configuration", wrong);
  if (stage < 0 || stage >= config.pipeline) {
    throw_error("fit_profile: stage is {}; expected 0 to {}; choose the stage of the profiled device", stage,
                config.pipeline - 1);
  }
  KindPricer pricer(shape, cluster, config, stage);
  Fitter fitter(pricer, parts, start, source);
  fitter.fit({ProfileKind::kElementwise}, {Factor::kMemory});
  Factors products = {matmul_factor(config.format)};
  if (!config.flash_attention) {
    products.insert(products.end(), {Factor::kAttentionForward, Factor::kAttentionBackward});
  }
  fitter.fit({ProfileKind::kProducts}, products);
  if (config.flash_attention) {
    const auto found = [&](ProfileKind kind) { return at(parts.busy, kind) > 0; };
    if (!found(ProfileKind::kAttention) && found(ProfileKind::kAttentionForward) &&
        found(ProfileKind::kAttentionBackward)) {
      fitter.fit({ProfileKind::kAttentionForward}, {Factor::kAttentionForward});
      fitter.fit({ProfileKind::kAttentionBackward}, {Factor::kAttentionBackward});
    } else {
      fitter.fit({ProfileKind::kAttentionForward, ProfileKind::kAttentionBackward, ProfileKind::kAttention},
                 {Factor::kAttentionForward, Factor::kAttentionBackward});
    }
  }
  fitter.fit({ProfileKind::kHost}, {Factor::kHost});
  fitter.fit_messages();
  const KindSeconds fitted = pricer.seconds(fitter.efficiency());
  if (config.pipeline > 1) {
    fitter.note("idle: {:.4g} s, with the wait for other stages; layer_seconds and step_seconds are not fitted",
                parts.idle);
  } else {
    if (fitted.layer_passes > 0) fitter.set(Factor::kLayerSeconds, parts.idle / fitted.layer_passes);
    fitter.set(Factor::kStepSeconds, at(parts.alone, ProfileKind::kOther));
  }
  fitter.result().overlap = measured_overlap(fitted, parts, fitter.sends_are_exchanges(), fitter.result().notes);
  return std::move(fitter).take();
}

}  // namespace artifex_devices::planner
