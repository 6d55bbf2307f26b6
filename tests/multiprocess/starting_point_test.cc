// --checkpoint-from, of what Cairn has not made, and of a part: whole runs of real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/catalog/checkpoints.h"
#include "tests/multiprocess/launcher.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kElements = 10007, kReplica = 1 << 20;

std::string Safetensors(const std::string& json, const std::string& data) {
  const uint64_t length = json.size();
  std::string out(reinterpret_cast<const char*>(&length), sizeof length);
  return out + json + data;
}

template <typename Value>
std::string Bytes(const std::vector<Value>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

// The toy's array after `steps` steps.
std::vector<double> ToyState(int64_t steps) {
  std::vector<double> u(kElements);
  for (int64_t i = 0; i < kElements; ++i) {
    double x = 1.0 + static_cast<double>(i) / static_cast<double>(kElements);
    for (int64_t step = 0; step < steps; ++step) x = std::fma(x, 1.0000001, 1e-9 * static_cast<double>(step));
    u[static_cast<size_t>(i)] = x;
  }
  return u;
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class BeginFromForeign : public ::testing::Test {
 protected:
  // A Hugging Face folder with the toy's state after 60 steps: two files, whose tensors are not aligned to anything.
  void MakeFolder() {
    std::filesystem::create_directory(source_);
    const std::vector<double> u = ToyState(60);
    const auto part = [&](const std::string& name, int64_t first, int64_t count, const std::string& more,
                          const std::string& data) {
      const std::string json = R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"u\":{\"saved_offsets\":[)" +
                               std::to_string(first) + R"(]}}"},)" + more +
                               R"("u":{"dtype":"F64","shape":[)" + std::to_string(count) +
                               R"(],"data_offsets":[)" + std::to_string(data.size()) + "," +
                               std::to_string(data.size() + static_cast<size_t>(count) * 8) + "]}}";
      const auto begin = u.begin() + first;
      Write(source_ + "/" + name, Safetensors(json, data + Bytes(std::vector<double>(begin, begin + count))));
    };
    part("model-00001-of-00002.safetensors", 0, 5001,
         R"("time":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)", Bytes<double>({30.0}));
    std::vector<double> replica;
    for (int64_t i = 0; i < kReplica; ++i) replica.push_back(static_cast<double>(i) + 15);
    part("model-00002-of-00002.safetensors", 5001, kElements - 5001,
         R"("replica":{"dtype":"F64","shape":[1048576],"data_offsets":[0,8388608]},)", Bytes(replica));
  }

  static std::vector<std::string> Args(int64_t steps) {
    return {"--n",     std::to_string(kElements), "--replica", std::to_string(kReplica),
            "--steps", std::to_string(steps)};
  }

  // Hashes of an undisturbed run to step 60.
  struct Hashes {
    std::string u, replica;
  };
  static Hashes Undisturbed() {
    TempDir tmp;
    Step step({.ranks = 1, .dir = tmp.path() + "/run", .args = Args(60), .env = {{"CAIRN_ON", "preempt"}}});
    EXPECT_TRUE(step.Join()) << step.Log();
    return {step.Hash(), step.rank(0).Line("replica")};
  }

  // What a job that begins from `from` says and reports to all its ranks in vain.
  std::string Refusal(const std::string& from, const std::map<std::string, std::string>& more = {}) {
    std::map<std::string, std::string> env = {{"CAIRN_FROM", from}};
    env.insert(more.begin(), more.end());
    Step step({.ranks = 2,
               .dir = tmp_.path() + "/refused" + std::to_string(++refused_),
               .args = {"--n", std::to_string(kElements), "--steps", "0"},
               .env = env,
               .job = 200 + refused_});
    EXPECT_TRUE(step.Join()) << step.Log();
    for (int r = 0; r < 2; ++r) EXPECT_EQ(step.rank(r).exit_code(), 4) << step.Log();
    return step.rank(1).Out();
  }

  TempDir tmp_;
  const std::string source_ = tmp_.path() + "/hf", dir_ = tmp_.path() + "/run";
  int refused_ = 0;
};

TEST_F(BeginFromForeign, EachByteIsReadOnceByThreeRanksAndSoInTheNextLife) {
  MakeFolder();
  const Hashes expected = Undisturbed();
  for (const int restart : {0, 1}) {  // the first saves nothing
    Step step({.ranks = 3,
               .dir = dir_,
               .args = Args(0),
               .env = {{"CAIRN_FROM", source_ + ":only=u,time,replica"}},
               .job = 101,
               .restart = restart});
    ASSERT_TRUE(step.Join()) << step.Log();
    EXPECT_EQ(step.Hash(), expected.u) << step.Log();
    int64_t read_bytes = 0;
    for (int r = 0; r < 3; ++r) {
      EXPECT_THAT(step.rank(r).Line("resumed"), StartsWith("0 0"));
      EXPECT_EQ(step.rank(r).Line("replica"), expected.replica);
      read_bytes += std::stoll(step.rank(r).Line("read"));
    }
    EXPECT_LT(read_bytes, 3 * kReplica * 8 / 2);  // of 1 MiB of doubles that three ranks hold
    EXPECT_THAT(step.rank(0).Err(),
                AllOf(HasSubstr("this run begins from " + source_ + ":only=u,time,replica"),
                      HasSubstr("has no checksums")));
  }
  EXPECT_EQ(RunDirectory::OpenExisting(dir_)->info().origin,
            (Origin{"safetensors", source_, "", "", "u,time,replica"}));
}

TEST_F(BeginFromForeign, WhatIsNotWholeStopsAllRanksByFileAndOffset) {
  MakeFolder();
  const std::string first = source_ + "/model-00001-of-00002.safetensors", good = ReadFile(first);
  const std::string from = source_ + ":only=u,time";
  const auto with = [&](const std::string& bytes) {
    Write(first, bytes);
    return Refusal(from);
  };
  EXPECT_THAT(with(good.substr(0, 100)), AllOf(HasSubstr(first), HasSubstr("100")));
  EXPECT_THAT(with(good.substr(0, good.size() - 8)),
              AllOf(HasSubstr(first), HasSubstr("the tensors end at byte")));
  std::string overlapping = good;
  overlapping.replace(overlapping.find("\"data_offsets\":[8,"), 18, "\"data_offsets\":[0,");
  EXPECT_THAT(with(overlapping), HasSubstr(first));
  std::filesystem::remove(first);
  EXPECT_THAT(Refusal(from), HasSubstr("of array \"u\", shape [10007], nothing holds [0:5001]"));
}

TEST_F(BeginFromForeign, DifferencesAreNamedWithBothForms) {
  std::filesystem::create_directory(source_);
  const std::vector<float> u(kElements);
  const std::string more = std::to_string(kElements * 4);
  Write(source_ + "/model.safetensors",
        Safetensors(R"({"u":{"dtype":"F32","shape":[10007],"data_offsets":[0,)" + more + "]}}", Bytes(u)));
  EXPECT_THAT(Refusal(source_), AllOf(HasSubstr("u: saved [10007] F32, registered [10007] F64"),
                                      HasSubstr("time: registered [] F64, not in the checkpoint"),
                                      HasSubstr(source_ + ":weights")));
  EXPECT_THAT(Refusal(source_ + ":weights"),
              HasSubstr("model.*: to be loaded, but the program has registered nothing of such a name"));
  Write(source_ + "/model.safetensors.index.json",
        R"({"weight_map":{"u":"model.safetensors","time":"model.safetensors"}})");
  EXPECT_THAT(Refusal(source_, {{"CAIRN_MATCH", "allow-missing"}}),
              HasSubstr("model.safetensors: does not hold \"time\""));
}

TEST_F(BeginFromForeign, OfAnotherRunAPartIsTakenAndStepsAreCountedAnew) {
  const std::vector<std::string> args = {"--n", std::to_string(kElements), "--steps", "60", "--step-us", "0"};
  std::string hash;
  {
    Step step({.ranks = 2, .dir = source_, .args = args});
    ASSERT_TRUE(step.Join()) << step.Log();
    hash = step.Hash();
  }
  Step step({.ranks = 3,
             .dir = dir_,
             .args = {"--n", std::to_string(kElements), "--steps", "0"},
             .env = {{"CAIRN_FROM", source_ + "@60:only=u,time"}},
             .job = 101});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.Hash(), hash);
  EXPECT_THAT(step.rank(2).Line("resumed"), StartsWith("0 0 seed 0"));  // nor is what it has of its own
  EXPECT_EQ(RunDirectory::OpenExisting(dir_)->info().origin->only, "u,time");
}

}  // namespace
}  // namespace cairn::testing
