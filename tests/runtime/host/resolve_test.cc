#include "runtime/host/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace cairn {
namespace {

GetVariable From(std::map<std::string, std::string> variables) {
  return [v = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto it = v.find(name);
    if (it == v.end() || it->second.empty()) return std::nullopt;
    return it->second;
  };
}

TEST(ResolveSettings, PutsTheOptionAboveTheEnvironmentAboveTheSiteAboveTheFallback) {
  std::map<std::string, std::string> v = {{"CAIRN_SITE_KEEP", "last=7"}};
  EXPECT_EQ(ResolveSettings(From({}))->settings.keep, (KeepRules{{KeepRule::kLast, 2}}));
  EXPECT_EQ(ResolveSettings(From(v))->settings.keep, (KeepRules{{KeepRule::kLast, 7}}));
  v["CAIRN_KEEP"] = "last=5";
  EXPECT_EQ(ResolveSettings(From(v))->settings.keep, (KeepRules{{KeepRule::kLast, 5}}));
  v["CAIRN_PLUGIN_CAIRN_KEEP"] = "last=3";
  const auto r = ResolveSettings(From(v));
  EXPECT_EQ(r->settings.keep, (KeepRules{{KeepRule::kLast, 3}}));
  EXPECT_EQ(r->text[kSetting_keep], "last=3");
}

TEST(ResolveSettings, PutsTheSitesLimitAboveAll) {
  const auto r =
      ResolveSettings(From({{"CAIRN_PLUGIN_CAIRN_MAX_LIVES", "500"}, {"CAIRN_SITE_MAX_LIVES_LIMIT", "50"}}));
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->settings.max_lives, 50);
  EXPECT_EQ(r->text[kSetting_max_lives], "50");
  EXPECT_EQ(ResolveSettings(From({{"CAIRN_MAX_LIVES", "20"}, {"CAIRN_SITE_MAX_LIVES_LIMIT", "50"}}))
                ->settings.max_lives,
            20);
}

TEST(ResolveSettings, HoldsTheDrainAndTheLocalTierToTheSitesLimits) {
  std::map<std::string, std::string> v = {{"CAIRN_SITE_MAX_DRAIN", "500MB/s"},
                                          {"CAIRN_SITE_MAX_LOCAL", "64GiB"}};
  const auto unsaid = ResolveSettings(From(v));
  ASSERT_TRUE(unsaid.ok()) << unsaid.status().message();
  EXPECT_EQ(unsaid->settings.drain_limit, 500000000u);
  EXPECT_EQ(unsaid->text[kSetting_drain_limit], "500MB/s");
  EXPECT_EQ(unsaid->settings.local_limit, uint64_t{64} << 30);
  EXPECT_EQ(unsaid->text[kSetting_local_limit], "64GiB");
  EXPECT_THAT(unsaid->notes, testing::IsEmpty());

  v["CAIRN_DRAIN_LIMIT"] = "499.9MB/s";
  v["CAIRN_LOCAL_LIMIT"] = "64GB";
  const auto below = ResolveSettings(From(v));
  EXPECT_EQ(below->text[kSetting_drain_limit], "499.9MB/s");
  EXPECT_EQ(below->text[kSetting_local_limit], "64GB");
  EXPECT_THAT(below->notes, testing::IsEmpty());

  v["CAIRN_DRAIN_LIMIT"] = "none";
  v["CAIRN_LOCAL_LIMIT"] = "1TiB";
  const auto above = ResolveSettings(From(v));
  EXPECT_EQ(above->settings.drain_limit, 500000000u);
  EXPECT_EQ(above->settings.local_limit, uint64_t{64} << 30);
  EXPECT_THAT(
      above->notes,
      testing::UnorderedElementsAre(
          "CAIRN_DRAIN_LIMIT=none is more than this site allows: 500MB/s holds (max_drain in plugstack.conf)",
          "CAIRN_LOCAL_LIMIT=1TiB is more than this site allows: 64GiB holds (max_local in plugstack.conf)"));
}

TEST(ResolveSettings, NamesWhatALimitHasLoweredAsTheUserWroteIt) {
  const auto r =
      ResolveSettings(From({{"CAIRN_PLUGIN_CAIRN_MAX_LIVES", "500"}, {"CAIRN_SITE_MAX_LIVES_LIMIT", "50"}}));
  EXPECT_THAT(r->notes, testing::ElementsAre("--checkpoint-max-lives=500 is more than this site allows: 50 "
                                             "holds (max_lives_limit in plugstack.conf)"));
}

TEST(ResolveSettings, DoesNotTakeALimitThatItCannotReadForNone) {
  const auto r = ResolveSettings(From({{"CAIRN_SITE_MAX_DRAIN", "fast"}}));
  EXPECT_EQ(r.status().code(), Code::kInvalid);
  EXPECT_THAT(r.status().message(), testing::HasSubstr("plugstack.conf: max_drain=fast is not accepted"));
}

TEST(ResolveSettings, RefusesABadValueNamingIt) {
  const auto r = ResolveSettings(From({{"CAIRN_CHECKPOINT", "10x"}}));
  EXPECT_EQ(r.status().code(), Code::kInvalid);
  EXPECT_THAT(r.status().message(), testing::HasSubstr("CAIRN_CHECKPOINT=10x"));
  EXPECT_FALSE(ResolveSettings(From({{"CAIRN_LOG", "a\nSLURM_CAIRN_TOKEN=x"}})).ok());
}

TEST(ResolveSettings, ReadsTheSitesPortsInterfaceAndDirectories) {
  const auto r = ResolveSettings(From({{"CAIRN_SITE_PORTS", "40000-40100"},
                                       {"CAIRN_SITE_INTERFACE", "ib0"},
                                       {"CAIRN_SITE_DIRS", "/scratch:/work"}}));
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->first_port, 40000);
  EXPECT_EQ(r->last_port, 40100);
  EXPECT_EQ(r->interface, "ib0");
  EXPECT_EQ(r->allowed_dirs, "/scratch:/work");
  for (const char* ports : {"0-9", "9-8", "x", "1-70000", "5-"}) {
    EXPECT_FALSE(ResolveSettings(From({{"CAIRN_SITE_PORTS", ports}})).ok()) << ports;
  }
}

TEST(ResolveStep, TakesThePluginsAndSlurmsWord) {
  const StepIdentity s = ResolveStep(From({{"CAIRN_HOST_JOB", "22"},
                                           {"CAIRN_HOST_STEP", "1"},
                                           {"CAIRN_HOST_RESTART", "3"},
                                           {"SLURM_ARRAY_JOB_ID", "20"},
                                           {"SLURM_ARRAY_TASK_ID", "5"},
                                           {"SLURM_JOB_NAME", "a/b"},
                                           {"USER", "me"}}));
  EXPECT_EQ(s.job, 22u);
  EXPECT_EQ(s.step, 1u);
  EXPECT_EQ(s.restart, 3);
  EXPECT_EQ(s.array_job, 20u);
  EXPECT_EQ(s.array_task, 5u);
  EXPECT_EQ(s.job_name, "a_b");
  EXPECT_EQ(s.user, "me");
}

}  // namespace
}  // namespace cairn
