#include "runtime/command/report_charts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/command/text.h"
#include "runtime/settings.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

constexpr double kLeft = 66, kRight = 14;

std::string C(double value) { return Coordinate(value); }

Markup::Attributes Line(const char* css, double x1, double y1, double x2, double y2) {
  return {{"class", css}, {"x1", C(x1)}, {"y1", C(y1)}, {"x2", C(x2)}, {"y2", C(y2)}};
}

Markup::Attributes Rect(const std::string& css, double x, double y, double width, double height) {
  return {{"class", css}, {"x", C(x)}, {"y", C(y)}, {"width", C(width)}, {"height", C(height)}};
}

Markup::Attributes At(const char* css, double x, double y, const char* anchor) {
  return {{"class", css}, {"x", C(x)}, {"y", C(y)}, {"text-anchor", anchor}};
}

Markup OpenSvg(const std::string& title, double width, double height) {
  Markup svg;
  svg.Open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                   {"viewBox", "0 0 " + C(width) + " " + C(height)},
                   {"role", "img"},
                   {"aria-label", title}});
  return svg;
}

// 1, 2 or 5 times a power of ten: about `most` of them reach from 0 to `range`.
double NiceStep(double range, int most) {
  if (range <= 0) return 1;
  const double rough = range / most, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

// The same of milliseconds.
int64_t NiceTime(int64_t range_ms, int most) {
  constexpr int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;
  constexpr std::array kSteps = {kSecond,  2 * kSecond, 5 * kSecond, 10 * kSecond, 30 * kSecond,
                                 kMinute,  2 * kMinute, 5 * kMinute, 10 * kMinute, 30 * kMinute,
                                 kHour,    2 * kHour,   6 * kHour,   12 * kHour,   kDay,
                                 2 * kDay, 7 * kDay};
  for (const int64_t step : kSteps) {
    if (step * most >= range_ms) return step;
  }
  return (range_ms / most / kDay + 1) * kDay;
}

// "40 s", "1 min 20 s", "2 h 5 min", "3 d": since the begin.
std::string Elapsed(int64_t ms) {
  const int64_t s = ms / 1000;
  const auto two = [](int64_t whole, const char* unit, int64_t rest, const char* rest_unit) {
    std::string text = std::to_string(whole);
    text.append(" ").append(unit);
    if (rest > 0) text.append(" ").append(std::to_string(rest)).append(" ").append(rest_unit);
    return text;
  };
  if (s < 60) return two(s, "s", 0, "");
  if (s < 3600) return two(s / 60, "min", s % 60, "s");
  if (s < 2 * 86400) return two(s / 3600, "h", s % 3600 / 60, "min");
  return two(s / 86400, "d", s % 86400 / 3600, "h");
}

class Timeline {
 public:
  explicit Timeline(const Chronicle& chronicle) : chronicle_(chronicle) {
    for (const LifeCourse& life : chronicle.lives) {
      if (begin_ms_ == 0) begin_ms_ = life.began_ms;
      begin_ms_ = std::min(begin_ms_, life.began_ms);
      end_ms_ = std::max(end_ms_, life.last_ms);
      most_steps_ = std::max(most_steps_, static_cast<double>(life.last_step));
    }
    end_ms_ = std::max(end_ms_, begin_ms_ + 1000);
    most_steps_ = std::max(most_steps_ * 1.06, 1.0);
  }

  Markup Draw() {
    svg_ = OpenSvg("Steps over time, life by life", kWidth, kHeight);
    Axes();
    for (const LifeCourse& life : chronicle_.lives) Band(life);
    for (size_t i = 0; i < chronicle_.lives.size(); ++i) Course(i);
    for (const SaveCourse& save : chronicle_.saves) Save(save);
    svg_.Close();
    return std::move(svg_);
  }

 private:
  static constexpr double kWidth = 1080, kHeight = 360, kTop = 40, kBottom = 300, kLane = 316;

  double X(int64_t time_ms) const {
    return kLeft + (kWidth - kLeft - kRight) * static_cast<double>(time_ms - begin_ms_) /
                       static_cast<double>(end_ms_ - begin_ms_);
  }
  double Y(int64_t step) const {
    return kBottom - (kBottom - kTop) * static_cast<double>(step) / most_steps_;
  }

  void Axes() {
    const double step = std::max(1.0, NiceStep(most_steps_, 5));
    for (double value = 0; value <= most_steps_; value += step) {
      const double y = Y(static_cast<int64_t>(value));
      svg_.Empty("line", Line("grid", kLeft, y, kWidth - kRight, y));
      svg_.Element("text", Grouped(std::llround(value)), At("tick", kLeft - 8, y + 4, "end"));
    }
    svg_.Element("text", "step", At("tick", kLeft - 8, kTop - 14, "end"));
    svg_.Element("text", "saves", At("tick", kLeft - 8, kLane + 4, "end"));
    const int64_t span = end_ms_ - begin_ms_, every = NiceTime(span, 10);
    for (int64_t at = 0; at <= span; at += every) {
      const double x = X(begin_ms_ + at);
      svg_.Empty("line", Line("grid", x, kBottom, x, kBottom + 5));
      svg_.Element("text", Elapsed(at), At("tick", x, kLane + 32, "middle"));
    }
  }

  void Band(const LifeCourse& life) {
    const double x = X(life.began_ms), width = std::max(X(life.last_ms) - x, 1.5);
    if (x + width < band_end_ + 0.7) return;  // in the same pixel as the one before
    band_end_ = x + width;
    const std::string kind = ClassOfEnd(life.story.end);
    const std::string tip = "life " + std::to_string(life.story.epoch) + ", " +
                            Count(static_cast<size_t>(life.story.ranks), "rank") + ", " +
                            FormatDuration(std::chrono::milliseconds(life.last_ms - life.began_ms)) +
                            ", steps " + std::to_string(life.first_step) + " to " +
                            std::to_string(life.last_step) + ": " + life.story.end;
    svg_.Shape("rect", tip, Rect("band " + kind, x, kTop - 8, width, kBottom - kTop + 8));
    svg_.Shape("rect", tip, Rect("head " + kind, x, kTop - 12, width, 5));
    const std::string name = std::to_string(life.story.epoch);
    const std::string whole = "life " + name + " · " + Count(static_cast<size_t>(life.story.ranks), "rank");
    constexpr double kPerLetter = 6.6;
    if (width > kPerLetter * static_cast<double>(whole.size())) {
      svg_.Element("text", whole, At("life", x, kTop - 18, "start"));
    } else if (width > kPerLetter * static_cast<double>(name.size()) + 4) {
      svg_.Element("text", name, At("life", x, kTop - 18, "start"));
    }
  }

  void Course(size_t position) {
    const LifeCourse& life = chronicle_.lives[position];
    if (!life.restored) return;
    std::string points;
    double last_x = -1;
    for (const Mark& mark : life.marks) {
      const double x = X(mark.time_ms);
      if (x < last_x + 0.9 && &mark != &life.marks.back()) continue;
      last_x = x;
      points.append(C(x)).append(",").append(C(Y(mark.step))).append(" ");
    }
    const bool same_step_to_the_end = life.last_is_known || life.story.end == "finished";
    if (same_step_to_the_end) points.append(C(X(life.last_ms))).append(",").append(C(Y(life.last_step)));
    svg_.Empty("polyline", {{"class", "course"}, {"points", points}});
    if (life.lost_steps == 0) return;
    for (size_t next = position + 1; next < chronicle_.lives.size(); ++next) {
      const LifeCourse& after = chronicle_.lives[next];
      if (!after.restored) continue;
      const double x = X(after.marks.front().time_ms), from = Y(life.last_step), to = Y(after.first_step);
      if (x < lost_end_ + 0.9) return;
      lost_end_ = x;
      const std::string text = (life.last_is_known ? "" : "at least ") + Grouped(life.lost_steps) +
                               (life.lost_steps == 1 ? " step" : " steps") + " lost";
      svg_.Empty("line", Line("lost", X(life.last_ms), from, x, from));
      svg_.Shape("line", text, Line("lost", x, from, x, std::max(to, from + 1.5)));
      constexpr double kPerLetter = 7;
      if (x - kPerLetter * static_cast<double>(text.size()) > last_label_) {
        svg_.Element("text", text, At("losses", x, from - 7, "end"));
        last_label_ = x;
      }
      return;
    }
  }

  void Save(const SaveCourse& save) {
    const int64_t time = save.staged_ms != 0  ? save.staged_ms
                         : save.ended_ms != 0 ? save.ended_ms
                                              : save.asked_ms;
    if (time == 0) return;
    const double x = X(time);
    double& last = save.durable() ? saved_end_ : dropped_end_;
    if (x < last + (save.durable() ? 2 : 4)) return;
    last = x;
    const std::string trigger =
        save.trigger + (save.durable()     ? ", durable after " + FormatDuration(Nanoseconds(save.durable_ns))
                        : save.why.empty() ? ", under way"
                                           : ", given up: " + save.why);
    const std::string tip = "step " + std::to_string(save.step) + ", " + trigger;
    if (save.durable()) {
      const bool last_one = save.trigger == "preempt" || save.trigger == "timelimit" || save.trigger == "end";
      svg_.Shape("rect", tip, Rect(last_one ? "saved last" : "saved", x - 1, kLane - 6, 2, 12));
      if (x < ring_ + 8) return;  // rings would hide the line
      ring_ = x;
      svg_.Shape("circle", tip, {{"class", "saved"}, {"cx", C(x)}, {"cy", C(Y(save.step))}, {"r", "3"}});
    } else {
      svg_.Shape("path", tip,
                 {{"class", save.why.empty() ? "underway" : "dropped"},
                  {"d", "M" + C(x - 4) + " " + C(kLane - 4) + "l8 8m0 -8l-8 8"}});
    }
  }

  const Chronicle& chronicle_;
  int64_t begin_ms_ = 0, end_ms_ = 0;
  double most_steps_ = 0;
  double ring_ = -10, band_end_ = -10, lost_end_ = -10, last_label_ = 0, saved_end_ = -10,
         dropped_end_ = -10;  // of what was drawn last
  Markup svg_;
};

// The quantile of some of the values, which it sorts.
double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace

std::string Grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += "\u00a0";
    out += digits[i];
  }
  return out;
}

std::string ClassOfEnd(const std::string& end) {
  if (end == "finished" || end == "finalized") return "good";
  if (end == "killed" || end == "rank lost") return "bad";
  return end == "open" ? "open" : "told";
}

Markup DrawTimeline(const Chronicle& chronicle) { return Timeline(chronicle).Draw(); }

Markup DrawBars(const BarChart& chart) {
  constexpr double kWidth = 520, kHeight = 190, kTop = 12, kBottom = 164;
  constexpr size_t kMostBars = 150;
  const size_t saves = chart.parts.front().values.size();
  const size_t per_bar = std::max<size_t>(1, (saves + kMostBars - 1) / kMostBars);
  const size_t bars = (saves + per_bar - 1) / per_bar;
  std::vector<double> total(saves);
  for (const BarChart::Part& part : chart.parts) {
    for (size_t i = 0; i < saves; ++i) total[i] += part.values[i];
  }
  const double most = std::max(1e-9, *std::max_element(total.begin(), total.end()) * 1.05);
  const auto y = [&](double value) { return kBottom - (kBottom - kTop) * value / most; };

  Markup svg = OpenSvg(chart.title, kWidth, kHeight);
  for (const double part : {0.0, 0.5, 1.0}) {
    const double value = part * most / 1.05;
    svg.Empty("line", Line("grid", kLeft, y(value), kWidth - kRight, y(value)));
    svg.Element("text", part == 0 ? "0" : chart.format(value), At("tick", kLeft - 8, y(value) + 4, "end"));
  }
  const double pitch = (kWidth - kLeft - kRight) / static_cast<double>(std::max<size_t>(bars, 8));
  const double width = std::min(pitch * 0.78, 26.0);
  for (size_t bar = 0; bar < bars; ++bar) {
    const size_t first = bar * per_bar, last = std::min(first + per_bar, saves);
    const double x = kLeft + pitch * (static_cast<double>(bar) + 0.5) - width / 2;
    const auto slice = [&](const std::vector<double>& values) {
      return std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(first),
                                 values.begin() + static_cast<std::ptrdiff_t>(last));
    };
    const double greatest = Quantile(slice(total), 1);
    const std::string tip = (last - first == 1 ? "save " + std::to_string(last)
                                               : "saves " + std::to_string(first + 1) + " to " +
                                                     std::to_string(last) + ", at most") +
                            ": " + chart.format(greatest);
    if (last - first > 1) svg.Shape("rect", tip, Rect("most", x, y(greatest), width, y(0) - y(greatest)));
    double base = 0;
    for (const BarChart::Part& part : chart.parts) {
      const double value = Quantile(slice(part.values), 0.5);
      svg.Shape("rect", tip,
                Rect(part.css, x, y(base + value), width, std::max(y(base) - y(base + value), 0.5)));
      base += value;
    }
  }
  double last_line = -10;
  for (const size_t begin : chart.life_begins) {
    const double x = kLeft + pitch * static_cast<double>(begin) / static_cast<double>(per_bar);
    if (x < last_line + 3) continue;
    last_line = x;
    svg.Empty("line", Line("border", x, kTop, x, kBottom + 6));
  }
  svg.Element("text", "save 1", At("tick", kLeft, kBottom + 20, "start"));
  if (saves > 1)
    svg.Element(
        "text", "save " + std::to_string(saves),
        At("tick", kLeft + pitch * static_cast<double>(bars), kBottom + 20, bars < 4 ? "start" : "end"));
  svg.Close();
  return svg;
}

}  // namespace cairn
