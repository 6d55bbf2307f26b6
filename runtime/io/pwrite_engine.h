// The engine of threads, each with one block in its hands. Works everywhere. runtime/io/write_engine.h is the manual.
#ifndef CAIRN_RUNTIME_IO_PWRITE_ENGINE_H_
#define CAIRN_RUNTIME_IO_PWRITE_ENGINE_H_

#include <memory>

#include "runtime/io/write_engine.h"

namespace cairn {

// Where not so many threads are to be had it makes do with fewer; without any, Submit itself writes.
std::unique_ptr<WriteEngine> MakePwriteEngine(int threads = 4);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_PWRITE_ENGINE_H_
