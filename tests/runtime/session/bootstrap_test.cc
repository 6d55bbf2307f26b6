#include "runtime/session/bootstrap.h"

#include <gtest/gtest.h>

#include <map>

namespace cairn {
namespace {

using Env = std::map<std::string, std::string>;

GetEnv From(const Env& env) {
  return [env](const std::string& name) {
    const auto it = env.find(name);
    return it == env.end() ? std::nullopt : std::optional<std::string>(it->second);
  };
}

const Env kStep = {{"SLURM_CAIRN_CHECKPOINT", "10m"},
                   {"SLURM_CAIRN_DIR", "/scratch/run7"},
                   {"SLURM_CAIRN_TOKEN", std::string(64, 'a')},
                   {"SLURM_CAIRN_RENDEZVOUS", "10.0.0.1:4000"},
                   {"SLURM_CAIRN_KEY", "123.4.2"},
                   {"SLURM_CAIRN_NODE", "n2"},
                   {"SLURM_PROCID", "5"},
                   {"SLURM_NTASKS", "7"},
                   {"SLURM_NODEID", "2"},
                   {"SLURM_STEP_TASKS_PER_NODE", "2(x2),3"}};

TEST(Bootstrap, ReadsAStepsEnvironment) {
  const auto boot = ReadBootstrap(From(kStep), -1, 0);
  ASSERT_TRUE(boot.ok()) << boot.status().message();
  ASSERT_TRUE(boot->has_value());
  EXPECT_EQ((*boot)->rank, 5);
  EXPECT_EQ((*boot)->world_size, 7);
  EXPECT_EQ((*boot)->ranks_on_node, 3);
  EXPECT_EQ((*boot)->node, "n2");
  EXPECT_EQ((*boot)->identity.job, "123");
  EXPECT_EQ((*boot)->identity.step, "4");
  EXPECT_EQ((*boot)->identity.restart, 2u);
  EXPECT_FALSE((*boot)->first_life);
  EXPECT_FALSE((*boot)->known_to_save);
  EXPECT_EQ((*boot)->settings.dir, "/scratch/run7");
}

TEST(Bootstrap, RanksBelowTorchrunAreCountedByIt) {
  Env env = kStep;  // of the one task that is torchrun
  env["SLURM_STEP_TASKS_PER_NODE"] = "1(x3)";
  env["SLURM_LOCALID"] = "0";
  EXPECT_EQ((*ReadBootstrap(From(env), -1, 0))->ranks_on_node, 1);
  EXPECT_TRUE((*ReadBootstrap(From(env), -1, 0))->first_on_node);
  env["LOCAL_WORLD_SIZE"] = "4";
  env["LOCAL_RANK"] = "1";
  EXPECT_EQ((*ReadBootstrap(From(env), -1, 0))->ranks_on_node, 4);
  EXPECT_FALSE((*ReadBootstrap(From(env), -1, 0))->first_on_node);
  env["LOCAL_RANK"] = "0";
  EXPECT_TRUE((*ReadBootstrap(From(env), -1, 0))->first_on_node);
  env.erase("LOCAL_RANK");  // somebody else's variable: it does not make all ranks the first of their node
  env["SLURM_LOCALID"] = "2";
  EXPECT_EQ((*ReadBootstrap(From(env), -1, 0))->ranks_on_node, 1);
  EXPECT_FALSE((*ReadBootstrap(From(env), -1, 0))->first_on_node);
}

TEST(Bootstrap, RanksThatHaveCountedThemselvesAreBelieved) {
  Env env = kStep;
  env["LOCAL_WORLD_SIZE"] = "4";
  env["LOCAL_RANK"] = "0";
  env["SLURM_CAIRN_LOCAL_WORLD_SIZE"] = "2";
  env["SLURM_CAIRN_LOCAL_RANK"] = "1";
  EXPECT_EQ((*ReadBootstrap(From(env), -1, 0))->ranks_on_node, 2);
  EXPECT_FALSE((*ReadBootstrap(From(env), -1, 0))->first_on_node);
}

TEST(Bootstrap, ALaterLifeUnderCairnRunIsNoFirstOne) {
  Env env = kStep;
  env["SLURM_CAIRN_KEY"] = "123.4.0";
  EXPECT_TRUE((*ReadBootstrap(From(env), -1, 0))->first_life);
  EXPECT_FALSE((*ReadBootstrap(From(env), -1, 0))->supervised);
  env["SLURM_CAIRN_LIFE"] = "1f00c2d9.0";
  EXPECT_TRUE((*ReadBootstrap(From(env), -1, 0))->first_life);
  EXPECT_TRUE((*ReadBootstrap(From(env), -1, 0))->supervised);
  env["SLURM_CAIRN_LIFE"] = "1f00c2d9.1";
  env["SLURM_CAIRN_MIN_NODES"] = "3";
  EXPECT_FALSE((*ReadBootstrap(From(env), -1, 0))->first_life);
  EXPECT_EQ((*ReadBootstrap(From(env), -1, 0))->min_nodes, 3);
  EXPECT_EQ((*ReadBootstrap(From(env), -1, 0))->run_life, "1f00c2d9.1");
}

TEST(Bootstrap, TheProgramsOwnRankWinsOverSlurms) {
  const auto boot = ReadBootstrap(From(kStep), 1, 3);
  ASSERT_TRUE(boot.ok() && boot->has_value());
  EXPECT_EQ((*boot)->rank, 1);
  EXPECT_EQ((*boot)->world_size, 3);
}

TEST(Bootstrap, WithoutCheckpointingThereIsNothingToDo) {
  Env env = kStep;
  env["SLURM_CAIRN_CHECKPOINT"] = "off";
  EXPECT_FALSE(ReadBootstrap(From(env), -1, 0)->has_value());
  EXPECT_FALSE(ReadBootstrap(From({}), -1, 0)->has_value());
}

TEST(Bootstrap, ASingleProcessMayBeProtectedByHandButSeveralMayNot) {
  Env env = {{"CAIRN_CHECKPOINT", "on"}, {"CAIRN_DIR", "/tmp/run"}};
  ASSERT_TRUE(ReadBootstrap(From(env), -1, 0)->has_value());
  env["SLURM_NTASKS"] = "2";
  EXPECT_FALSE(ReadBootstrap(From(env), -1, 0)->has_value());
}

TEST(Bootstrap, RefusesAnEnvironmentThatWasBroken) {
  Env env = kStep;
  env["SLURM_CAIRN_TOKEN"] = "short";
  EXPECT_EQ(ReadBootstrap(From(env), -1, 0).status().code(), Code::kInvalid);
  env = kStep;
  env.erase("SLURM_CAIRN_RENDEZVOUS");
  EXPECT_EQ(ReadBootstrap(From(env), -1, 0).status().code(), Code::kInvalid);
  EXPECT_EQ(ReadBootstrap(From(kStep), 7, 7).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace cairn
