// What the shim shows to the dynamic linker, and what it asks of the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace {

std::string OutputOf(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  char buffer[4096];
  size_t count;
  while (pipe != nullptr && (count = fread(buffer, 1, sizeof buffer, pipe.get())) > 0)
    output.append(buffer, count);
  return output;
}

std::set<std::string> AllMatches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> matches;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
    matches.insert((*it)[1]);
  return matches;
}

TEST(ShimExports, AreTheFunctionsOfCairnHAndTheInterposersOnly) {
  std::stringstream header;
  header << std::ifstream(CAIRN_TEST_HEADER).rdbuf();
  std::set<std::string> expected = AllMatches(header.str(), R"(\nCAIRN_API [^(;]*\b(cairn_\w+)\()");
  ASSERT_GE(expected.size(), 15u);
  for (const char* name : {"cairn_shim_v1_get", "sigaction", "__sigaction", "signal", "bsd_signal", "ssignal",
                           "sysv_signal", "__sysv_signal", "sigset", "sigignore", "siginterrupt"}) {
    expected.insert(name);
  }
  EXPECT_EQ(AllMatches(OutputOf("nm -D --defined-only " CAIRN_TEST_SHIM), R"( [A-Za-z] (\S+)\n)"), expected);
}

TEST(ShimExports, NeedNoSymbolNewerThanGlibc217) {
  const std::set<std::string> versions =
      AllMatches(OutputOf("objdump -T " CAIRN_TEST_SHIM), R"(GLIBC_2\.([0-9]+))");
  ASSERT_FALSE(versions.empty());
  for (const std::string& minor : versions) EXPECT_LE(std::stoi(minor), 17) << "GLIBC_2." << minor;
}

TEST(ShimExports, NeedLibcAlone) {
  EXPECT_THAT(AllMatches(OutputOf("objdump -p " CAIRN_TEST_SHIM), R"(NEEDED +(\S+))"),
              testing::UnorderedElementsAre("libc.so.6", "libdl.so.2"));
}

}  // namespace
