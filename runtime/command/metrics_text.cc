#include "runtime/command/metrics_text.h"

#include <cstdio>
#include <functional>
#include <map>

#include "runtime/formats/utf8.h"

namespace cairn {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

std::string Number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  double read = 0;
  for (int digits = 1; digits < 17; ++digits) {  // the shortest that is this number
    char shorter[40];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, value);
    if (std::sscanf(shorter, "%lf", &read) == 1 && read == value) return shorter;
  }
  return text;
}

std::string Escaped(const std::string& text) {
  if (!IsUtf8(text)) return "?";
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

// Where a metric writes its values of one run.
class Sink {
 public:
  Sink(std::string name, std::string dir, std::string* out)
      : name_(std::move(name)), dir_(std::move(dir)), out_(out) {}

  void Add(double value, const Labels& labels = {}, const char* suffix = "") const {
    out_->append(name_).append(suffix).append("{dir=\"").append(Escaped(dir_)).append("\"");
    for (const auto& [label, text] : labels)
      out_->append(",").append(label).append("=\"").append(Escaped(text)).append("\"");
    out_->append("} ").append(Number(value)).append("\n");
  }

 private:
  const std::string name_, dir_;
  std::string* const out_;
};

double Seconds(int64_t ns) { return 1e-9 * static_cast<double>(ns); }

const SaveCourse* Newest(const Chronicle& chronicle) {
  for (auto save = chronicle.saves.rbegin(); save != chronicle.saves.rend(); ++save) {
    if (save->durable()) return &*save;
  }
  return nullptr;
}

const LifeCourse* NewestRestored(const Chronicle& chronicle) {
  for (auto life = chronicle.lives.rbegin(); life != chronicle.lives.rend(); ++life) {
    if (life->restored) return &*life;
  }
  return nullptr;
}

// Sum and number of one duration of all durable saves.
void Summarise(const RunMetrics& run, const Sink& sink, int64_t SaveCourse::*ns) {
  int64_t sum = 0, count = 0;
  for (const SaveCourse& save : run.chronicle.saves) {
    if (!save.durable() || save.rescued) continue;
    sum += save.*ns;
    ++count;
  }
  sink.Add(Seconds(sum), {}, "_sum");
  sink.Add(static_cast<double>(count), {}, "_count");
}

void OfNewest(const RunMetrics& run, const Sink& sink,
              const std::function<double(const SaveCourse&)>& value) {
  if (const SaveCourse* save = Newest(run.chronicle)) sink.Add(value(*save));
}

struct Metric {
  const char* name;
  const char* type;
  const char* help;
  void (*write)(const RunMetrics& run, const Sink& sink);
};

constexpr Metric kMetrics[] = {
    {"cairn_finished", "gauge", "Whether the run has come to its end.",
     [](const RunMetrics& run, const Sink& sink) { sink.Add(run.finished ? 1 : 0); }},
    {"cairn_lives_total", "counter",
     "Lives of the run, by how each ended; open is the one that may still run.",
     [](const RunMetrics& run, const Sink& sink) {
       std::map<std::string, int> lives;
       for (const LifeCourse& life : run.chronicle.lives) ++lives[life.story.end];
       for (const auto& [end, number] : lives) sink.Add(number, {{"end", end}});
     }},
    {"cairn_ranks", "gauge", "Ranks of the newest life.",
     [](const RunMetrics& run, const Sink& sink) {
       if (!run.chronicle.lives.empty())
         sink.Add(static_cast<double>(run.chronicle.lives.back().story.ranks));
     }},
    {"cairn_step", "gauge",
     "Steps that the run has come to, as far as it has said; it says so at saves and once a minute.",
     [](const RunMetrics& run, const Sink& sink) {
       if (const LifeCourse* life = NewestRestored(run.chronicle))
         sink.Add(static_cast<double>(life->last_step));
     }},
    {"cairn_steps_lost_total", "counter",
     "Steps that were lost with a life and made again by the next one, at least.",
     [](const RunMetrics& run, const Sink& sink) {
       int64_t lost = 0;
       for (const LifeCourse& life : run.chronicle.lives) lost += life.lost_steps;
       sink.Add(static_cast<double>(lost));
     }},
    {"cairn_last_event_timestamp_seconds", "gauge", "When the run has last said anything.",
     [](const RunMetrics& run, const Sink& sink) {
       if (!run.chronicle.lives.empty())
         sink.Add(1e-3 * static_cast<double>(run.chronicle.lives.back().last_ms));
     }},
    {"cairn_saves_total", "counter", "Saves, by what asked for them and what became of them.",
     [](const RunMetrics& run, const Sink& sink) {
       std::map<std::pair<std::string, std::string>, int> saves;
       for (const SaveCourse& save : run.chronicle.saves) {
         if (save.durable() || !save.why.empty())
           ++saves[{save.durable() ? "durable" : "given_up", save.trigger}];
       }
       for (const auto& [key, number] : saves)
         sink.Add(number, {{"result", key.first}, {"trigger", key.second}});
     }},
    {"cairn_save_stall_seconds", "summary", "How long the program stood still for a durable save.",
     [](const RunMetrics& run, const Sink& sink) { Summarise(run, sink, &SaveCourse::stall_ns); }},
    {"cairn_save_staged_seconds", "summary", "From the request until every rank computed again.",
     [](const RunMetrics& run, const Sink& sink) { Summarise(run, sink, &SaveCourse::wait_ns); }},
    {"cairn_save_durable_seconds", "summary", "From the request until the checkpoint was durable.",
     [](const RunMetrics& run, const Sink& sink) { Summarise(run, sink, &SaveCourse::durable_ns); }},
    {"cairn_saved_bytes_total", "counter", "Bytes of all checkpoints that were made durable.",
     [](const RunMetrics& run, const Sink& sink) {
       double bytes = 0;
       for (const SaveCourse& save : run.chronicle.saves) bytes += static_cast<double>(save.bytes);
       sink.Add(bytes);
     }},
    {"cairn_checkpoint_bytes", "gauge", "Size of the newest durable checkpoint.",
     [](const RunMetrics& run, const Sink& sink) {
       OfNewest(run, sink, [](const SaveCourse& save) { return static_cast<double>(save.bytes); });
     }},
    {"cairn_checkpoint_step", "gauge", "Step of the newest durable checkpoint.",
     [](const RunMetrics& run, const Sink& sink) {
       OfNewest(run, sink, [](const SaveCourse& save) { return static_cast<double>(save.step); });
     }},
    {"cairn_checkpoint_timestamp_seconds", "gauge", "When the newest checkpoint became durable.",
     [](const RunMetrics& run, const Sink& sink) {
       OfNewest(run, sink, [](const SaveCourse& save) { return 1e-3 * static_cast<double>(save.ended_ms); });
     }},
    {"cairn_restore_seconds", "summary", "How long lives took to load a checkpoint.",
     [](const RunMetrics& run, const Sink& sink) {
       int64_t sum = 0, count = 0;
       for (const LifeCourse& life : run.chronicle.lives) {
         sum += life.restore_ns;
         count += life.restore_ns > 0 ? 1 : 0;
       }
       sink.Add(Seconds(sum), {}, "_sum");
       sink.Add(static_cast<double>(count), {}, "_count");
     }},
    {"cairn_restore_read_bytes_total", "counter",
     "Bytes that lives read to load a checkpoint, by where they lay.",
     [](const RunMetrics& run, const Sink& sink) {
       double all = 0, near = 0;
       for (const LifeCourse& life : run.chronicle.lives) {
         all += static_cast<double>(life.read_bytes);
         near += static_cast<double>(life.near_bytes);
       }
       sink.Add(all - near, {{"source", "directory"}});
       sink.Add(near, {{"source", "memory"}});
     }},
};

}  // namespace

std::string WriteMetrics(const std::vector<RunMetrics>& runs) {
  std::string out;
  for (const Metric& metric : kMetrics) {
    out.append("# HELP ").append(metric.name).append(" ").append(metric.help).append("\n");
    out.append("# TYPE ").append(metric.name).append(" ").append(metric.type).append("\n");
    for (const RunMetrics& run : runs) metric.write(run, Sink(metric.name, run.dir, &out));
  }
  return out;
}

}  // namespace cairn
