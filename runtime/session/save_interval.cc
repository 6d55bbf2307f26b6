#include "runtime/session/save_interval.h"

#include <algorithm>
#include <cmath>

namespace cairn {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

Nanoseconds DalyInterval(Nanoseconds cost, Nanoseconds mtbf) {
  const auto d = static_cast<double>(cost.count()), m = static_cast<double>(mtbf.count());
  if (d >= 2 * m) return mtbf;
  const double w = std::sqrt(2 * d * m) * (1 + std::sqrt(d / (2 * m)) / 3 + d / (18 * m)) - d;
  return Nanoseconds(std::llround(w));
}

void SaveInterval::Start(int64_t count) {
  if (settings_.interval_steps) next_count_ = count + *settings_.interval_steps;
}

void SaveInterval::Learn(const SaveCosts& costs, std::optional<Nanoseconds> write_time) {
  if (costs.saves() > 0) costs_ = costs;
  write_time_ = write_time.value_or(Nanoseconds(0));
}

Nanoseconds SaveInterval::Chosen() const {
  if (!costs_) return kFirst;
  const Nanoseconds best = std::clamp(DalyInterval(costs_->cost(), settings_.mtbf), kLeast, kMost);
  return std::max(best, write_time_);
}

std::optional<milliseconds> SaveInterval::Wait(const agreement::Progress& progress) const {
  if (!(settings_.on & kTriggerInterval)) return std::nullopt;
  if (settings_.interval_steps) {
    const int64_t left = next_count_ - progress.count;
    const Nanoseconds eta = progress.period * std::max<int64_t>(left, 0) / 2;
    return std::clamp(duration_cast<milliseconds>(eta), milliseconds(1), milliseconds(1000));
  }
  if (settings_.interval) return duration_cast<milliseconds>(*settings_.interval);
  if (settings_.interval_auto) return duration_cast<milliseconds>(Chosen());
  return std::nullopt;
}

bool SaveInterval::Due(const agreement::Progress& progress) {
  if (!settings_.interval_steps) return true;
  const int64_t lead = 2 + (progress.period.count() > 0 ? milliseconds(2) / progress.period : 0);
  if (progress.count + lead < next_count_) return false;
  while (next_count_ <= progress.count + lead) next_count_ += *settings_.interval_steps;
  return true;
}

std::optional<Nanoseconds> SaveInterval::Every(const agreement::Progress& progress) const {
  if (!(settings_.on & kTriggerInterval)) return std::nullopt;
  if (!settings_.interval_steps) {
    if (settings_.interval) return settings_.interval;
    return settings_.interval_auto ? std::optional<Nanoseconds>(Chosen()) : std::nullopt;
  }
  if (progress.period.count() <= 0) return std::nullopt;
  return progress.period * *settings_.interval_steps;
}

std::string SaveInterval::Describe() const {
  if (!(settings_.on & kTriggerInterval)) return "never";
  if (settings_.interval_steps) return "every " + std::to_string(*settings_.interval_steps) + " steps";
  if (settings_.interval) return "every " + FormatDuration(*settings_.interval);
  if (!settings_.interval_auto) return "never";
  const std::string every = "every " + FormatDuration(Chosen()) + " (auto: ";
  if (!costs_) return every + "no save was measured yet)";
  const auto slow_down = costs_->slow_down();
  return every + "a save costs " + FormatDuration(costs_->cost()) +
         (slow_down ? "" : ", not counting slower steps, which are not measured yet") +
         "; mean time between failures " + FormatDuration(settings_.mtbf) + ")";
}

}  // namespace cairn
