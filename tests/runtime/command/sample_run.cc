#include "tests/runtime/command/sample_run.h"

#include <stdexcept>

#include "runtime/catalog/commit.h"
#include "runtime/catalog/epoch.h"
#include "runtime/formats/names.h"
#include "runtime/formats/shard.h"
#include "runtime/formats/sums.h"
#include "tests/runtime/command/program.h"

namespace cairn {
namespace {

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return *std::move(result);
}
void Must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

// Writes file `number` with its sums; returns its record and where each tensor lies.
ShardRecord WriteShard(const std::string& folder, uint32_t number, const std::vector<ShardTensor>& tensors,
                       std::vector<uint64_t>* offsets) {
  const ShardLayout layout = Must(LayOutShard(tensors));
  std::string bytes = layout.header;
  while (bytes.size() < layout.file_bytes) bytes += static_cast<char>('a' + bytes.size() % 26);
  Sums sums{bytes.size(), {}};
  for (uint64_t b = 0; b < BlockCount(bytes.size()); ++b) {
    sums.blocks.push_back(
        Hash128Of(std::string_view(bytes).substr(b * kBlockBytes, BlockBytes(bytes.size(), b))));
  }
  WriteText(folder + "/" + names::Shard(number), bytes);
  WriteText(folder + "/" + names::Sums(number), EncodeSums(sums));
  *offsets = layout.offsets;
  return {number, bytes.size(), sums.Root()};
}

}  // namespace

SampleRun::SampleRun() : path_(NewFolder() + "/run7"), dir_(Must(RunDirectory::Open(path_, "train"))) {
  BeginLife("");
}

void SampleRun::BeginLife(const std::string& parent) {
  Identity self;
  self.job = "12";
  self.step = "0";
  self.node = "n1";
  epoch_ = Must(ClaimEpoch(dir_, epoch_, self));
  Must(PublishParent(dir_, epoch_, parent));
  parent_ = parent;
}

std::string SampleRun::Commit(int64_t step, const std::string& trigger,
                              const std::map<std::string, Manifest::Metric>& metrics) {
  const Attempt attempt = Must(BeginAttempt(dir_, epoch_, step));
  const Box upper{{0, 0}, {2, 8}}, lower{{2, 0}, {2, 8}}, whole{{0, 0}, {2, 3}};
  Index index;
  index.world_size = 2;
  index.saved.arrays = {{"w", DType::kF32, false, {4, 8}}, {"field", DType::kF64, true, {2, 3}}};
  std::vector<uint64_t> first, second;
  index.files.push_back(
      WriteShard(attempt.path, 1, {{"w", DType::kF32, upper}, {"field", DType::kF64, whole}}, &first));
  index.files.push_back(WriteShard(attempt.path, 2, {{"w", DType::kF32, lower}}, &second));
  index.saved.boxes = {{0, 0, first[0], upper}, {0, 1, second[0], lower}, {1, 0, first[1], whole}};
  Blobs blobs;
  blobs.items.push_back({"rng", BlobPolicy::kReseed, {"abc", "defgh"}});
  Manifest manifest;
  manifest.run_id = dir_.info().id;
  manifest.label = 10 * step;
  manifest.world_size = 2;
  manifest.trigger = trigger;
  manifest.metrics = metrics;
  manifest.parent = parent_;
  manifest.cairn_version = "0.1.0";
  manifest.settings = {{"CAIRN_KEEP", "last=2"}};
  Must(cairn::Commit(dir_, attempt, index, blobs, manifest));
  return attempt.name.ToString();
}

}  // namespace cairn
