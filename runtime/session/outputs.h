// Outputs: files to which the program only ever appends (cairn_add_output). Their lengths are saved with the state, and a restore cuts them back to
// them, so that no step stands in them twice.
//
// 1. At a save the owner measures each file: its length, and the hash of its last bytes. A file that was never there has length 0. One that
//    was, and is away now (a mount is missing), is left out, as is what cannot be read: a cut to 0 bytes would be right for any file. All that travels as one more blob of the member, whose name no item can have, into the manifest, as metrics do.
// 2. Before the member reports its record it fsyncs the files: what a checkpoint counts outlives the node.
// 3. A restore that all members agree has succeeded hands the manifest's list to all. Each cuts its own files, by path. One that is shorter than it was,
//    or has other bytes before the cut, is another file by now (moved, rotated, written anew): it is left as it is, and said.
// 4. Nothing is cut by a run that begins from another run's checkpoint: the files are the other run's. Nor by a life that could not publish its parent: what
//    it loaded is no part of the line yet, and the lines behind the cut may belong to a newer checkpoint that is.
//
// One thread at a time.
#ifndef CAIRN_RUNTIME_SESSION_OUTPUTS_H_
#define CAIRN_RUNTIME_SESSION_OUTPUTS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/manifest.h"

namespace cairn {

inline constexpr std::string_view kOutputsBlob{"\0outputs", 8};

using OutputLengths = std::map<std::string, Manifest::Output>;  // by absolute path

// Any bytes: kDamage for what Outputs::Measure cannot have made.
Result<OutputLengths> DecodeOutputs(std::string_view bytes);

class Outputs {
 public:
  // Relative to the working directory of now; links are followed now. kInvalid for what is there and no regular file, for a folder that is not
  // there, for a path that was added before, is no UTF-8, or is too long with all the others.
  Status Add(const std::string& path);

  const std::vector<std::string>& paths() const { return paths_; }  // absolute
  size_t max_bytes() const { return max_bytes_; }                   // of Measure

  std::string Measure() const;
  // Best effort: a file that cannot be made durable is not worth a checkpoint.
  void Sync() const;

  // What became of the files, for the user: as it should be, or not.
  struct CutReport {
    std::vector<std::string> notes, warnings;
  };
  CutReport CutBack(const OutputLengths& saved) const;

 private:
  std::vector<std::string> paths_;
  mutable std::set<std::string> seen_;  // those of which a file was ever there
  size_t max_bytes_ = 0;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_OUTPUTS_H_
