// Every name in a run's directory: the builder beside the parser. Described in docs/design/formats.md,
// section 1.
//
// A parser accepts exactly what its builder makes, so a name has one form and foreign files are left alone.
#ifndef CAIRN_RUNTIME_FORMATS_NAMES_H_
#define CAIRN_RUNTIME_FORMATS_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::names {

// In the run's directory.
inline constexpr std::string_view kRun = "RUN";
inline constexpr std::string_view kCurrent = "CURRENT";
inline constexpr std::string_view kJournal = "journal.jsonl";
inline constexpr std::string_view kFinished = "FINISHED";
inline constexpr std::string_view kControl = "CONTROL";
inline constexpr std::string_view kTags = "tags";
inline constexpr std::string_view kPins = "pins";
inline constexpr std::string_view kLeases = "leases";
inline constexpr std::string_view kStrikes = "strikes";

// In a checkpoint's directory.
inline constexpr std::string_view kBlobs = "blobs.cbor";
inline constexpr std::string_view kIndex = "index.bin";
inline constexpr std::string_view kManifest = "manifest.json";

// "EPOCH-00000007", "ALIVE-00000007", "PARENT-00000007".
std::string EpochFile(uint32_t epoch);
std::string AliveFile(uint32_t epoch);
std::string ParentFile(uint32_t epoch);
std::optional<uint32_t> ParseEpochFile(std::string_view name);

// "left-00000007": where the nodes of epoch 7's life, which is dead, tell what it left in their memory (session/left_drain.h).
std::string LeftFolder(uint32_t epoch);
std::optional<uint32_t> ParseLeftFolder(std::string_view name);
inline constexpr std::string_view kAliveSuffix = ".alive";  // in it, of a node's counter

// "journal-00000007-00001.jsonl": lines of epoch 7's life, in a bucket; parts are counted from 1.
struct JournalLines {
  uint32_t epoch = 0, part = 0;
  friend bool operator==(const JournalLines&, const JournalLines&) = default;
};
std::string JournalPart(const JournalLines& lines);
std::optional<JournalLines> ParseJournalPart(std::string_view name);

// "step-000000001200.e7.1f00c2d9": one attempt to save, and, once its manifest is there, a checkpoint. Never
// used twice.
struct Attempt {
  int64_t step = 0;  // the count of cairn_step calls
  uint32_t epoch = 0;
  std::string id;  // 8 random lower-case hex digits

  std::string ToString() const;
  friend bool operator==(const Attempt&, const Attempt&) = default;
};
std::optional<Attempt> ParseAttempt(std::string_view name);

// "dead-step-…": an attempt that a later life has taken over.
std::string Dead(std::string_view attempt);
std::optional<Attempt> ParseDead(std::string_view name);

// "removed-e7-step-…": an attempt that was given up, or a checkpoint that is pruned, by epoch 7 (which need not be its own).
struct Removal {
  uint32_t by = 0;
  Attempt attempt;
  friend bool operator==(const Removal&, const Removal&) = default;
};
std::string Removed(uint32_t by, std::string_view attempt);
std::optional<Removal> ParseRemoved(std::string_view name);

// ".staging-00112233445566aa-3": what rank 3 of the life with this claim (Identity::claim: a life has one before it has an epoch) writes
// through to (staging/write_through_slot.h).
struct Staging {
  std::string claim;  // 16 lower-case hex digits
  uint32_t rank = 0;
  friend bool operator==(const Staging&, const Staging&) = default;
};
std::string StagingFolder(const Staging& staging);
std::optional<Staging> ParseStagingFolder(std::string_view name);

// Files of arrays and their checksums, numbered from 1: "shard-00001-model-00001-of-00001.safetensors",
// "shard-00001.sums".
std::string Shard(uint32_t number);
std::string Sums(uint32_t number);
std::optional<uint32_t> ParseShard(std::string_view name);
std::optional<uint32_t> ParseSums(std::string_view name);

// "strikes/<attempt>.json", from the run's directory.
std::string Strike(std::string_view attempt);
std::optional<Attempt> ParseStrike(std::string_view file);  // without the folder

// "leases/<attempt>.<id>", id as in Attempt, from the run's directory.
std::string Lease(std::string_view attempt, std::string_view id);
std::optional<Attempt> ParseLease(std::string_view file);  // without the folder

// Whether a user's tag can be a file name: 1 to 100 of [A-Za-z0-9._+=-], the first no dot.
bool IsValidTag(std::string_view tag);

}  // namespace cairn::names

#endif  // CAIRN_RUNTIME_FORMATS_NAMES_H_
