// SampleRun: a run's directory with real checkpoints, committed through the catalog.
#ifndef CAIRN_TESTS_RUNTIME_COMMAND_SAMPLE_RUN_H_
#define CAIRN_TESTS_RUNTIME_COMMAND_SAMPLE_RUN_H_

#include <cstdint>
#include <map>
#include <string>

#include "runtime/catalog/run_directory.h"
#include "runtime/formats/manifest.h"

namespace cairn {

class SampleRun {
 public:
  SampleRun();  // in a new folder, named "train", with epoch 1 begun fresh

  // A checkpoint of two ranks: "w", F32 [4, 8], one box of two rows in each of two files; "field", F64 of the
  // Fortran program's shape [3, 2], in the first; the blob "rng" of both ranks, 3 and 5 bytes. Its label is
  // ten times the step. Returns its name.
  std::string Commit(int64_t step, const std::string& trigger = "interval",
                     const std::map<std::string, Manifest::Metric>& metrics = {});

  // The next life, which goes on from `parent` ("" = fresh).
  void BeginLife(const std::string& parent);

  const std::string& path() const { return path_; }
  const RunDirectory& dir() const { return dir_; }

 private:
  std::string path_;
  RunDirectory dir_;
  uint32_t epoch_ = 0;
  std::string parent_;
};

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_COMMAND_SAMPLE_RUN_H_
