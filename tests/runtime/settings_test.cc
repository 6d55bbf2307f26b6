#include "runtime/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>

namespace cairn {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Variables = std::map<std::string, std::string>;

Result<Settings> Parse(const Variables& variables) {
  return ParseSettings([&](const std::string& name) -> std::optional<std::string> {
    auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  });
}

Settings Parsed(const Variables& variables) {
  Result<Settings> settings = Parse(variables);
  EXPECT_TRUE(settings.ok()) << settings.status().message();
  return settings.ok() ? *settings : Settings();
}

std::string Refusal(SettingId id, std::string_view value) {
  Status status = CheckSetting(id, value);
  EXPECT_EQ(status.code(), Code::kInvalid) << value;
  return status.message();
}

TEST(ParseDuration, ReadsEveryUnit) {
  const std::pair<const char*, Nanoseconds> cases[] = {
      {"10m", minutes(10)},   {"90s", seconds(90)},
      {"1.5h", minutes(90)},  {"500ms", milliseconds(500)},
      {"2d", hours(48)},      {"0.25s", milliseconds(250)},
      {"0s", seconds(0)},     {"1.0000000019s", Nanoseconds(1000000001)},
      {"3650d", hours(87600)}};
  for (const auto& [text, expected] : cases) {
    Result<Nanoseconds> duration = ParseDuration(text);
    ASSERT_TRUE(duration.ok()) << text;
    EXPECT_EQ(*duration, expected) << text;
  }
}

TEST(ParseDuration, ReadsTheClockFormsThatSlurmWrites) {
  EXPECT_EQ(*ParseDuration("00:10:00"), minutes(10));
  EXPECT_EQ(*ParseDuration("1:02:03"), hours(1) + minutes(2) + seconds(3));
  EXPECT_EQ(*ParseDuration("36:00:00"), hours(36));
  EXPECT_EQ(*ParseDuration("2-01:00:09"), hours(49) + seconds(9));
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* text : {"",
                           "10",
                           "m",
                           "10 m",
                           "-5m",
                           "+5m",
                           "1.m",
                           ".5h",
                           "1,5h",
                           "10x",
                           "10mm",
                           "1e3s",
                           "0x10s",
                           "10:00",
                           "10:60:00",
                           "1-24:00:00",
                           "10:00:00x",
                           "10:0:00",
                           "3651d",
                           "99999999999999999999s",
                           "9223372036854775807d"}) {
    Result<Nanoseconds> duration = ParseDuration(text);
    ASSERT_FALSE(duration.ok()) << text;
    EXPECT_EQ(duration.status().code(), Code::kInvalid);
    EXPECT_THAT(duration.status().message(),
                AllOf(HasSubstr("'" + std::string(text) + "'"), HasSubstr("[D-]HH:MM:SS")));
  }
}

TEST(FormatDuration, IsForPeople) {
  EXPECT_EQ(FormatDuration(std::chrono::microseconds(400)), "0.4 ms");
  EXPECT_EQ(FormatDuration(milliseconds(250)), "250 ms");
  EXPECT_EQ(FormatDuration(milliseconds(12340)), "12.3 s");
  EXPECT_EQ(FormatDuration(seconds(250)), "4 m 10 s");
  EXPECT_EQ(FormatDuration(minutes(185)), "3 h 5 m");
  EXPECT_EQ(FormatDuration(hours(52)), "2 d 4 h");
  EXPECT_EQ(FormatDuration(milliseconds(59999)), "1 m 0 s");
}

TEST(CheckSetting, AcceptsEveryDocumentedForm) {
  const std::pair<SettingId, std::vector<const char*>> cases[] = {
      {kSetting_checkpoint,
       {"on", "off", "auto", "", "(null)", "10m", "1.5h", "500ms", "1-00:00:00", "500steps", "1steps"}},
      {kSetting_dir, {"/scratch/%u/%j", "relative/dir", "s3://bucket/prefix"}},
      {kSetting_from, {"/scratch/run7", "../run7@1200", "/scratch/run7@best"}},
      {kSetting_resume, {"auto", "never", "require", "0", "1200"}},
      {kSetting_match, {"auto", "strict", "allow-missing", "allow-extra", "allow-extra,allow-missing"}},
      {kSetting_require, {"yes", "no", "on", "off", "1", "0", "", "(null)"}},
      {kSetting_local, {"auto", "none", "/local/scratch"}},
      {kSetting_on, {"all", "preempt", "end,interval", "preempt,timelimit,request,interval,end"}},
      {kSetting_keep,
       {"last=1", "last=12", "every=6h", "every=500steps", "best=3:val_loss:min", "best=1:acc/top-1:max",
        "last=2,every=1-00:00:00,every=5000steps,best=3:val_loss:min,best=1:acc:max"}},
      {kSetting_copy,
       {"none", "/archive/%u/run7", "copies,every=6h", "s3://lab/run7", "s3://lab/a/b,every=1-00:00:00"}},
      {kSetting_mode, {"0640", "640", "0600", "0777"}},
      {kSetting_notice, {"auto", "90s", "0s"}},
      {kSetting_after, {"auto", "requeue", "wait", "exit", "exit=0", "exit=255"}},
      {kSetting_max_lives, {"1", "100"}},
      {kSetting_files, {"per-rank", "per-node", "1", "64"}},
      {kSetting_strikes, {"1", "44"}},
      {kSetting_mtbf, {"24h", "30d", "90m"}},
      {kSetting_signal, {"none", "USR1", "SIGUSR1", "10", "SIGHUP", "34", "64"}},
      {kSetting_attach, {"torch", "none"}},
      {kSetting_save_timeout, {"10m"}},
      {kSetting_exchange, {"auto", "tcp", "mpi"}},
      {kSetting_writer, {"auto", "io_uring", "pwrite"}},
      {kSetting_s3_style, {"auto", "path", "virtual"}},
      {kSetting_drain_limit, {"none", "500MB/s", "1.5GiB/s", "1kB/s"}},
      {kSetting_local_limit, {"none", "64GiB", "1.5TB", "1kB", "2TiB"}},
      {kSetting_rehearse,
       {"", "(null)", "on", "off", "auto", "ranks=2", "until=30,save-at=10",
        "ranks=2,save-at=20,until=25,tolerance=1e-5,dir=/a b", "tolerance=0", "tolerance=0.5",
        "tolerance=1.5e+2"}},
      {kSetting_rehearsal, {"none", "20", "20,25", "1,2,3"}},
      {kSetting_log, {"quiet", "/tmp/log"}},
  };
  for (const auto& [id, values] : cases) {
    for (const char* value : values)
      EXPECT_TRUE(CheckSetting(id, value).ok()) << CheckSetting(id, value).message();
  }
}

TEST(CheckSetting, RefusesEverythingElse) {
  const std::pair<SettingId, std::vector<const char*>> cases[] = {
      {kSetting_checkpoint, {"10x", "10", "0s", "0steps", "-1steps", "steps", "yes", "ON", " 10m", "10m "}},
      {kSetting_dir, {""}},
      {kSetting_from, {""}},
      {kSetting_resume, {"", "always", "-1", "12x"}},
      {kSetting_match, {"", "loose", "strict,allow-extra", "allow-missing,", "missing"}},
      {kSetting_require, {"maybe"}},
      {kSetting_local, {"", "scratch", "./x"}},
      {kSetting_on, {"", "resize", "preempt,", ",", "preempt;end", "all,end", "end,all"}},
      {kSetting_attach, {"", "mpi", "auto", "TORCH"}},
      {kSetting_keep,
       {"",
        "2",
        "last",
        "last=",
        "last=0",
        "last=-1",
        "last=2,",
        ",last=2",
        "last=2,,every=1h",
        "every=",
        "every=0s",
        "every=0steps",
        "every=10",
        "every=10x",
        "best=3",
        "best=3:loss",
        "best=0:loss:min",
        "best=3:loss:least",
        "best=3::min",
        "best=3:a b:min",
        "best=3:loss:min:",
        "best=:loss:min",
        "keep=2"}},
      {kSetting_copy,
       {"", ",every=6h", "/a,", "/a,every=", "/a,every=0s", "/a,every=10steps", "/a,last=2",
        "/a,every=6h,every=7h", "s3://lab", "s3://lab/", "s3:///run7", "s3://lab,every=6h",
        "http://lab/run7"}},
      {kSetting_mode, {"", "0300", "0440", "0577", "1777", "0888", "64", "rw-r-----", "00640"}},
      {kSetting_notice, {"", "30", "none"}},
      {kSetting_after, {"", "exit=", "exit=256", "exit=-1", "stay"}},
      {kSetting_max_lives, {"", "0", "-1", "many", "2147483648"}},
      {kSetting_files, {"", "0", "-1", "per_node", "node", "2147483648"}},
      {kSetting_exchange, {"", "TCP", "rdma"}},
      {kSetting_writer, {"", "aio", "IO_URING"}},
      {kSetting_s3_style, {"", "host"}},
      {kSetting_drain_limit,
       {"", "500", "500MB", "0MB/s", "-1MB/s", "1.GB/s", "5mB/s", "99999999999GB/s", "off"}},
      {kSetting_local_limit, {"", "64", "64G", "0GB", "-1GB", "1.GB", "500MB/s", "9999999999TB", "off"}},
      {kSetting_rehearse,
       {"2", "none", "yes", "ranks", "ranks=", "ranks=0", "ranks=2,", ",ranks=2", "ranks=2,,until=9",
        "until=-1", "save_at=3", "tolerance=", "tolerance=-1", "tolerance=1e", "tolerance=.5", "tolerance=1.",
        "tolerance=inf", "dir=", "on,ranks=2"}},
      {kSetting_rehearsal, {"", "0", "20,", ",20", "25,20", "20,20", "20 25", "20steps", "-1"}},
      {kSetting_signal, {"", "TERM", "SIGKILL", "9", "usr1", "0", "65", "SIG", "SIG10"}},
  };
  for (const auto& [id, values] : cases) {
    for (const char* value : values)
      EXPECT_EQ(CheckSetting(id, value).code(), Code::kInvalid) << GetSettingInfo(id).option << "=" << value;
  }
}

TEST(CheckSetting, NamesOptionValueAndAcceptedForms) {
  EXPECT_EQ(Refusal(kSetting_checkpoint, "10x"),
            "--checkpoint=10x is not accepted. 10 what? 10s, 10m, 10h or 10steps. Accepted: on, off, auto, a "
            "duration (10m, 90s, 1.5h, "
            "500ms, 2d or [D-]HH:MM:SS) or a number of steps (500steps)");
  EXPECT_EQ(Refusal(kSetting_on, "preempt,resize"),
            "--checkpoint-on=preempt,resize is not accepted. Accepted: all, or a comma-separated list of "
            "preempt, timelimit, request, "
            "interval, end");
  EXPECT_EQ(
      Refusal(kSetting_files, "0"),
      "--checkpoint-files=0 is not accepted. Accepted: per-rank, per-node or a whole number, at least 1");
  EXPECT_THAT(Refusal(kSetting_signal, "9"), HasSubstr("Accepted: none, USR1, USR2"));
  EXPECT_THAT(Refusal(kSetting_save_timeout, "5"),
              HasSubstr("CAIRN_SAVE_TIMEOUT=5 is not accepted. 5 what? 5s, 5m, 5h. Accepted: a duration"));
}

TEST(CheckSetting, HintsAtTheLikelySlip) {
  EXPECT_THAT(Refusal(kSetting_checkpoint, "10"), HasSubstr("10 what? 10s, 10m, 10h or 10steps."));
  EXPECT_THAT(Refusal(kSetting_checkpoint, "10min"), HasSubstr("Did you mean 10m?"));
  EXPECT_THAT(Refusal(kSetting_checkpoint, "2H"), HasSubstr("Did you mean 2h?"));
  EXPECT_THAT(Refusal(kSetting_checkpoint, "500step"), HasSubstr("Did you mean 500steps?"));
  EXPECT_THAT(Refusal(kSetting_checkpoint, "0m"), HasSubstr("It must be more than 0."));
  EXPECT_THAT(Refusal(kSetting_notice, "30"),
              AllOf(HasSubstr("30 what? 30s, 30m, 30h."), Not(HasSubstr("steps"))));
  EXPECT_THAT(Refusal(kSetting_keep, "3"), HasSubstr("Did you mean last=3?"));
  EXPECT_THAT(Refusal(kSetting_signal, "SIGTERM"), HasSubstr("TERM means save already."));
}

TEST(CheckSetting, TellsAllFormsOfARetentionRule) {
  EXPECT_EQ(Refusal(kSetting_keep, "best=3:val_loss"),
            "--checkpoint-keep=best=3:val_loss is not accepted. Accepted: last=N, every=DURATION, "
            "every=<n>steps and "
            "best=N:METRIC:min or :max, joined by commas, for example last=2,every=6h,best=3:val_loss:min");
}

TEST(DescribeKeep, IsAListForPeople) {
  EXPECT_EQ(
      DescribeKeep(*ParseKeep("x", "last=2,every=6h,every=500steps,best=3:val_loss:min,best=1:acc:max")),
      "the last 2, one every 6 h 0 m, one every 500 steps, the best 3 by val_loss (min), the best 1 by acc "
      "(max)");
}

TEST(CheckSetting, KeepsTheRefusalOnOneLineAndBounded) {
  std::string message = Refusal(kSetting_checkpoint, "a\nb\tc" + std::string(5000, 'x'));
  EXPECT_EQ(message.find_first_of("\n\t"), std::string::npos);
  EXPECT_THAT(message, AllOf(HasSubstr("--checkpoint=a?b?cxxx"), HasSubstr("Accepted: on, off")));
  EXPECT_LT(message.size(), 512u);
}

TEST(ParseSettings, FallsBackToTheTable) {
  Settings settings = Parsed({});
  EXPECT_FALSE(settings.enabled);
  EXPECT_FALSE(settings.interval_auto);
  EXPECT_FALSE(settings.interval || settings.interval_steps || settings.mode || settings.notice);
  EXPECT_EQ(settings.dir, "");
  EXPECT_EQ(settings.from, "");
  EXPECT_EQ(settings.resume, Resume::kAuto);
  EXPECT_FALSE(settings.require);
  EXPECT_EQ(settings.local, "auto");
  EXPECT_EQ(settings.on, uint32_t{kTriggerAll});
  EXPECT_EQ(settings.keep, (KeepRules{{KeepRule::kLast, 2}}));
  EXPECT_EQ(settings.copy, CopyRule());
  EXPECT_EQ(settings.copy_keep, (KeepRules{{KeepRule::kLast, 2}}));
  EXPECT_EQ(settings.after, After::kAuto);
  EXPECT_EQ(settings.max_lives, 100);
  EXPECT_EQ(settings.strikes, 3);
  EXPECT_EQ(settings.mtbf, hours(24));
  EXPECT_EQ(settings.signal, 0);
  EXPECT_EQ(settings.boundary_wait, seconds(2));
  EXPECT_EQ(settings.save_timeout, minutes(10));
  EXPECT_EQ(settings.open_within, minutes(1));
  EXPECT_EQ(settings.log, "info");
}

TEST(ParseSettings, ReadsEveryField) {
  Settings settings =
      Parsed({{"CAIRN_CHECKPOINT", "15m"},
              {"CAIRN_DIR", "/s/run7"},
              {"CAIRN_FROM", "/s/run6@best"},
              {"CAIRN_RESUME", "1200"},
              {"CAIRN_REQUIRE", "1"},
              {"CAIRN_LOCAL", "/nvme"},
              {"CAIRN_ON", "end,preempt"},
              {"CAIRN_KEEP", "last=5,every=1.5h,every=500steps,best=3:val_loss:min,best=1:acc:max"},
              {"CAIRN_COPY", "s3://lab/run7,every=6h"},
              {"CAIRN_COPY_KEEP", "last=9"},
              {"CAIRN_MODE", "0640"},
              {"CAIRN_NOTICE", "90s"},
              {"CAIRN_AFTER", "exit=7"},
              {"CAIRN_MAX_LIVES", "3"},
              {"CAIRN_STRIKES", "5"},
              {"CAIRN_MTBF", "2d"},
              {"CAIRN_SIGNAL", "USR1"},
              {"CAIRN_BOUNDARY_WAIT", "500ms"},
              {"CAIRN_SAVE_TIMEOUT", "1h"},
              {"CAIRN_OPEN_WITHIN", "5s"},
              {"CAIRN_LOG", "debug"}});
  EXPECT_TRUE(settings.enabled);
  EXPECT_FALSE(settings.interval_auto);
  EXPECT_EQ(settings.interval, minutes(15));
  EXPECT_EQ(settings.interval_steps, std::nullopt);
  EXPECT_EQ(settings.dir, "/s/run7");
  EXPECT_EQ(settings.from, "/s/run6@best");
  EXPECT_EQ(settings.resume, Resume::kStep);
  EXPECT_EQ(settings.resume_step, 1200);
  EXPECT_TRUE(settings.require);
  EXPECT_EQ(settings.local, "/nvme");
  EXPECT_EQ(settings.on, uint32_t{kTriggerEnd | kTriggerPreempt});
  EXPECT_EQ(settings.keep, (KeepRules{{KeepRule::kLast, 5},
                                      {KeepRule::kEveryTime, INT64_C(5400000000000)},
                                      {KeepRule::kEverySteps, 500},
                                      {KeepRule::kBest, 3, "val_loss", false},
                                      {KeepRule::kBest, 1, "acc", true}}));
  EXPECT_EQ(settings.copy, (CopyRule{"s3://lab/run7", hours(6)}));
  EXPECT_EQ(settings.copy_keep, (KeepRules{{KeepRule::kLast, 9}}));
  EXPECT_EQ(Parsed({{"CAIRN_COPY", "/archive/run7"}}).copy, (CopyRule{"/archive/run7", seconds(0)}));
  EXPECT_EQ(settings.mode, 0640u);
  EXPECT_EQ(settings.notice, seconds(90));
  EXPECT_EQ(settings.after, After::kExit);
  EXPECT_EQ(settings.exit_code, 7);
  EXPECT_EQ(settings.max_lives, 3);
  EXPECT_EQ(settings.strikes, 5);
  EXPECT_EQ(settings.mtbf, hours(48));
  EXPECT_EQ(settings.signal, SIGUSR1);
  EXPECT_EQ(settings.boundary_wait, milliseconds(500));
  EXPECT_EQ(settings.save_timeout, hours(1));
  EXPECT_EQ(settings.open_within, seconds(5));
  EXPECT_EQ(settings.log, "debug");
}

TEST(ParseSettings, ReadsSizesAndRatesInBytes) {
  EXPECT_EQ(Parsed({}).local_limit, 0u);
  EXPECT_EQ(Parsed({{"CAIRN_LOCAL_LIMIT", "none"}}).local_limit, 0u);
  EXPECT_EQ(Parsed({{"CAIRN_LOCAL_LIMIT", "1.5TB"}}).local_limit, 1500000000000u);
  EXPECT_EQ(Parsed({{"CAIRN_LOCAL_LIMIT", "2TiB"}}).local_limit, uint64_t{2} << 40);
  EXPECT_EQ(Parsed({{"CAIRN_DRAIN_LIMIT", "1.5GiB/s"}}).drain_limit, uint64_t{3} << 29);
}

TEST(ParseSettings, TellsTheWaysToTurnItOnApart) {
  EXPECT_TRUE(Parsed({{"CAIRN_CHECKPOINT", "(null)"}}).interval_auto);
  EXPECT_TRUE(Parsed({{"CAIRN_CHECKPOINT", "auto"}}).interval_auto);
  Settings on = Parsed({{"CAIRN_CHECKPOINT", "on"}});
  EXPECT_TRUE(on.enabled);
  EXPECT_FALSE(on.interval_auto || on.interval || on.interval_steps);
  Settings steps = Parsed({{"CAIRN_CHECKPOINT", "500steps"}});
  EXPECT_TRUE(steps.enabled);
  EXPECT_EQ(steps.interval_steps, 500);
  EXPECT_EQ(steps.interval, std::nullopt);
}

TEST(ParseSettings, PrefersWhatSrunsSideResolved) {
  EXPECT_EQ(Parsed({{"CAIRN_KEEP", "last=5"}, {"SLURM_CAIRN_KEEP", "last=9"}}).keep,
            (KeepRules{{KeepRule::kLast, 9}}));
}

TEST(ParseSettings, RemembersTheTextsThatAreNotTheFallbacks) {
  EXPECT_EQ(
      Parsed({{"SLURM_CAIRN_CHECKPOINT", "10m"}, {"CAIRN_KEEP", "last=2"}, {"CAIRN_AFTER", "wait"}}).given,
      (Variables{{"CAIRN_CHECKPOINT", "10m"}, {"CAIRN_AFTER", "wait"}}));
}

TEST(ParseSettings, TakesAnEmptyVariableAsNone) {
  EXPECT_FALSE(Parsed({{"CAIRN_CHECKPOINT", ""}}).enabled);
  EXPECT_EQ(Parsed({{"SLURM_CAIRN_KEEP", ""}, {"CAIRN_KEEP", "last=5"}}).keep,
            (KeepRules{{KeepRule::kLast, 5}}));
}

TEST(ParseSettings, RefusesARehearsalWhichWouldHaveToBeInPlaceOfTheStep) {
  const Result<Settings> settings = Parse({{"CAIRN_REHEARSE", "ranks=2"}});
  ASSERT_FALSE(settings.ok());
  EXPECT_THAT(settings.status().message(),
              AllOf(HasSubstr("CAIRN_REHEARSE=ranks=2 is for srun"), HasSubstr("cairn rehearse -- COMMAND")));
  EXPECT_TRUE(Parse({{"CAIRN_REHEARSE", "off"}}).ok());
}

TEST(ParseSettings, NamesTheVariableThatItRefuses) {
  Result<Settings> settings = Parse({{"CAIRN_KEEP", "5"}});
  ASSERT_FALSE(settings.ok());
  EXPECT_EQ(settings.status().code(), Code::kInvalid);
  EXPECT_THAT(settings.status().message(), HasSubstr("CAIRN_KEEP=5 is not accepted. Did you mean last=5?"));
}

TEST(TriggerName, IsTheWordOfTheSetting) {
  EXPECT_EQ(TriggerName(kTriggerPreempt), "preempt");
  EXPECT_EQ(TriggerName(kTriggerTimeLimit), "timelimit");
  EXPECT_EQ(TriggerName(kTriggerRequest), "request");
  EXPECT_EQ(TriggerName(kTriggerInterval), "interval");
  EXPECT_EQ(TriggerName(kTriggerEnd), "end");
}

TEST(GetSettingInfo, GivesTheRow) {
  EXPECT_EQ(GetSettingInfo(kSetting_dir).option, "checkpoint-dir");
  EXPECT_EQ(GetSettingInfo(kSetting_dir).env, "CAIRN_DIR");
  EXPECT_EQ(GetSettingInfo(kSetting_max_lives).key, "max_lives");
  EXPECT_EQ(GetSettingInfo(kSetting_log).option, "");
}

}  // namespace
}  // namespace cairn
