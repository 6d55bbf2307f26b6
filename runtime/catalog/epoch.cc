#include "runtime/catalog/epoch.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/catalog/removal.h"
#include "runtime/catalog/sealed_file.h"
#include "runtime/formats/names.h"
#include "runtime/formats/sealed_json.h"
#include "runtime/io/random.h"
#include "runtime/io/stores.h"

// Who may write:
//
//   1. A life reads the newest claim, EPOCH-<n>, and makes sure that its holder is gone (JudgeHolder).
//   2. It makes EPOCH-<n+1> by exclusive create, with complete content, and reads it back. One of several contenders wins each number; the
//      others begin again at 1, and find a live holder. Claims are never removed, so numbers are never used twice.
//   3. From then on every earlier life that is still there in some form is stale. It learns so from the fence (StillNewest), which it reads
//      before and after each commit and before each pruning.
//   4. A stale writer may be past its fence, between the check and the rename of its manifest. So the new life renames all older attempts
//      that have no manifest (TakeOver): the writer's rename, by full path, then fails. A rename that was under way may still land in the
//      renamed folder, so the new life looks for a manifest in each afterwards; where there is one, it gives the folder its name back and
//      counts it as committed. A manifest that lands even later (a client that holds the folder's handle) is never counted: its writer reads
//      the fence after the rename, too, and reports the save as fenced.
//      In a bucket nothing can be renamed: the new life removes the objects of those attempts, and gives up the uploads into attempts of older
//      epochs; those of a newer one, and of runs whose folders lie below this one's, are not its own. A manifest that lands while it removes them
//      is removed with them, or after a second look. One that lands even later is over objects that are gone, so that nobody can restore from it;
//      and once 6 is done it is an orphan, since its epoch is older than this one and its step later than the parent's (checkpoints.cc). This rule
//      alone fences there.
//   5. It also ends what an earlier life was removing when it ended (removal.cc).
//   6. Having restored, the life publishes its parent. Only then does it save.

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kClaimKind = "epoch";
constexpr std::string_view kParentKind = "parent";

// So the name of each attempt begins.
constexpr std::string_view kAttemptsBegin = "step-";

Result<uint32_t> NewestNumber(const RunDirectory& dir) {
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(dir.path()));
  uint32_t newest = 0;
  for (const std::string& name : entries) newest = std::max(newest, names::ParseEpochFile(name).value_or(0));
  return newest;
}

Result<EpochClaim> ReadClaim(const RunDirectory& dir, uint32_t epoch) {
  const std::string path = dir.PathOf(names::EpochFile(epoch));
  CAIRN_ASSIGN_OR_RETURN(const Json members, ReadSealed(path, kClaimKind));
  JsonFields fields(members, path);
  EpochClaim claim;
  claim.epoch = static_cast<uint32_t>(fields.Unsigned("epoch", UINT32_MAX));
  Identity& who = claim.holder;
  who.cluster = fields.String("cluster");
  who.job = fields.String("job");
  who.step = fields.String("step");
  who.restart = static_cast<uint32_t>(fields.Unsigned("restart", UINT32_MAX));
  who.node = fields.String("node");
  who.pid = fields.Signed("pid");
  who.uid = fields.Signed("uid");
  who.cairn_version = fields.String("cairn_version");
  who.started = fields.String("started");
  who.claim = fields.String("claim");
  if (members.contains("copies")) who.copies = fields.String("copies");
  CAIRN_RETURN_IF_ERROR(fields.status());
  if (claim.epoch != epoch)
    return Status(Code::kDamage, path + " claims epoch " + std::to_string(claim.epoch));
  return claim;
}

// "epoch 8 by job 123, …", as far as the claim can be read.
std::string DescribeEpoch(const RunDirectory& dir, uint32_t epoch) {
  const Result<EpochClaim> claim = ReadClaim(dir, epoch);
  return "epoch " + std::to_string(epoch) + (claim.ok() ? " by " + Describe(claim->holder) : "");
}

// Whether a life of an epoch between the two had published from where it goes on. `entries` are the run's directory's.
bool IsCountedSince(const std::vector<std::string>& entries, uint32_t by, uint32_t epoch) {
  for (uint32_t e = by + 1; e < epoch; ++e) {
    if (std::find(entries.begin(), entries.end(), names::ParentFile(e)) != entries.end()) return true;
  }
  return false;
}

// What older epochs have begun to upload into their attempts, of which no object need show yet.
Status GiveUpUploads(const RunDirectory& dir, uint32_t epoch) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(dir.path()));
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                         place.store->ListUploads(place.prefix() + std::string(kAttemptsBegin)));
  std::set<std::string> older;
  for (const std::string& key : keys) {
    const std::string below = key.substr(place.prefix().size());
    const std::string name = below.substr(0, below.find('/'));
    const auto attempt = names::ParseAttempt(name);
    if (attempt && attempt->epoch < epoch) older.insert(name);
  }
  for (const std::string& name : older) CAIRN_RETURN_IF_ERROR(RemoveUnfinished(dir.PathOf(name)));
  return OkStatus();
}

Result<TakenOver> TakeOverBucket(const RunDirectory& dir, uint32_t epoch,
                                 const std::vector<std::string>& entries) {
  CAIRN_RETURN_IF_ERROR(GiveUpUploads(dir, epoch));
  TakenOver result;
  for (const std::string& name : entries) {
    const auto attempt = names::ParseAttempt(name);
    if (!attempt || attempt->epoch >= epoch) continue;
    CAIRN_ASSIGN_OR_RETURN(const bool committed, HasManifest(dir, name));
    if (committed) continue;
    result.dead.push_back(name);
    CAIRN_RETURN_IF_ERROR(RemoveTree(dir.PathOf(name)));
    CAIRN_ASSIGN_OR_RETURN(const bool landed, HasManifest(dir, name));
    if (landed) CAIRN_RETURN_IF_ERROR(RemoveTree(dir.PathOf(name)));
  }
  return result;
}

}  // namespace

std::string Describe(const Identity& who) {
  std::string text = "a process ";
  if (!who.job.empty()) {
    text = "job " + who.job + (who.step.empty() ? "" : ", step " + who.step) +
           (who.cluster.empty() ? "" : " of cluster " + who.cluster) + ", restart " +
           std::to_string(who.restart) + ", ";
  }
  return text + "on " + who.node + " (pid " + std::to_string(who.pid) + "), since " + who.started;
}

Result<std::optional<EpochClaim>> NewestEpoch(const RunDirectory& dir) {
  CAIRN_ASSIGN_OR_RETURN(const uint32_t newest, NewestNumber(dir));
  if (newest == 0) return std::optional<EpochClaim>();
  CAIRN_ASSIGN_OR_RETURN(EpochClaim claim, ReadClaim(dir, newest));
  return std::optional<EpochClaim>(std::move(claim));
}

Verdict JudgeHolder(const Identity& holder, const Identity& self, BeatWatch::State beat,
                    HolderInSlurm slurm) {
  if (beat == BeatWatch::State::kLeft) return Verdict::kFree;
  if (!self.claim.empty() && holder.claim == self.claim) return Verdict::kFree;
  if (!self.job.empty() && holder.job == self.job && holder.cluster == self.cluster &&
      holder.restart < self.restart) {
    return Verdict::kFree;
  }
  if (slurm == HolderInSlurm::kGone) return Verdict::kFree;
  if (beat == BeatWatch::State::kMoving || slurm == HolderInSlurm::kRunning) return Verdict::kHeld;
  return beat == BeatWatch::State::kStill ? Verdict::kFree : Verdict::kWait;
}

Result<uint32_t> ClaimEpoch(const RunDirectory& dir, uint32_t newest, const Identity& self) {
  const uint32_t epoch = newest + 1;
  Json members = {{"epoch", epoch},          {"claim", self.claim},
                  {"cluster", self.cluster}, {"job", self.job},
                  {"step", self.step},       {"restart", self.restart},
                  {"node", self.node},       {"pid", self.pid},
                  {"uid", self.uid},         {"cairn_version", self.cairn_version},
                  {"started", self.started}};
  if (!self.copies.empty()) members["copies"] = self.copies;
  CAIRN_ASSIGN_OR_RETURN(const std::string text, SealJson(kClaimKind, members));
  const std::string path = dir.PathOf(names::EpochFile(epoch));
  const Status made = CreateExclusive(path, text, dir.mode());
  // Not found: a life that claimed meanwhile took our file in the making for rubbish (TakeOver).
  if (!made.ok() && made.code() != Code::kExists && made.code() != Code::kNotFound) return made;
  CAIRN_ASSIGN_OR_RETURN(const std::string content, ReadAll(path, std::max<uint64_t>(text.size(), 1 << 20)));
  if (content != text) {
    return Status(Code::kBusy, dir.path() + " was claimed meanwhile: " + DescribeEpoch(dir, epoch));
  }
  return epoch;
}

Status StillNewest(const RunDirectory& dir, uint32_t epoch) {
  CAIRN_ASSIGN_OR_RETURN(const uint32_t newest, NewestNumber(dir));
  if (newest == epoch) return OkStatus();
  if (newest < epoch)
    return {Code::kNotFound, dir.PathOf(names::EpochFile(epoch)) + " was removed under this life"};
  return {Code::kFenced, dir.path() + " is owned by " + DescribeEpoch(dir, newest) + "; this life, epoch " +
                             std::to_string(epoch) + ", must not write to it any more"};
}

Result<TakenOver> TakeOver(const RunDirectory& dir, uint32_t epoch, const std::string& claim) {
  CAIRN_RETURN_IF_ERROR(StillNewest(dir, epoch));
  CAIRN_ASSIGN_OR_RETURN(std::vector<std::string> entries, ListDirectory(dir.path()));
  if (dir.in_bucket()) return TakeOverBucket(dir, epoch, entries);
  for (std::string& name : entries) {
    const auto attempt = names::ParseAttempt(name);
    if (!attempt || attempt->epoch >= epoch) continue;
    CAIRN_ASSIGN_OR_RETURN(const bool committed, HasManifest(dir, name));
    if (committed) continue;
    const Status renamed = RenameDirectory(dir.PathOf(name), dir.PathOf(names::Dead(name)));
    if (!renamed.ok() && renamed.code() != Code::kNotFound)
      return renamed;  // not found: its writer gave it up itself
    name = names::Dead(name);
  }
  CAIRN_RETURN_IF_ERROR(SyncDirectory(dir.path()));

  TakenOver result;
  std::vector<std::string> removed;
  for (const std::string& name : entries) {  // also what an earlier life left
    const auto attempt = names::ParseDead(name);
    const auto removal = names::ParseRemoved(name);
    const bool of_us = (attempt && attempt->epoch >= epoch) || (removal && removal->by >= epoch);
    if ((!attempt && !removal) || of_us) continue;
    CAIRN_ASSIGN_OR_RETURN(const bool committed, HasManifest(dir, name));
    const std::string own_name = attempt ? attempt->ToString() : removal->attempt.ToString();
    if (committed && (attempt || IsCountedSince(entries, removal->by, epoch))) {
      CAIRN_RETURN_IF_ERROR(RenameDirectory(dir.PathOf(name), dir.PathOf(own_name)));
      (attempt ? result.committed : result.returned).push_back(own_name);
    } else {
      (attempt ? result.dead : removed).push_back(name);
    }
  }
  CAIRN_RETURN_IF_ERROR(SyncDirectory(dir.path()));
  // What cannot be removed now (a stale writer still adds files) is left for the next life.
  for (const std::string& dead : result.dead) (void)RemoveTree(dir.PathOf(dead));
  for (const std::string& name : removed) (void)FinishRemoval(dir, name);
  for (const std::string& name : entries) {
    const auto staging = names::ParseStagingFolder(name);
    const auto left = names::ParseLeftFolder(name);
    if ((staging && staging->claim != claim) || (left && *left < epoch) || name.starts_with(kTemporaryPrefix))
      (void)RemoveTree(dir.PathOf(name));
  }
  return result;
}

Status PublishParent(const RunDirectory& dir, uint32_t epoch, const std::string& checkpoint) {
  CAIRN_ASSIGN_OR_RETURN(const std::string text,
                         SealJson(kParentKind, {{"epoch", epoch}, {"checkpoint", checkpoint}}));
  const Status made = CreateExclusive(dir.PathOf(names::ParentFile(epoch)), text, dir.mode());
  if (made.code() != Code::kExists) return made;
  CAIRN_ASSIGN_OR_RETURN(const std::optional<std::string> published, ReadParent(dir, epoch));
  return published == checkpoint ? OkStatus() : made;
}

Result<std::optional<std::string>> ReadParent(const RunDirectory& dir, uint32_t epoch) {
  const std::string path = dir.PathOf(names::ParentFile(epoch));
  const Result<Json> members = ReadSealed(path, kParentKind);
  if (!members.ok()) {
    if (members.status().code() == Code::kNotFound) return std::optional<std::string>();
    return members.status();
  }
  JsonFields fields(*members, path);
  std::string checkpoint = fields.String("checkpoint");
  CAIRN_RETURN_IF_ERROR(fields.status());
  if (!checkpoint.empty() && !names::ParseAttempt(checkpoint)) {
    return Status(Code::kDamage, path + " names \"" + checkpoint + "\", which is no checkpoint's name");
  }
  return std::optional<std::string>(std::move(checkpoint));
}

}  // namespace cairn
