#include "runtime/io/write_engine.h"

#include "runtime/io/pwrite_engine.h"
#include "runtime/io/uring_engine.h"

// This function alone: a test build puts another one in its place (tests/fault/library).

namespace cairn {

std::unique_ptr<WriteEngine> MakeWriteEngine(Writer writer) {
  if (writer != Writer::kPwrite) {
    if (auto engine = MakeUringEngine(); engine.ok()) return *std::move(engine);
  }
  return MakePwriteEngine();
}

}  // namespace cairn
