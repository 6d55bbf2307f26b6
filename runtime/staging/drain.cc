#include "runtime/staging/drain.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <span>
#include <system_error>
#include <utility>

#include "runtime/io/stores.h"
#include "runtime/io/thread.h"
#include "runtime/staging/block_writer.h"
#include "runtime/staging/shard_file.h"
#include "runtime/staging/shard_upload.h"

namespace cairn {
namespace {

// Lowers the calling thread's priority, so that the program's own threads come first. Priorities are per thread on Linux; a refusal leaves
// the thread as it was.
void YieldToComputeThreads() {
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10));
  const sched_param none{};
  static_cast<void>(sched_setscheduler(0, SCHED_BATCH, &none));
}

// `writer` is a BlockWriter or a ShardUpload.
template <typename WriterOfShards>
Status WriteAll(WriterOfShards& writer, DrainControl& control) {
  if (!control.hurried()) {
    try {
      StartThread("cairn-drain", [&] {
        YieldToComputeThreads();
        writer.Run(/*gently=*/true);
      }).join();
    } catch (const std::system_error&) {
      // No thread is to be had: this one does it all.
    }
  }
  if (!writer.done()) writer.Run(/*gently=*/false);
  return writer.failure();
}

Result<std::vector<ShardRecord>> DrainToFiles(MemorySlot& slot, const ImagePlan& plan,
                                              const DrainOptions& options, DrainControl& control,
                                              NewFiles& files) {
  std::vector<ShardFile> shards;
  for (const Image& image : plan.images) {
    CAIRN_ASSIGN_OR_RETURN(ShardFile shard, ShardFile::Create(image.number, image.size_bytes,
                                                              options.directory, options.direct, files));
    shards.push_back(std::move(shard));
  }
  const auto content = [&](size_t shard, uint64_t block, size_t) {
    return slot.image(shard) + block * kBlockBytes;
  };
  const BlockWriter::Options writing{options.make_engine, options.bytes_per_second, content};
  BlockWriter writer(shards, writing, control);
  CAIRN_RETURN_IF_ERROR(WriteAll(writer, control));
  return FinishShards(shards, options.directory, files);
}

Result<std::vector<ShardRecord>> DrainToObjects(MemorySlot& slot, const ImagePlan& plan,
                                                const DrainOptions& options, DrainControl& control,
                                                NewFiles& files) {
  ShardUpload upload(options.directory, options.bytes_per_second, control);
  for (size_t i = 0; i < plan.images.size(); ++i) {
    const Image& image = plan.images[i];
    CAIRN_RETURN_IF_ERROR(upload.Begin(image.number, {slot.image(i), image.size_bytes}));
  }
  CAIRN_RETURN_IF_ERROR(WriteAll(upload, control));
  return upload.Finish(files);
}

}  // namespace

Result<std::vector<ShardRecord>> Drain(MemorySlot& slot, const ImagePlan& plan, const DrainOptions& options,
                                       DrainControl& control) {
  NewFiles files(options.mode);
  Result<std::vector<ShardRecord>> records = IsObjectPath(options.directory)
                                                 ? DrainToObjects(slot, plan, options, control, files)
                                                 : DrainToFiles(slot, plan, options, control, files);
  if (!records.ok()) {
    return records.status().Annotate("after " + std::to_string(control.bytes_written()) + " of " +
                                     std::to_string(plan.bytes) + " bytes of this rank");
  }
  files.Keep();
  Hasher128 content;
  for (const ShardRecord& record : *records) content.Update(std::as_bytes(std::span(record.sums_root.bytes)));
  slot.sidecar().MarkHashed(content.Finish());
  return records;
}

}  // namespace cairn
