// MadeRun: a run's directory with one checkpoint of arrays that the test chose, cut into boxes as it chose.
#ifndef CAIRN_TESTS_RUNTIME_INTEROP_MADE_RUN_H_
#define CAIRN_TESTS_RUNTIME_INTEROP_MADE_RUN_H_

#include <string>
#include <vector>

#include "planner/base/box.h"
#include "planner/layout.h"
#include "runtime/catalog/run_directory.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {

struct MadeArray {
  ArraySpec spec;
  std::string bytes;       // the whole array, row-major; made up when empty
  std::vector<Box> boxes;  // the whole array when empty; the j-th box of each array lies in file j + 1
};

class MadeRun {
 public:
  // Throws on any error.
  explicit MadeRun(std::vector<MadeArray> arrays, int64_t step = 100);

  const std::string& path() const { return dir_.path(); }
  const RunDirectory& dir() const { return dir_; }
  const std::string& checkpoint() const { return checkpoint_; }
  const std::vector<MadeArray>& arrays() const { return arrays_; }
  const std::string& BytesOf(const std::string& name) const;

 private:
  TempDir temp_;
  RunDirectory dir_;
  std::vector<MadeArray> arrays_;
  std::string checkpoint_;
};

// Arrays of all kinds: every width, 0-dim, empty, bool, fp8, bf16, Fortran order, cut by rows, by columns and in blocks.
std::vector<MadeArray> AllKinds();

// An array "kind.<its type in safetensors' spelling>" of each element type, 3 by 8 elements in two boxes, of 3 and of 5 columns.
std::vector<MadeArray> OneOfEachType();

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_INTEROP_MADE_RUN_H_
