// The pages of docs/reference and docs/man that describe the command and the settings are what the program says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "tests/runtime/command/program.h"
#include "tests/runtime/command/sample_run.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string Page(const std::string& name) { return ReadText(CAIRN_SOURCE_DIR "/docs/reference/" + name); }
std::string ManPage(const std::string& name) { return ReadText(CAIRN_SOURCE_DIR "/docs/man/" + name); }

std::set<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) found.insert((*it)[1]);
  return found;
}

std::set<std::string> Subcommands() {
  const std::string help = RunCairn({"--help"}).out;
  return Matches(help.substr(help.find("Subcommands:")), "\n  ([a-z]+) ");
}

// Every member's name, at any depth; the members of `settings` are the user's own.
void Keys(const Json& json, std::set<std::string>* keys) {
  if (json.is_array()) {
    for (const Json& element : json) Keys(element, keys);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    keys->insert(key);
    if (key != "settings" || value.is_array()) Keys(value, keys);
  }
}

TEST(Reference, ListsEverySubcommandAndNoOther) {
  const std::set<std::string> subcommands = Subcommands();
  EXPECT_THAT(subcommands, ::testing::SizeIs(::testing::Ge(13U)));
  EXPECT_EQ(Matches(Page("cairn.md"), "\n## `cairn ([a-z]+)"), subcommands);
  EXPECT_EQ(Matches(ManPage("cairn.1"), "\n\\.TP\n\\\\fB([a-z]+)"), subcommands);
}

TEST(Reference, EverySubcommandsHelpHasAnExample) {
  for (const std::string& subcommand : Subcommands()) {
    const Outcome help = RunCairn({subcommand, "--help"});
    EXPECT_EQ(help.code, 0) << subcommand;
    EXPECT_THAT(help.out, HasSubstr("Example:\n")) << subcommand;
    EXPECT_THAT(help.out, HasSubstr("cairn " + subcommand)) << subcommand;
  }
}

TEST(Reference, DescribesEveryJsonField) {
  SampleRun run;
  run.Commit(100);
  WriteText(
      run.path() + "/journal.jsonl",
      R"({"event":"life","time":"t","epoch":1,"job":"1","step":"0","restart":0,"node":"n","world_size":1})"
      "\n");
  const std::string state = NewFolder();
  WriteText(state + "/cairn/runs.jsonl", R"({"job":1,"step":0,"restart":0,"dir":"/x","name":"n","time":1})"
                                         "\n");
  const std::string exported = NewFolder();
  const std::string page = Page("cairn.md");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"ls", run.path()},
                                                    {"show", run.path()},
                                                    {"verify", run.path()},
                                                    {"diff", run.path(), run.path()},
                                                    {"report", run.path(), "-o", NewFolder() + "/r.html"},
                                                    {"export", run.path(), "--to", "hf", exported},
                                                    {"import", "--from", "hf", exported, NewFolder()},
                                                    {"fork", run.path(), NewFolder()},
                                                    {"tag", run.path(), "best"},
                                                    {"pin", run.path()},
                                                    {"plan", run.path(), "--ranks", "2"},
                                                    {"prune", run.path()},
                                                    {"push", run.path(), NewFolder() + "/copy"},
                                                    {"why", run.path()},
                                                    {"runs"},
                                                    {"doctor", run.path()},
                                                    {"settings"}}) {
    std::vector<std::string> line = arguments;
    line.emplace_back("--json");
    std::set<std::string> keys;
    Keys(RunCairn(line, {{"XDG_STATE_HOME", state}}).Json(), &keys);
    const size_t begin = page.find("\n## `cairn " + arguments[0]);
    ASSERT_NE(begin, std::string::npos) << arguments[0];
    const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
    EXPECT_FALSE(keys.empty());
    for (const std::string& key : keys)
      EXPECT_THAT(section, HasSubstr("`" + key + "`")) << "cairn " << arguments[0];
  }
}

// The names are an interface: whoever adds one says so on the page, and none goes.
TEST(Reference, ListsEveryEventOfTheJournalWithItsFields) {
  std::map<std::string, std::set<std::string>> written;
  const std::regex call("(?:[Jj]ournal|AppendEvent)\\(([^;{]*)(\\{\\{[^;]*)?;");
  for (const auto& file : std::filesystem::recursive_directory_iterator(CAIRN_SOURCE_DIR "/runtime")) {
    if (file.path().extension() != ".cc") continue;
    const std::string source = ReadText(file.path());
    for (std::sregex_iterator it(source.begin(), source.end(), call), end; it != end; ++it) {
      for (const std::string& event : Matches((*it)[1], "\"([a-z_]+)\""))
        written[event].merge(Matches((*it)[2], "\\{\"([a-z_]+)\","));
    }
  }
  std::map<std::string, std::set<std::string>> told;
  const std::string page = Page("journal.md");
  const std::regex row("\n\\| `([a-z_]+)` \\| ([^|]*) \\|");
  for (std::sregex_iterator it(page.begin(), page.end(), row), end; it != end; ++it)
    told[(*it)[1]] = Matches((*it)[2], "`([a-z_]+)`");
  EXPECT_THAT(written, ::testing::SizeIs(::testing::Ge(20U)));
  EXPECT_EQ(told, written);
}

TEST(Reference, HasTheTableOfSettingsAsTheProgramPrintsIt) {
  const Outcome settings = RunCairn({"settings", "--markdown"});
  ASSERT_EQ(settings.code, 0);
  EXPECT_THAT(settings.out, HasSubstr("| `--checkpoint-require` | `CAIRN_REQUIRE` | `require=` | `no` | fail "
                                      "rather than run unprotected |\n"));
  EXPECT_THAT(Page("settings.md"), HasSubstr(settings.out))
      << "put the output of `cairn settings --markdown` into docs/reference/settings.md";
}

TEST(Reference, HasTheSettingsInTheManualAsTheProgramPrintsThem) {
  const Outcome settings = RunCairn({"settings", "--man"});
  ASSERT_EQ(settings.code, 0);
  EXPECT_THAT(settings.out,
              HasSubstr(".TP\n\\fB\\-\\-checkpoint\\-require\\fR, \\fBCAIRN_REQUIRE\\fR\nfail rather than "
                        "run unprotected; default: no\n"));
  EXPECT_THAT(ManPage("cairn.7"), HasSubstr(settings.out))
      << "put the output of `cairn settings --man` into docs/man/cairn.7";
}

}  // namespace
}  // namespace cairn
