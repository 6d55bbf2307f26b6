// PyTorch and the safetensors library read what Cairn saved, without Cairn.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/runtime/restore/four_ranks.h"
#include "tests/runtime/staging/ranks.h"

namespace cairn {
namespace {

TEST(TorchReader, LoadsWhatWasSavedByRuleAndByList) {
  const char* python = std::getenv("CAIRN_TEST_PYTHON");
  const Layout layout = FourRanks();
  EXPECT_TRUE(layout.grids.Has(2));
  EXPECT_FALSE(layout.grids.Has(3));
  Random random(1);
  TempDir dir;
  const auto index = SaveLayout(random, layout, {.setting = "none"}, dir.path());
  ASSERT_TRUE(index.ok()) << index.status().message();
  std::string arrays;
  for (const ArraySpec& array : layout.arrays) {
    arrays += (arrays.empty() ? "[[\"" : ", [\"") + array.name + "\", \"" +
              std::string(DTypeName(array.dtype)) + "\", " + array.shape.ToString() + "]";
  }
  const std::string command = std::string(python != nullptr ? python : "python3") +
                              " " CAIRN_TORCH_READER " " + dir.path() + " '" + arrays + "]'";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "set CAIRN_TEST_PYTHON to a Python that has torch and safetensors";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace cairn
