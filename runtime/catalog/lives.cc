#include "runtime/catalog/lives.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/catalog/epoch.h"
#include "runtime/catalog/journal.h"
#include "runtime/formats/names.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

void Add(const Json& line, const std::string& event, LifeStory* life) {
  const auto text = [&](const char* key) { return line.at(key).get<std::string>(); };
  const auto number = [&](const char* key) { return line.at(key).get<int64_t>(); };
  if (event == "life") {
    life->job = text("job");
    life->step_id = text("step");
    life->restart = number("restart");
    life->node = text("node");
    life->ranks = number("world_size");
    life->began = text("time");
    life->run_life = line.value("run_life", "");
    life->on_nodes = line.value("nodes", "");
    if (line.contains("program"))
      life->program = Program{text("program"), text("program_hash"),
                              line.at("arguments").get<std::vector<std::string>>()};
  } else if (event == "restore") {
    life->restored = text("checkpoint");
  } else if (event == "saved") {
    ++life->saves;
    life->last_saved_step = number("step");
    life->last_trigger = text("trigger");
  } else if (event == "dropped") {
    ++life->dropped;
    life->last_dropped = text("why");
  } else if (event == "damaged") {
    life->damaged.push_back(text("checkpoint") + ": " + text("why"));
  } else if (event == "ending") {
    life->end = text("cause");
    life->why = text("why");
    life->end_step = number("count");
    if (life->end == "resize") life->nodes = text("nodes");
  } else if (event == "requeued" || event == "not_requeued") {
    life->requeued = event == "requeued";
    life->requeue_text = text("text");
  } else if (event == "gone" && (life->end.empty() || life->end == "unknown")) {
    // After "ending" ranks go because they are killed; but the SIGTERM that srun sends the others when one is lost may be noticed first.
    life->end = "rank lost";
    life->why = "rank " + std::to_string(number("rank")) + ": " + text("why");
    if (line.contains("count")) life->end_step = number("count");
  } else if (event == "closed" && life->end.empty()) {
    life->end = "finalized";
    life->why = line.value("why", "every rank came to cairn_finalize");
  } else if (event == "finished") {
    life->end = "finished";
    life->why.clear();
  }
}

}  // namespace

std::vector<LifeStory> TellLives(std::string_view journal) {
  std::map<uint32_t, LifeStory> lives;
  while (!journal.empty()) {
    const size_t end = journal.find('\n');
    const Json line = Json::parse(journal.substr(0, end), nullptr, false);
    journal.remove_prefix(end == std::string_view::npos ? journal.size() : end + 1);
    try {
      const auto epoch = line.at("epoch").get<uint32_t>();
      if (epoch == 0) continue;
      LifeStory& life = lives[epoch];
      life.epoch = epoch;
      Add(line, line.at("event").get<std::string>(), &life);
    } catch (const Json::exception&) {
      continue;  // a courtesy file: what cannot be read is not told
    }
  }
  std::vector<LifeStory> out;
  for (auto& [epoch, life] : lives) out.push_back(std::move(life));
  return out;
}

Result<std::vector<LifeStory>> ReadLives(const RunDirectory& dir) {
  CAIRN_ASSIGN_OR_RETURN(const std::string journal, ReadJournal(dir));
  return TellLives(journal);
}

Result<std::vector<LifeStory>> Strikes(const RunDirectory& dir, const Listing& listing,
                                       const std::string& checkpoint, uint32_t epoch) {
  std::vector<LifeStory> strikes;
  const auto id = names::ParseAttempt(checkpoint);
  if (!id) return strikes;
  CAIRN_ASSIGN_OR_RETURN(const auto newest, NewestEpoch(dir));
  const uint32_t end = newest ? std::min(epoch, newest->epoch + 1) : 0;
  for (uint32_t e = id->epoch + 1; e < end; ++e) {
    const auto parent = ReadParent(dir, e);
    if (!parent.ok() && parent.status().code() != Code::kDamage) return parent.status();
    if (!parent.ok() || *parent != checkpoint) continue;
    const bool committed = std::any_of(listing.checkpoints.begin(), listing.checkpoints.end(),
                                       [&](const Checkpoint& c) { return c.id.epoch == e; });
    if (!committed) strikes.push_back({.epoch = e, .restored = checkpoint});
  }
  if (strikes.empty()) return strikes;
  const auto lives = ReadLives(dir);
  if (!lives.ok()) return strikes;
  for (const LifeStory& life : *lives) {
    const auto strike = std::find_if(strikes.begin(), strikes.end(),
                                     [&](const LifeStory& s) { return s.epoch == life.epoch; });
    if (strike == strikes.end()) continue;
    if (life.end.empty() || life.end == "rank lost") {
      *strike = life;
    } else {
      strikes.erase(strike);
    }
  }
  return strikes;
}

}  // namespace cairn
