#include "runtime/s3/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/s3/variables.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using testing::HasSubstr;

S3Config Config(const Variables& variables, const std::string& bucket = "lab") {
  Variables all = {{"AWS_CONFIG_FILE", "/nowhere"}, {"AWS_SHARED_CREDENTIALS_FILE", "/nowhere"}};
  for (const auto& [name, value] : variables) all[name] = value;
  const auto config = S3Config::FromEnvironment(bucket, Of(all));
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? *config : S3Config();
}

TEST(S3Config, GoesToAwsInTheRegionOfTheEnvironment) {
  EXPECT_EQ(Config({}).Url("a"), "https://lab.s3.us-east-1.amazonaws.com/a");
  EXPECT_EQ(Config({{"AWS_DEFAULT_REGION", "eu-west-1"}}).Url("a"),
            "https://lab.s3.eu-west-1.amazonaws.com/a");
  EXPECT_EQ(Config({{"AWS_REGION", "cn-north-1"}, {"AWS_DEFAULT_REGION", "eu-west-1"}}).Url("a"),
            "https://lab.s3.cn-north-1.amazonaws.com.cn/a");
}

TEST(S3Config, PutsTheBucketIntoThePathOfAnEndpoint) {
  EXPECT_EQ(Config({{"CAIRN_S3_ENDPOINT", "http://ceph:7480/"}}).Url("a"), "http://ceph:7480/lab/a");
  EXPECT_EQ(Config({{"CAIRN_S3_ENDPOINT", "http://ceph:7480"}, {"CAIRN_S3_STYLE", "virtual"}}).Url("a"),
            "http://lab.ceph:7480/a");
  EXPECT_EQ(Config({{"CAIRN_S3_STYLE", "path"}}).Url("a"), "https://s3.us-east-1.amazonaws.com/lab/a");
  EXPECT_EQ(Config({}, "my.lab").Url("a"),
            "https://s3.us-east-1.amazonaws.com/my.lab/a");  // no certificate holds for my.lab.s3…
}

TEST(S3Config, PrefersCairnsEndpointToThoseOfAwssTools) {
  Variables variables = {{"AWS_ENDPOINT_URL", "http://c"}};
  EXPECT_EQ(Config(variables).endpoint, "http://c");
  variables["AWS_ENDPOINT_URL_S3"] = "http://b";
  EXPECT_EQ(Config(variables).endpoint, "http://b");
  variables["CAIRN_S3_ENDPOINT"] = "http://a";
  EXPECT_EQ(Config(variables).endpoint, "http://a");
  variables["SLURM_CAIRN_S3_ENDPOINT"] = "http://site";  // what srun's side resolved
  EXPECT_EQ(Config(variables).endpoint, "http://site");
}

TEST(S3Config, TakesRegionAndEndpointFromTheProfile) {
  const TempDir dir;
  Write(dir / "config",
        "[default]\nregion = eu-west-1\n[profile lab]\nregion = eu-west-3\nendpoint_url = https://s3.lab\n");
  EXPECT_EQ(Config({{"AWS_CONFIG_FILE", dir.path() + "/config"}}).region, "eu-west-1");
  const S3Config lab = Config({{"AWS_CONFIG_FILE", dir.path() + "/config"}, {"AWS_PROFILE", "lab"}});
  EXPECT_EQ(lab.region, "eu-west-3");
  EXPECT_EQ(lab.endpoint, "https://s3.lab");
}

TEST(S3Config, ReadsHowPatientItIs) {
  const S3Config config = Config({{"CAIRN_S3_CONNECTIONS", "3"},
                                  {"CAIRN_S3_STALL", "5s"},
                                  {"CAIRN_S3_DEADLINE", "1m"},
                                  {"AWS_CA_BUNDLE", "/ca.pem"}});
  EXPECT_EQ(config.connections, 3);
  EXPECT_EQ(config.stall, std::chrono::milliseconds(5000));
  EXPECT_EQ(config.deadline, std::chrono::milliseconds(60000));
  EXPECT_EQ(config.ca_file, "/ca.pem");
}

TEST(S3Config, RefusesWhatCannotBe) {
  for (const char* bucket : {"", "ab", "../x", "a b c", "lab?x"}) {
    EXPECT_EQ(S3Config::FromEnvironment(bucket, Of({})).status().code(), Code::kInvalid) << bucket;
  }
  for (const char* endpoint : {"ceph:7480", "ftp://ceph", "http://", "http://user@host", "http://h?q"}) {
    const auto config =
        S3Config::FromEnvironment("lab", Of({{"CAIRN_S3_ENDPOINT", endpoint}, {"HOME", "/nowhere"}}));
    EXPECT_EQ(config.status().code(), Code::kInvalid) << endpoint;
    EXPECT_THAT(config.status().message(), HasSubstr("http://HOST[:PORT]"));
  }
  EXPECT_THAT(
      S3Config::FromEnvironment("lab", Of({{"AWS_PROFILE", "lba"}, {"HOME", "/nowhere"}})).status().message(),
      HasSubstr("AWS_PROFILE names 'lba'"));
}

TEST(S3Config, EncodesKeysAndSortsQueriesAsTheyAreSigned) {
  EXPECT_EQ(Config({}).Url("a b/ü+%~", {{"uploadId", "x/y="}, {"partNumber", "1"}}),
            "https://lab.s3.us-east-1.amazonaws.com/a%20b/%C3%BC%2B%25~?partNumber=1&uploadId=x%2Fy%3D");
  EXPECT_EQ(UriDecode("a+b%2Bc%2fd%zz%4"), "a b+c/d%zz%4");
}

}  // namespace
}  // namespace cairn
