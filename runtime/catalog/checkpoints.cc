#include "runtime/catalog/checkpoints.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/catalog/epoch.h"
#include "runtime/catalog/sealed_file.h"
#include "runtime/catalog/verify.h"
#include "runtime/formats/sealed_json.h"
#include "runtime/formats/sums.h"

// The line of a run. Walk the epochs from the newest down, with a bound (epoch, step) that starts at infinity. What lies above the bound is an
// orphan: an epoch between a life and the one that it went on from, or a later checkpoint of that one. When the epoch has a parent, the parent
// is the new bound; no parent ("fresh") makes everything older an orphan. An epoch that published no parent has saved nothing either, and
// is passed by; should its PARENT file be lost, its manifests say the same.

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kStrikeKind = "strike";

struct Bound {
  uint32_t epoch = UINT32_MAX;
  int64_t step = INT64_MAX;

  bool Covers(const names::Attempt& id) const {
    return id.epoch < epoch || (id.epoch == epoch && id.step <= step);
  }
};

Result<std::map<std::string, std::string>> ReadStrikes(const RunDirectory& dir) {
  std::map<std::string, std::string> strikes;
  const auto files = ListDirectory(dir.PathOf(names::kStrikes));
  if (!files.ok()) {
    if (files.status().code() == Code::kNotFound) return strikes;
    return files.status();
  }
  for (const std::string& file : *files) {
    const auto attempt = names::ParseStrike(file);
    if (!attempt) continue;
    const std::string path = dir.PathOf(names::kStrikes, file);
    const Result<Json> members = ReadSealed(path, kStrikeKind);
    std::string reason = "unknown (" + path + " cannot be read)";
    if (members.ok()) reason = JsonFields(*members, path).String("reason");
    strikes[attempt->ToString()] = std::move(reason);
  }
  return strikes;
}

Result<std::optional<Checkpoint>> ReadCheckpoint(const RunDirectory& dir, const names::Attempt& id) {
  Checkpoint checkpoint;
  checkpoint.name = id.ToString();
  checkpoint.id = id;
  Result<Manifest> manifest = LoadManifest(dir.PathOf(checkpoint.name));
  if (manifest.ok()) {
    checkpoint.manifest = *std::move(manifest);
  } else if (manifest.status().code() == Code::kNotFound) {
    return std::optional<Checkpoint>();  // an attempt
  } else if (manifest.status().code() == Code::kUnavailable) {
    return manifest.status();  // the store's, not the checkpoint's; the next would have it, too
  } else {
    checkpoint.readable = manifest.status();
  }
  return std::optional<Checkpoint>(std::move(checkpoint));
}

// The parent of one epoch, "" = fresh, nothing = undecided. `checkpoints` are all of the run.
Result<std::optional<std::string>> ParentOf(const RunDirectory& dir, uint32_t epoch,
                                            const std::vector<Checkpoint>& checkpoints) {
  auto published = ReadParent(dir, epoch);
  if (!published.ok() && published.status().code() != Code::kDamage) return published;
  if (published.ok() && *published) return published;
  for (const Checkpoint& c : checkpoints) {
    if (c.id.epoch == epoch && c.readable.ok()) return std::optional<std::string>(c.manifest.parent);
  }
  return std::optional<std::string>();
}

Status SizeMustBe(const std::string& path, const std::optional<uint64_t>& found, uint64_t bytes) {
  if (!found) return {Code::kDamage, path + " is missing"};
  if (*found == bytes) return OkStatus();
  return {Code::kDamage, path + " has " + std::to_string(*found) + " bytes instead of " +
                             std::to_string(bytes) + (*found < bytes ? ": it was truncated" : "")};
}

Status SizeMustBe(const std::string& path, uint64_t bytes) {
  const Result<uint64_t> found = FileBytes(path);
  if (!found.ok() && found.status().code() != Code::kNotFound) return found.status();
  return SizeMustBe(path, found.ok() ? std::optional(*found) : std::nullopt, bytes);
}

// A file of known size and hash, for the decoder `decode`.
template <typename T>
Result<T> LoadHashed(const std::string& path, uint64_t bytes, const Hash128& hash,
                     Result<T> (*decode)(std::string_view)) {
  return Confirmed(path, [&]() -> Result<T> {
    CAIRN_RETURN_IF_ERROR(SizeMustBe(path, bytes));
    CAIRN_ASSIGN_OR_RETURN(const std::string content, ReadAll(path, bytes));
    if (Hash128Of(content) != hash)
      return Status(Code::kDamage, path + ": its content does not match the hash in the manifest");
    Result<T> decoded = decode(content);
    if (!decoded.ok()) return decoded.status().Annotate(path);
    return decoded;
  });
}

// The checksum file of one shard, by its size alone; one of another version may have another.
Status SumsMustFit(const std::string& path, const std::optional<uint64_t>& found, const ShardRecord& record) {
  const std::string file = path + "/" + names::Sums(record.number);
  const Status fits = SizeMustBe(file, found, EncodedSumsBytes(record.bytes));
  if (fits.code() != Code::kDamage) return fits;
  const Result<Sums> sums = ReadSums(path, record);
  return sums.status().code() == Code::kMismatch ? sums.status() : fits;
}

Status CrossCheck(const LoadedCheckpoint& c) {
  const auto damage = [&](std::string_view what) {
    return Status(Code::kDamage, c.path + ": " + std::string(what));
  };
  const uint32_t writers = c.manifest.writers > 0 ? c.manifest.writers : c.manifest.world_size;
  if (c.index.world_size != writers)
    return damage("the index has " + std::to_string(c.index.world_size) + " writers, the manifest " +
                  std::to_string(writers));
  if (c.index.files.size() != c.manifest.shards.size())
    return damage("index and manifest list different files");
  for (size_t i = 0; i < c.index.files.size(); ++i) {
    const ShardRecord& record = c.index.files[i];
    if (names::Shard(record.number) != c.manifest.shards[i].name ||
        record.bytes != c.manifest.shards[i].bytes) {
      return damage("index and manifest disagree on " + c.manifest.shards[i].name);
    }
  }
  for (const BlobItem& item : c.blobs.items) {
    if (item.by_rank.size() != c.manifest.world_size)
      return damage("blob \"" + item.name + "\" is not for all ranks");
  }
  return OkStatus();
}

}  // namespace

Result<Listing> ListCheckpoints(const RunDirectory& dir) {
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(dir.path()));
  CAIRN_ASSIGN_OR_RETURN(const auto strikes, ReadStrikes(dir));
  Listing listing;
  std::set<uint32_t, std::greater<>> epochs;
  for (const std::string& entry : entries) {
    if (const auto epoch = names::ParseEpochFile(entry)) epochs.insert(*epoch);
    const auto id = names::ParseAttempt(entry);
    if (!id) continue;
    CAIRN_ASSIGN_OR_RETURN(std::optional<Checkpoint> checkpoint, ReadCheckpoint(dir, *id));
    if (!checkpoint) continue;
    if (const auto strike = strikes.find(entry); strike != strikes.end()) checkpoint->struck = strike->second;
    epochs.insert(id->epoch);
    listing.checkpoints.push_back(*std::move(checkpoint));
  }
  auto& all = listing.checkpoints;
  std::sort(all.begin(), all.end(), [](const Checkpoint& a, const Checkpoint& b) {
    return std::tie(b.id.epoch, b.id.step, b.name) < std::tie(a.id.epoch, a.id.step, a.name);
  });

  std::optional<names::Attempt> current;
  // One that cannot be read may name what is lost.
  const auto text = ReadAll(dir.PathOf(names::kCurrent), 4096);
  if (!text.ok() && text.status().code() != Code::kNotFound) return text.status();
  if (text.ok() && !text->empty())
    current = names::ParseAttempt(std::string_view(*text).substr(0, text->size() - 1));
  if (current) epochs.insert(current->epoch);

  Bound bound;
  for (uint32_t epoch : epochs) {
    for (Checkpoint& c : all) {
      if (c.id.epoch == epoch) c.orphan = !bound.Covers(c.id);
    }
    if (bound.epoch >= epoch) listing.line[epoch] = bound.epoch > epoch ? INT64_MAX : bound.step;
    if (current && current->epoch == epoch && bound.Covers(*current)) listing.lost = current->ToString();
    if (epoch > bound.epoch) continue;
    CAIRN_ASSIGN_OR_RETURN(const std::optional<std::string> parent, ParentOf(dir, epoch, all));
    if (!parent) continue;
    const auto id = names::ParseAttempt(*parent);
    bound = id ? Bound{id->epoch, id->step} : Bound{0, 0};
  }
  for (const Checkpoint& c : all) {
    if (c.name == listing.lost) listing.lost.clear();
  }
  return listing;
}

std::vector<Checkpoint> Candidates(const Listing& listing) {
  std::vector<Checkpoint> out;
  for (const Checkpoint& c : listing.checkpoints) {
    if (!c.orphan && c.struck.empty()) out.push_back(c);
  }
  return out;
}

Status MayStartFresh(const Listing& listing) {
  for (const Checkpoint& c : listing.checkpoints) {
    if (c.orphan) continue;
    const std::string& why = c.struck.empty() ? c.readable.message() : c.struck;
    return {Code::kDamage,
            "the run has committed " + c.name + (why.empty() ? "" : ", which cannot be used: " + why)};
  }
  if (!listing.lost.empty()) {
    return {Code::kDamage, "the run has committed " + listing.lost + ", which is not there any more"};
  }
  return OkStatus();
}

Result<Manifest> LoadManifest(const std::string& path) {
  const std::string file = path + "/" + std::string(names::kManifest);
  return Confirmed(file, [&]() -> Result<Manifest> {
    CAIRN_ASSIGN_OR_RETURN(const std::string text, ReadAll(file, kMaxManifestBytes));
    Result<Manifest> manifest = DecodeManifest(text);
    if (!manifest.ok()) return manifest.status().Annotate(file);
    const auto id = names::ParseAttempt(path.substr(path.rfind('/') + 1));
    if (id && (id->epoch != manifest->epoch || id->step != manifest->step)) {
      return Status(Code::kDamage, file + " is the manifest of step " + std::to_string(manifest->step) +
                                       " of epoch " + std::to_string(manifest->epoch));
    }
    return manifest;
  });
}

Result<Index> LoadIndex(const std::string& path, const Manifest& manifest) {
  return LoadHashed(path + "/" + std::string(names::kIndex), manifest.index_bytes, manifest.index_hash,
                    &DecodeIndex);
}

Result<Blobs> LoadBlobs(const std::string& path, const Manifest& manifest) {
  return LoadHashed(path + "/" + std::string(names::kBlobs), manifest.blobs_bytes, manifest.blobs_hash,
                    &DecodeBlobs);
}

Result<LoadedCheckpoint> LoadCheckpoint(const RunDirectory& dir, const std::string& name) {
  LoadedCheckpoint loaded;
  loaded.name = name;
  loaded.path = dir.PathOf(name);
  CAIRN_ASSIGN_OR_RETURN(loaded.manifest, LoadManifest(loaded.path));
  CAIRN_ASSIGN_OR_RETURN(loaded.index, LoadIndex(loaded.path, loaded.manifest));
  CAIRN_ASSIGN_OR_RETURN(loaded.blobs, LoadBlobs(loaded.path, loaded.manifest));
  CAIRN_RETURN_IF_ERROR(CrossCheck(loaded));
  CAIRN_ASSIGN_OR_RETURN(const auto sizes, FileSizes(loaded.path));
  const auto size_of = [&](const std::string& file) {
    const auto size = sizes.find(file);
    return size == sizes.end() ? std::nullopt : std::optional(size->second);
  };
  for (const ShardRecord& file : loaded.index.files) {
    const std::string shard = names::Shard(file.number);
    CAIRN_RETURN_IF_ERROR(SizeMustBe(loaded.path + "/" + shard, size_of(shard), file.bytes));
    CAIRN_RETURN_IF_ERROR(SumsMustFit(loaded.path, size_of(names::Sums(file.number)), file));
  }
  return loaded;
}

Status MarkDamaged(const RunDirectory& dir, const std::string& name, const std::string& reason) {
  CAIRN_RETURN_IF_ERROR(MakeDirectories(dir.PathOf(names::kStrikes), dir.mode()));
  return PublishSealed(dir.PathOf(names::Strike(name)), kStrikeKind,
                       {{"checkpoint", name}, {"reason", reason}, {"time", UtcNow()}}, dir.mode());
}

}  // namespace cairn
