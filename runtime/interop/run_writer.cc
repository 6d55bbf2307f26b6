#include "runtime/interop/run_writer.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/event.h"
#include "runtime/catalog/marks.h"
#include "runtime/catalog/target.h"
#include "runtime/formats/manifest.h"
#include "runtime/interop/box_file.h"
#include "runtime/io/random.h"
#include "runtime/io/stores.h"
#include "runtime/version.h"

namespace cairn {
namespace {

std::string Variable(const char* name, const char* otherwise = "") {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

Identity ThisProcess(const std::string& claim) {
  Identity self;
  self.cluster = Variable("SLURM_CLUSTER_NAME");
  self.job = Variable("SLURM_JOB_ID");
  self.step = Variable("SLURM_STEP_ID");
  const std::string restart = Variable("SLURM_RESTART_COUNT", "0");
  (void)std::from_chars(restart.data(), restart.data() + restart.size(), self.restart);
  char host[256] = "localhost";
  (void)gethostname(host, sizeof host - 1);
  self.node = host;
  self.pid = getpid();
  self.uid = getuid();
  self.cairn_version = kVersion;
  self.started = UtcNow();
  self.claim = claim;
  return self;
}

void Journal(const Life& life, const char* event, const JournalFields& fields, std::string_view time = "") {
  (void)AppendEvent(life.directory(), event, life.epoch(), fields, time);
}

}  // namespace

Result<std::unique_ptr<RunWriter>> RunWriter::Open(const std::string& directory) {
  if (IsObjectPath(directory))
    return Status(Code::kInvalid, directory + ": a writer needs a directory; in a bucket only sessions save");
  CAIRN_ASSIGN_OR_RETURN(const std::string path, AbsolutePath(directory));
  std::unique_ptr<RunWriter> writer(new RunWriter(path));
  CAIRN_RETURN_IF_ERROR(writer->Own());
  return writer;
}

RunWriter::RunWriter(std::string directory)
    : directory_(std::move(directory)), claim_(RandomHex(16)), log_(Variable("CAIRN_LOG", "info"), "") {}

Status RunWriter::Own() {
  LifeOptions options;
  options.dir = directory_;
  options.name = "main";
  options.self = self_ = ThisProcess(claim_);
  options.ask_slurm = [](const Identity&) { return HolderInSlurm::kUnknown; };
  options.say = [this](const std::string& line) { log_.Info(line); };
  CAIRN_ASSIGN_OR_RETURN(life_, Life::Begin(options));
  return OkStatus();
}

Status RunWriter::Leave() {
  Abandon();
  if (!life_) return OkStatus();
  if (newest_step_ >= 0) Journal(*life_, "closed", {{"why", JsonText("its owner gave the directory back")}});
  const Status left = life_->End();
  Forget();
  return left.code() == Code::kNotFound ? OkStatus() : left;  // the directory was removed
}

void RunWriter::Forget() {
  life_.reset();
  parent_.clear();
  published_ = false;
  newest_step_ = -1;
}

Result<std::string> RunWriter::Begin(std::optional<int64_t> step) {
  Abandon();
  if (life_) {
    const Status owned = StillNewest(life_->directory(), life_->epoch());
    if (owned.code() == Code::kFenced) {
      Forget();
    } else if (owned.code() == Code::kNotFound ||
               (step && *step <= newest_step_)) {  // the directory was removed
      CAIRN_RETURN_IF_ERROR(Leave());
    } else {
      CAIRN_RETURN_IF_ERROR(owned);
    }
  }
  if (!life_) CAIRN_RETURN_IF_ERROR(Own());
  if (newest_step_ < 0 || !step) {
    CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(life_->directory()));
    const std::vector<Checkpoint> candidates = Candidates(listing);  // newest first
    if (!step) step = candidates.empty() ? 1 : candidates.front().id.step + 1;
    if (newest_step_ < 0) {
      const auto earlier =
          std::find_if(candidates.begin(), candidates.end(),
                       [&](const Checkpoint& candidate) { return candidate.id.step < *step; });
      parent_ = earlier == candidates.end() ? "" : earlier->name;
    }
  }
  CAIRN_ASSIGN_OR_RETURN(attempt_, BeginAttempt(life_->directory(), life_->epoch(), *step));
  return attempt_->path;
}

Result<std::string> RunWriter::Commit(WrittenParts written) {
  if (!attempt_ || attempt_->path != written.folder)
    return Status(Code::kInvalid, written.folder + " was given up, since another checkpoint was begun");
  const std::optional<KeepRules> keep = std::move(written.keep);
  Result<std::string> name = TryCommit(std::move(written));
  if (!name.ok()) {
    Abandon();
    return name;
  }
  newest_step_ = attempt_->name.step;
  attempt_.reset();
  if (keep) {
    const Status pruned = Prune(*keep);
    if (!pruned.ok()) log_.Warn("older checkpoints were not pruned: ", pruned.message());
  }
  return name;
}

Result<std::string> RunWriter::TryCommit(WrittenParts written) {
  if (!written.tag.empty()) CAIRN_RETURN_IF_ERROR(CheckTag(written.tag));
  CAIRN_ASSIGN_OR_RETURN(const Index index, MergeParts(written.parts, written.world_size));
  Manifest manifest;
  manifest.run_id = life_->directory().info().id;
  manifest.label = attempt_->name.step;
  manifest.world_size = written.world_size;
  manifest.trigger = TriggerName(kTriggerRequest);
  manifest.parent = parent_;
  manifest.tag = written.tag;
  manifest.cairn_version = kVersion;
  CAIRN_ASSIGN_OR_RETURN(
      manifest, cairn::Commit(life_->directory(), *attempt_, index, written.blobs, std::move(manifest)));
  std::string name = attempt_->name.ToString();
  if (!published_) {  // not before: then a commit that fails would leave orphans. Meanwhile the manifest says the same
    const Status published = PublishParent(life_->directory(), life_->epoch(), parent_);
    published_ = published.ok();
    if (!published_)
      log_.Warn("from what ", name, " goes on is written in its manifest alone: ", published.message());
  }
  if (newest_step_ < 0) {  // how many ranks it has is known only now
    Journal(*life_, "life",
            {{"job", JsonText(self_.job)},
             {"step", JsonText(self_.step)},
             {"restart", std::to_string(self_.restart)},
             {"node", JsonText(self_.node)},
             {"world_size", std::to_string(written.world_size)}},
            self_.started);
    if (!parent_.empty()) Journal(*life_, "restore", {{"checkpoint", JsonText(parent_)}});
  }
  if (!written.tag.empty()) {
    const Status tagged = SetTag(life_->directory(), written.tag, name);
    if (!tagged.ok())
      log_.Warn("tag \"", written.tag, "\" could not be set on ", name, ": ", tagged.message());
  }
  Journal(*life_, "saved",
          {{"checkpoint", JsonText(name)},
           {"step", std::to_string(manifest.step)},
           {"label", std::to_string(manifest.label)},
           {"trigger", JsonText(manifest.trigger)},
           {"bytes", std::to_string(manifest.total_bytes)}});
  return name;
}

Status RunWriter::Prune(const KeepRules& rules) {
  const RunDirectory& dir = life_->directory();
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(dir));
  CAIRN_ASSIGN_OR_RETURN(const std::set<std::string> kept,
                         KeptByMarks(dir, leases_, std::chrono::steady_clock::now()));
  for (const std::string& name : PlanRetention(listing, life_->epoch(), parent_, rules, kept)) {
    CAIRN_RETURN_IF_ERROR(PruneCheckpoint(dir, life_->epoch(), name));
    Journal(*life_, "pruned", {{"checkpoint", JsonText(name)}});
  }
  return OkStatus();
}

void RunWriter::Abandon() {
  if (!attempt_) return;
  const Status removed = cairn::Abandon(life_->directory(), *attempt_);
  if (!removed.ok())
    log_.Debug("the attempt ", attempt_->name.ToString(), " is left to the next owner: ", removed.message());
  attempt_.reset();
}

Status RunWriter::Close() { return Leave(); }

}  // namespace cairn
