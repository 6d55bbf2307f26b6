// Manifest: the file whose appearance makes a checkpoint exist, and which says what belongs to it.
// docs/design/formats.md, section 6.
#ifndef CAIRN_RUNTIME_FORMATS_MANIFEST_H_
#define CAIRN_RUNTIME_FORMATS_MANIFEST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/hash.h"

namespace cairn {

struct Manifest {
  struct File {
    std::string name;
    uint64_t bytes = 0;
    friend bool operator==(const File&, const File&) = default;
  };

  // What the program measured. `step` is the count of cairn_step calls when it did; the checkpoint may be a later one.
  struct Metric {
    double value = 0;  // may be infinite or no number
    int64_t step = 0;
    friend bool operator==(const Metric&, const Metric&) = default;
  };

  // A file to which the program appends, as it was at the save.
  struct Output {
    uint64_t bytes = 0;
    Hash128 end;  // of its last 4096 bytes, or of all where there are fewer
    friend bool operator==(const Output&, const Output&) = default;
  };

  std::string run_id;
  uint32_t epoch = 0;
  int64_t step = 0;   // the count of cairn_step calls
  int64_t label = 0;  // the application's own number, for people
  uint32_t world_size = 0;
  uint32_t writers = 0;  // of planner/writers.h, where ranks wrote files together; 0 = each its own
  std::string time;      // UTC, RFC 3339; for people, never compared
  std::string trigger;   // "interval", "preempt", …
  std::string parent;    // the checkpoint that this life restored; "" = it began fresh
  std::string tag;       // "" = none
  std::map<std::string, Metric> metrics;
  std::map<std::string, Output> outputs;  // by absolute path
  std::vector<File> shards;               // names of names::Shard; each has its sums file beside it
  uint64_t index_bytes = 0;
  Hash128 index_hash;
  uint64_t blobs_bytes = 0;
  Hash128 blobs_hash;
  uint64_t total_bytes = 0;  // of shards, sums, index and blobs
  std::string cairn_version;
  std::map<std::string, std::string> settings;  // those that a reader of the checkpoint may want to know

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// What a reader takes. 16,384 ranks with several files each make less than 10 MB.
inline constexpr uint64_t kMaxManifestBytes = 64 << 20;

// kInvalid when it would be longer than kMaxManifestBytes.
Result<std::string> EncodeManifest(const Manifest& manifest);

// kDamage with what is wrong; kMismatch for a newer version.
Result<Manifest> DecodeManifest(std::string_view text);

// Now, as Manifest::time has it: "2026-03-01T12:00:00Z".
std::string UtcNow();

// Seconds since 1970 of such a text; nothing when it is none.
std::optional<int64_t> ParseUtc(const std::string& text);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_MANIFEST_H_
