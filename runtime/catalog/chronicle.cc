#include "runtime/catalog/chronicle.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/catalog/event.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

class Teller {
 public:
  void Add(const Json& line) {
    const auto epoch = line.at("epoch").get<uint32_t>();
    event_ = line.at("event").get<std::string>();
    if (epoch == 0) {
      if (event_ == "pruned") AddToSaves(line, epoch);  // by `cairn prune`
      return;
    }
    time_ms_ = ParseEventTime(line.at("time").get<std::string>()).value_or(0);
    LifeCourse& life = lives_[epoch];
    life.story.epoch = epoch;
    if (life.began_ms == 0) life.began_ms = time_ms_;
    life.last_ms = std::max(life.last_ms, time_ms_);
    AddToLife(line, &life);
    AddToSaves(line, epoch);
  }

  Chronicle Finish(const std::vector<LifeStory>& stories) {
    for (const LifeStory& story : stories) lives_[story.epoch].story = story;
    LifeCourse* before = nullptr;
    for (auto& [epoch, life] : lives_) {
      if (life.restored && before != nullptr)
        before->lost_steps = std::max<int64_t>(0, before->last_step - life.first_step);
      if (life.restored) before = &life;
    }
    Chronicle out;
    for (auto& [epoch, life] : lives_) out.lives.push_back(std::move(life));
    out.saves = std::move(saves_);
    return out;
  }

 private:
  void AddToLife(const Json& line, LifeCourse* life) {
    if (event_ == "restore") {
      life->restored = true;
      life->first_step = line.value("step", int64_t{0});
      life->saved_ranks = line.value("saved_world_size", int64_t{0});
      life->read_bytes = line.value("read_bytes", uint64_t{0});
      life->near_bytes = line.value("near_bytes", uint64_t{0});
      life->restore_ns = line.value("restore_ns", int64_t{0});
      life->last_step = life->first_step;
      life->marks = {{time_ms_, life->first_step}};
      return;
    }
    if (!life->restored) return;
    const bool of_life = event_ == "leaving" || event_ == "staged";  // others have the count beside a step
    const auto step = line.find(of_life ? "step" : "count");
    if (step == line.end()) return;
    const auto count = step->get<int64_t>();
    life->last_is_known = event_ == "end" || event_ == "leaving" || event_ == "gone" || event_ == "ending";
    if (count <= life->last_step) return;
    life->last_step = count;
    life->marks.push_back({time_ms_, count});
  }

  void AddToSaves(const Json& line, uint32_t epoch) {
    const auto text = [&](const char* name) { return line.value(name, std::string()); };
    const auto number = [&](const char* name) { return line.value(name, int64_t{0}); };
    if (event_ == "asked") {
      saves_.push_back({.epoch = epoch, .trigger = text("trigger"), .asked_ms = time_ms_});
      under_way_ = true;
    } else if (event_ == "staged" && UnderWay(epoch)) {
      saves_.back().step = number("step");
      saves_.back().staged_ms = time_ms_;
      saves_.back().wait_ns = number("wait_ns");
    } else if (event_ == "partner") {
      const auto held = std::find_if(saves_.rbegin(), saves_.rend(), [&](const SaveCourse& save) {
        return save.epoch == epoch && save.step == number("step");
      });
      if (held != saves_.rend()) held->partner_ms = time_ms_;
    } else if (event_ == "saved" || event_ == "rescued") {
      if (event_ == "rescued" || !UnderWay(epoch)) saves_.push_back({.epoch = epoch});
      SaveCourse& save = saves_.back();
      save.rescued = event_ == "rescued";
      save.checkpoint = text("checkpoint");
      save.trigger = save.rescued ? "rescue" : text("trigger");
      save.step = number("step");
      save.label = number("label");
      save.bytes = line.value("bytes", uint64_t{0});
      save.stall_ns = number("stall_ns");
      save.drain_ns = number("drain_ns");
      save.durable_ns = number("durable_ns");
      save.ended_ms = time_ms_;
      by_name_[save.checkpoint] = saves_.size() - 1;
      under_way_ = false;
    } else if (event_ == "dropped") {
      // What was refused while another save was under way is none of this one.
      const bool begun = UnderWay(epoch) && saves_.back().trigger == text("trigger");
      SaveCourse refused{.epoch = epoch, .trigger = text("trigger"), .asked_ms = time_ms_};
      SaveCourse& save =
          begun ? saves_.back() : *saves_.insert(saves_.end() - (UnderWay(epoch) ? 1 : 0), refused);
      save.why = text("why");
      save.ended_ms = time_ms_;
      if (begun) under_way_ = false;
    } else if (event_ == "pruned") {
      const auto pruned = by_name_.find(text("checkpoint"));
      if (pruned != by_name_.end()) saves_[pruned->second].pruned = true;
    }
  }

  bool UnderWay(uint32_t epoch) const {
    return under_way_ && !saves_.empty() && saves_.back().epoch == epoch;
  }

  std::string event_;
  int64_t time_ms_ = 0;
  std::map<uint32_t, LifeCourse> lives_;
  std::vector<SaveCourse> saves_;
  std::map<std::string, size_t> by_name_;  // checkpoint → save
  bool under_way_ = false;                 // the last of saves_
};

}  // namespace

Chronicle TellChronicle(std::string_view journal) {
  Teller teller;
  for (std::string_view rest = journal; !rest.empty();) {
    const size_t end = rest.find('\n');
    const Json line = Json::parse(rest.substr(0, end), nullptr, false);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    try {
      teller.Add(line);
    } catch (const Json::exception&) {
      continue;  // as TellLives
    }
  }
  return teller.Finish(TellLives(journal));
}

}  // namespace cairn
