#include "runtime/catalog/retention.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>

#include "runtime/catalog/marks.h"
#include "runtime/catalog/removal.h"
#include "runtime/formats/names.h"
#include "runtime/io/random.h"

namespace cairn {

namespace {

using Candidate = const Checkpoint*;

bool AllFinite(const Checkpoint& c) {
  return !c.manifest.metrics.empty() &&
         std::all_of(c.manifest.metrics.begin(), c.manifest.metrics.end(),
                     [](const auto& metric) { return std::isfinite(metric.second.value); });
}

// Of each stretch of `rule.number`, but for the first, the oldest.
void KeepEvery(const std::vector<Candidate>& newest_first, const KeepRule& rule, std::set<Candidate>* keep) {
  int64_t stretch = 0;
  for (auto c = newest_first.rbegin(); c != newest_first.rend(); ++c) {
    const Manifest& manifest = (*c)->manifest;
    const int64_t at = rule.kind == KeepRule::kEverySteps
                           ? manifest.step
                           : Nanoseconds(std::chrono::seconds(ParseUtc(manifest.time).value_or(0))).count();
    if (at / rule.number <= stretch) continue;
    stretch = at / rule.number;
    keep->insert(*c);
  }
}

}  // namespace

std::vector<const Checkpoint*> ByMetric(const std::vector<const Checkpoint*>& newest_first,
                                        const KeepRule& rule) {
  std::map<int64_t, std::pair<double, Candidate>> measured;  // by the step of the measurement
  for (Candidate c : newest_first) {
    const auto metric = c->manifest.metrics.find(rule.metric);
    if (metric == c->manifest.metrics.end() || !std::isfinite(metric->second.value)) continue;
    measured[metric->second.step] = {metric->second.value, c};
  }
  std::vector<std::pair<double, Candidate>> sorted;
  for (const auto& [step, one] : measured) sorted.push_back(one);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
    return rule.highest ? a.first > b.first : a.first < b.first;
  });
  std::vector<Candidate> best;
  for (const auto& [value, c] : sorted) best.push_back(c);
  return best;
}

std::vector<std::string> PlanRetention(const Listing& listing, uint32_t epoch, const std::string& parent,
                                       const KeepRules& rules, const std::set<std::string>& kept) {
  std::vector<Candidate> good;  // newest first
  for (const Checkpoint& c : listing.checkpoints) {
    if (!c.orphan && c.struck.empty() && c.readable.ok()) good.push_back(&c);
  }
  std::set<Candidate> keep;
  if (!good.empty()) keep.insert(good.front());
  if (const auto finite = std::find_if(good.begin(), good.end(), [](Candidate c) { return AllFinite(*c); });
      finite != good.end())
    keep.insert(*finite);
  const auto keep_first = [&](const std::vector<Candidate>& of, int64_t count) {
    for (size_t i = 0; i < of.size() && static_cast<int64_t>(i) < count; ++i) keep.insert(of[i]);
  };
  for (const KeepRule& rule : rules) {
    if (rule.kind == KeepRule::kLast) {
      keep_first(good, rule.number);
    } else if (rule.kind == KeepRule::kBest) {
      keep_first(ByMetric(good, rule), rule.number);
    } else {
      KeepEvery(good, rule, &keep);
    }
  }
  const bool has_own =
      std::any_of(good.begin(), good.end(), [&](Candidate c) { return c->id.epoch == epoch; });
  std::vector<std::string> prune;
  for (auto c = good.rbegin(); c != good.rend(); ++c) {
    const std::string& name = (*c)->name;
    if (!keep.contains(*c) && !kept.contains(name) && (has_own || name != parent)) prune.push_back(name);
  }
  return prune;
}

Status PruneCheckpoint(const RunDirectory& dir, uint32_t epoch, const std::string& name) {
  return RemoveAttempt(dir, epoch, name);
}

Result<ReadLease> ReadLease::Take(const RunDirectory& dir, const std::string& checkpoint) {
  CAIRN_RETURN_IF_ERROR(MakeDirectories(dir.PathOf(names::kLeases), dir.mode()));
  CAIRN_ASSIGN_OR_RETURN(BeatFile file,
                         BeatFile::Create(dir.PathOf(names::Lease(checkpoint, RandomHex(8))), dir.mode()));
  ReadLease lease(std::move(file));
  // Only now look: a pruner that renamed the folder before it could see the lease either gives it back or has removed it.
  CAIRN_ASSIGN_OR_RETURN(const bool there, HasManifest(dir, checkpoint));
  if (!there) return Status(Code::kNotFound, dir.PathOf(checkpoint) + " is no checkpoint (any more)");
  return lease;
}

ReadLease::~ReadLease() {
  if (file_) (void)RemoveFile(file_->path());
}

HeldLease::HeldLease(const RunDirectory& dir, const std::string& checkpoint)
    : beaten_(std::chrono::steady_clock::now()) {
  auto lease = ReadLease::Take(dir, checkpoint);
  if (lease.ok()) lease_.emplace(*std::move(lease));
}

void HeldLease::Keep(BeatWatch::Time now) {
  if (!lease_ || now - beaten_ < kBeatInterval) return;
  beaten_ = now;
  (void)lease_->Beat();
}

BeatingLeases::BeatingLeases(const RunDirectory& dir, const std::vector<std::string>& checkpoints) {
  leases_.reserve(checkpoints.size());
  for (const std::string& checkpoint : checkpoints) leases_.emplace_back(dir, checkpoint);
  beat_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, stop, kBeatInterval, [&] { return stop.stop_requested(); })) {
      for (HeldLease& lease : leases_) lease.Keep(std::chrono::steady_clock::now());
    }
  });
}

Result<std::set<std::string>> LeaseWatch::Leased(const RunDirectory& dir, BeatWatch::Time now) {
  const Result<std::vector<std::string>> files = ListDirectory(dir.PathOf(names::kLeases));
  if (!files.ok() && files.status().code() != Code::kNotFound) return files.status();
  std::set<std::string> leased;
  std::map<std::string, BeatWatch> watches;
  for (const std::string& file : files.ok() ? *files : std::vector<std::string>()) {
    const auto checkpoint = names::ParseLease(file);
    if (!checkpoint) continue;
    const std::string path = dir.PathOf(names::kLeases, file);
    BeatWatch watch = watches_[file];
    const BeatWatch::State state = watch.Observe(ReadBeat(path), now);
    if (state == BeatWatch::State::kStill || state == BeatWatch::State::kLeft) {
      (void)RemoveFile(path);
      continue;
    }
    leased.insert(checkpoint->ToString());
    watches[file] = watch;
  }
  watches_ = std::move(watches);
  return leased;
}

Result<std::set<std::string>> KeptByMarks(const RunDirectory& dir, LeaseWatch& leases, BeatWatch::Time now) {
  CAIRN_ASSIGN_OR_RETURN(std::set<std::string> kept, ReadPins(dir));
  CAIRN_ASSIGN_OR_RETURN(const auto tags, ReadTags(dir));
  for (const auto& [tag, checkpoint] : tags) kept.insert(checkpoint);
  CAIRN_ASSIGN_OR_RETURN(const std::set<std::string> leased, leases.Leased(dir, now));
  kept.insert(leased.begin(), leased.end());
  return kept;
}

}  // namespace cairn
