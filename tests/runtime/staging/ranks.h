// Ranks in one process: program memory with halos, and whole saves and loads through real files.
#ifndef CAIRN_TESTS_RUNTIME_STAGING_RANKS_H_
#define CAIRN_TESTS_RUNTIME_STAGING_RANKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/layout.h"
#include "runtime/formats/index.h"
#include "runtime/restore/reader.h"
#include "runtime/staging/drain.h"
#include "runtime/staging/local_tier.h"
#include "tests/planner/oracle.h"

namespace cairn {

// A new folder under $TMPDIR or /tmp, removed with everything in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string ReadWholeFile(const std::string& path);
void FlipBit(const std::string& path, uint64_t bit);

// What one rank's program holds of a layout: each piece inside a larger, strided allocation.
class RankMemory {
 public:
  // Halos of 0 to 2 elements around every piece, at random.
  RankMemory(Random& random, const Layout& layout, uint32_t rank);

  void Fill();   // elements by ElementBytes; everything else is 0xEE
  void Spoil();  // everything is 0xEE
  // Reports with ADD_FAILURE the first element that is wrong, and the first halo byte that is not 0xEE.
  void Check() const;

  const std::vector<Dims>& strides() const { return strides_; }
  std::vector<void*> pointers();
  std::vector<Destination> destinations();

 private:
  struct Memory {
    std::vector<std::byte> bytes;
    int64_t origin = 0;  // of the piece's first element, bytes
  };
  int64_t OffsetOf(size_t piece, const Dims& at) const;  // of an element, in the piece's memory

  Layout layout_;
  std::vector<Piece> pieces_;
  std::vector<Memory> memory_;
  std::vector<Dims> strides_;
};

MayTakeFunction TakeAll();

// One rank's save, without pool or peers.
Result<std::vector<ShardRecord>> SaveRank(const LocalTier& tier, const ImagePlan& plan,
                                          const std::vector<Dims>& strides,
                                          const std::vector<void*>& pointers, const DrainOptions& options);

// All ranks of a layout save into `directory`, each through a local tier of its own. The index is what the leader would write.
Result<Index> SaveLayout(Random& random, const Layout& layout, const LocalTierOptions& local,
                         const std::string& directory);

std::vector<SourceFile> SourceFiles(const Index& index, const std::string& directory);

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_STAGING_RANKS_H_
