#include "runtime/session/deadline_plan.h"

#include <algorithm>

#include "runtime/settings.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using Decision = DeadlinePlan::Decision;
using UnderWay = DeadlineFacts::UnderWay;

std::string Spare(Nanoseconds left) {
  if (left.count() == 0) return "nothing to spare";
  return left.count() >= 0 ? FormatDuration(left) + " to spare" : FormatDuration(-left) + " too long";
}

std::string Stands(const std::optional<int64_t>& durable) {
  return durable ? "step " + std::to_string(*durable) + ", which is durable, stands"
                 : "there is no checkpoint";
}

std::string NewSave(const DeadlineFacts& f) {
  const auto all = f.times.all();
  if (!all) return "a new save; how long it takes was not measured yet";
  const std::string takes = FormatBytes(f.times.bytes) + " in about " + FormatDuration(*all) + ", ";
  if (*all <= f.left) return "a new save is durable, " + takes + Spare(f.left - *all);
  return "a new save is tried, though it takes " + takes + Spare(f.left - *all) + "; else " +
         Stands(f.durable);
}

}  // namespace

DeadlinePlan PlanDeadline(const DeadlineFacts& f) {
  const auto& write = f.times.write_time;
  const std::string left = FormatDuration(f.left) + " left: ";
  const std::string under_way = "step " + std::to_string(f.boundary) + ", whose save is under way, ";
  // The leader gives a boundary up when less than half of the write time is left.
  if (f.under_way != UnderWay::kWriting && f.times.way() > f.left - write.value_or(Nanoseconds(0)) / 2) {
    return {Decision::kKeep, left + "steps take " + FormatDuration(f.times.step) +
                                 ", so no boundary is expected in time; " + Stands(f.durable) +
                                 " unless one comes sooner"};
  }
  if (f.under_way == UnderWay::kNothing) return {Decision::kSave, left + NewSave(f)};
  if (!write) return {Decision::kFinishThenSave, left + under_way + "is finished first, then " + NewSave(f)};
  const Nanoseconds rest =
      f.under_way == UnderWay::kWriting ? std::max(*write - f.written, Nanoseconds(0)) : *f.times.all();
  const std::string finished =
      left + under_way +
      (rest.count() > 0 ? "is durable in about " + FormatDuration(rest) : "is durable at any moment");
  if (f.left - rest < f.times.way() + *write) {
    return {Decision::kFinish, finished + ", " + Spare(f.left - rest) + "; a newer one, about " +
                                   FormatDuration(*f.times.all()) + ", does not fit after it"};
  }
  const Nanoseconds both = rest + *f.times.all();
  return {Decision::kFinishThenSave,
          finished + ", then a newer one in about " + FormatDuration(both) + ", " + Spare(f.left - both)};
}

Nanoseconds HurriedPart(Nanoseconds elapsed, std::optional<Nanoseconds> write_time,
                        std::optional<Nanoseconds> hurried_write_time) {
  if (!write_time || !hurried_write_time || write_time->count() <= 0) return elapsed;
  const double part =
      static_cast<double>(hurried_write_time->count()) / static_cast<double>(write_time->count());
  return Nanoseconds(static_cast<int64_t>(static_cast<double>(elapsed.count()) * part));
}

Fit FitOf(Nanoseconds warning, const SaveTimes& times, std::optional<Nanoseconds> every) {
  const std::string leaves = "a preemption leaves " + FormatDuration(warning) + ": ";
  const auto all = times.all();
  if (!all)
    return {Fit::Class::kNotMeasured, leaves + "what that is enough for is known after the first save"};
  const std::string takes = FormatBytes(times.bytes) + " durable in about " + FormatDuration(*all);
  if (*all <= warning)
    return {Fit::Class::kFits, leaves + takes + ", so nothing is lost, " + Spare(warning - *all)};
  const std::string lost = every ? "up to about " + FormatDuration(*every + *all) + " of work"
                                 : "the steps since the newest checkpoint";
  return {Fit::Class::kTooLong, leaves + takes + ", which is too long, so " + lost + " would be lost"};
}

}  // namespace cairn
