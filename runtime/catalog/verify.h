// VerifyCheckpoint: reads every byte of a checkpoint and compares it with the checksums.
#ifndef CAIRN_RUNTIME_CATALOG_VERIFY_H_
#define CAIRN_RUNTIME_CATALOG_VERIFY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/catalog/run_directory.h"
#include "runtime/formats/record.h"
#include "runtime/formats/sums.h"

namespace cairn {

struct Fault {
  std::string file;
  uint64_t offset = 0;  // of the bad block, bytes; 0 where the whole file is meant
  uint64_t bytes = 0;   // of the bad block; 0 where the whole file is meant
  std::string reason;
};

struct VerifyReport {
  uint64_t bytes = 0;         // read and compared
  std::vector<Fault> faults;  // by file and offset; empty = good
};

struct VerifyOptions {
  int threads = 1;
  // Called from any of the threads, one at a time, with the bytes that were checked so far and the total.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

// An error where the checkpoint cannot be judged (kIo, kPermission, kNotFound; kMismatch: a newer Cairn wrote it); damage is in the report.
Result<VerifyReport> VerifyCheckpoint(const RunDirectory& dir, const std::string& name,
                                      const VerifyOptions& options = {});

// The checksums of one file, checked against its record. kDamage as LoadCheckpoint.
Result<Sums> ReadSums(const std::string& checkpoint_path, const ShardRecord& record);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_VERIFY_H_
