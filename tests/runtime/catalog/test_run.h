// TestRun: a run in a folder of its own, or in a bucket, and small real checkpoints in it.
#ifndef CAIRN_TESTS_RUNTIME_CATALOG_TEST_RUN_H_
#define CAIRN_TESTS_RUNTIME_CATALOG_TEST_RUN_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/commit.h"
#include "runtime/catalog/epoch.h"
#include "runtime/catalog/run_directory.h"
#include "runtime/formats/shard.h"
#include "runtime/formats/sums.h"
#include "tests/runtime/temp_dir.h"
#include "tests/support/memory_store.h"

namespace cairn {

inline Identity HolderOf(const std::string& job, uint32_t restart = 0) {
  return {"c1", job, "0", restart, "n1", 4711, 1000, "0.1.0", "2026-03-01T12:00:00Z"};
}

class TestRun {
 public:
  TestRun() : TestRun("") {}
  // "" = a new folder.
  explicit TestRun(const std::string& path)
      : dir_(*RunDirectory::Open(path.empty() ? temp_ / "run" : path, "test")) {}

  const RunDirectory& dir() const { return dir_; }
  std::string Path(const std::string& name) const { return dir_.PathOf(name); }
  bool Has(const std::string& name) const {
    return FileBytes(Path(name)).ok() || ListDirectory(Path(name)).ok();
  }

  // Claims the next epoch, whoever holds the newest.
  uint32_t Claim() {
    const auto newest = NewestEpoch(dir_);
    EXPECT_TRUE(newest.ok()) << newest.status().message();
    const auto epoch = ClaimEpoch(dir_, *newest ? (*newest)->epoch : 0, HolderOf("1"));
    EXPECT_TRUE(epoch.ok()) << epoch.status().message();
    return *epoch;
  }

  // An attempt with one shard of `data_bytes` U8 and its checksums: everything but what Commit adds.
  Attempt Write(uint32_t epoch, int64_t step, uint64_t data_bytes = 10) {
    const auto attempt = BeginAttempt(dir_, epoch, step);
    EXPECT_TRUE(attempt.ok()) << attempt.status().message();
    const ShardLayout layout = Layout(data_bytes);
    std::string file = layout.header;
    for (uint64_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i * 7 + i / 4096);
    EXPECT_TRUE(PublishFile(attempt->path + "/" + names::Shard(1), file).ok());
    Sums sums;
    sums.file_bytes = file.size();
    for (uint64_t b = 0; b < BlockCount(file.size()); ++b) {
      sums.blocks.push_back(Hash128Of(std::string_view(file).substr(b * kBlockBytes, kBlockBytes)));
    }
    EXPECT_TRUE(PublishFile(attempt->path + "/" + names::Sums(1), EncodeSums(sums)).ok());
    index_ = Index();
    index_.world_size = 1;
    index_.files = {{1, file.size(), sums.Root()}};
    index_.saved.arrays = {{"u", DType::kU8, false, {static_cast<int64_t>(data_bytes)}}};
    index_.saved.boxes = {{0, 0, layout.offsets[0], Box::Whole({static_cast<int64_t>(data_bytes)})}};
    return *attempt;
  }

  Result<Manifest> Commit(const Attempt& attempt, const std::string& parent = "",
                          const std::string& trigger = "request", Committers committers = Committers::kOne) {
    Manifest manifest;
    manifest.parent = parent;
    manifest.trigger = trigger;
    return cairn::Commit(dir_, attempt, index_, {{{"rng", BlobPolicy::kReseed, {"seed"}}}}, manifest,
                         committers);
  }

  // Writes and commits; the checkpoint's name.
  std::string Save(uint32_t epoch, int64_t step, const std::string& parent = "", uint64_t data_bytes = 10) {
    const Attempt attempt = Write(epoch, step, data_bytes);
    const auto manifest = Commit(attempt, parent);
    EXPECT_TRUE(manifest.ok()) << manifest.status().message();
    return attempt.name.ToString();
  }

  Listing List() const {
    auto listing = ListCheckpoints(dir_);
    EXPECT_TRUE(listing.ok()) << listing.status().message();
    return listing.ok() ? *std::move(listing) : Listing();
  }
  std::vector<std::string> CandidateNames() const {
    std::vector<std::string> names;
    for (const Checkpoint& c : Candidates(List())) names.push_back(c.name);
    return names;
  }

  // As a newer Cairn might have written it: another version, and members or bytes that nobody knows yet.
  void MakeManifestNewer(const std::string& name) const {
    std::string text = *ReadAll(Path(name + "/manifest.json"), 1 << 20);
    text.resize(text.rfind(",\n  \"checksum\""));
    text.replace(text.find("\"version\": 1"), 12, "\"version\": 3");
    text += ",\n  \"shards_by_number\": {}";
    std::ofstream(Path(name + "/manifest.json"))
        << text << ",\n  \"checksum\": \"" << Hash128Of(text).ToHex() << "\"\n}\n";
  }
  void MakeSumsNewer(const std::string& name) const {
    const std::string path = Path(name + "/" + names::Sums(1));
    std::string bytes = *ReadAll(path, 1 << 20);
    bytes.resize(bytes.size() - 16);
    bytes[8] = 2;
    bytes += "longer than now";
    const Hash128 hash = Hash128Of(bytes);
    std::ofstream(path, std::ios::binary)
        << bytes.append(reinterpret_cast<const char*>(hash.bytes.data()), 16);
  }

  void FlipByte(const std::string& file, uint64_t offset) const {
    auto content = ReadAll(Path(file), 1 << 30);
    ASSERT_TRUE(content.ok()) << content.status().message();
    content->at(offset) ^= 1;
    EXPECT_TRUE(OverwriteFile(Path(file), *content).ok());
  }

 private:
  static ShardLayout Layout(uint64_t data_bytes) {
    const ShardTensor tensor{"u", DType::kU8, Box::Whole({static_cast<int64_t>(data_bytes)})};
    return *LayOutShard({&tensor, 1});
  }

  TempDir temp_;
  RunDirectory dir_;
  Index index_;  // of the last attempt
};

// A run in a folder, and one in a bucket.
class OnBothTiers : public ::testing::TestWithParam<bool> {
 protected:
  bool in_bucket() const { return GetParam(); }

  const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  const StoreInUse in_use_{store_};
  TestRun run{in_bucket() ? "s3://bucket/a/run" : ""};
};

inline std::string TierName(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "Bucket" : "Folder";
}

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_CATALOG_TEST_RUN_H_
