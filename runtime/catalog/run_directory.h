// RunDirectory: one run's directory, with its identity and its journal. Every other function of the catalog
// takes one. It is a folder of a file system, or what lies below a prefix in a bucket (runtime/io/stores.h): the names are the same.
//
// Immutable after it was opened; may be copied and used from any thread. The catalog's functions do blocking
// I/O: never call them from the training path or a loop thread.
#ifndef CAIRN_RUNTIME_CATALOG_RUN_DIRECTORY_H_
#define CAIRN_RUNTIME_CATALOG_RUN_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/io/file.h"

namespace cairn {

// From what a run was made, when its first state is not its own: a fork, an import, or a run that began by --checkpoint-from.
struct Origin {
  std::string format;      // "cairn", "dcp", "hf", "safetensors"
  std::string path;        // absolute, of that run's directory, or of the file or folder
  std::string run_id;      // of another run: its id; else ""
  std::string checkpoint;  // of another run: its name; else ""
  std::string only = {};   // patterns of what is taken of it, by commas; "" = all

  friend bool operator==(const Origin&, const Origin&) = default;
};

// What RUN holds. It is written once and stays the same over all lives.
struct RunInfo {
  std::string id;       // 16 random hex digits
  std::string name;     // what the user called it; for people
  std::string created;  // UTC, RFC 3339
  std::optional<Origin> origin;

  friend bool operator==(const RunInfo&, const RunInfo&) = default;
};

class RunDirectory {
 public:
  // Opens the run in `path` (AbsolutePath), making the folder and RUN when they are not there; of several that do
  // so at once one makes the run and all open the same. `mode` is for every durable file that is made through
  // this object. kDamage when RUN cannot be read as such.
  static Result<RunDirectory> Open(const std::string& path, const std::string& name, FileMode mode = {},
                                   const std::optional<Origin>& origin = {});

  // Opens what is there; kNotFound when the folder holds no RUN.
  static Result<RunDirectory> OpenExisting(const std::string& path, FileMode mode = {});

  const std::string& path() const { return path_; }
  const RunInfo& info() const { return info_; }
  FileMode mode() const { return mode_; }
  // No folders, no rename: the protocols of epoch.cc, commit.cc and removal.cc differ there.
  bool in_bucket() const;

  // The full path of a name in the directory.
  std::string PathOf(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string PathOf(std::string_view folder, std::string_view name) const {
    return PathOf(folder) + "/" + std::string(name);
  }

  // Adds one line (a JSON object, without the newline) to the journal, for the life of this epoch (0 = it has none): in a directory with one
  // write to journal.jsonl, in a bucket by putting all lines of the life again (journal.cc). The journal is a courtesy to people: the caller may
  // log the error, no operation fails for it.
  Status Journal(uint32_t epoch, std::string_view json) const;

 private:
  class KeptLines;
  RunDirectory(std::string path, RunInfo info, FileMode mode);

  std::string path_;
  RunInfo info_;
  FileMode mode_;
  std::shared_ptr<KeptLines> kept_lines_;  // in a bucket
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_RUN_DIRECTORY_H_
