#include "runtime/s3/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/s3/profile.h"
#include "tests/runtime/s3/variables.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// What metadata servers answer, by method and URL; nobody answers elsewhere.
struct Servers {
  std::map<std::string, HttpAnswer> answers;
  std::vector<HttpRequest> asked;

  void Say(const std::string& what, const std::string& text, int status = 200) {
    answers[what].status = status;
    answers[what].text = text;
  }
  std::function<HttpAnswer(HttpRequest)> Exchange() {
    return [this](HttpRequest request) {
      asked.push_back(request);
      const auto at = answers.find(request.method + " " + request.url);
      if (at != answers.end()) return at->second;
      HttpAnswer none;
      none.lost = Status(Code::kTimeout, "nobody there");
      return none;
    };
  }
};

Variables NoFiles(Variables variables = {}) {
  variables["AWS_CONFIG_FILE"] = "/nowhere";
  variables["AWS_SHARED_CREDENTIALS_FILE"] = "/nowhere";
  return variables;
}

std::string Answer(const std::string& key, const std::string& expires = "9999-12-31T23:59:59Z") {
  return R"({"Code":"Success","AccessKeyId":")" + key +
         R"(","SecretAccessKey":"s","Token":"t","Expiration":")" + expires + "\"}";
}

TEST(ParseIni, ReadsWhatAwssToolsWrite) {
  const IniSections sections = ParseIni(
      "before = nothing\n# comment\n[default]\r\naws_access_key_id=A\r\n[profile lab] ; the group's\n region "
      "= not nested\n"
      "region\t=  eu-west-3 # here\ns3 =\n  max_concurrent_requests = 20\nnonsense\n\n[ open\nx = 1\n");
  const IniSections expected = {{"default", {{"aws_access_key_id", "A"}}},
                                {"profile lab", {{"region", "eu-west-3"}, {"s3", ""}}}};
  EXPECT_EQ(sections, expected);
}

TEST(Credentials, ComeFromTheEnvironmentFirst) {
  Servers servers;
  CredentialsChain chain(Of(NoFiles({{"AWS_ACCESS_KEY_ID", "A"},
                                     {"AWS_SECRET_ACCESS_KEY", "S"},
                                     {"AWS_SESSION_TOKEN", "T"},
                                     {"AWS_PROFILE", "lab"}})),
                         servers.Exchange());
  const auto found = chain.Get();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->key_id, "A");
  EXPECT_EQ(found->secret, "S");
  EXPECT_EQ(found->token, "T");
}

TEST(Credentials, OfWhichHalfIsMissingAreRefused) {
  Servers servers;
  CredentialsChain chain(Of(NoFiles({{"AWS_ACCESS_KEY_ID", "A"}})), servers.Exchange());
  EXPECT_EQ(chain.Get().status().code(), Code::kPermission);
}

TEST(Credentials, ComeFromTheProfileInEitherFile) {
  const TempDir dir;
  Write(dir / "credentials",
        "[default]\naws_access_key_id = D\naws_secret_access_key = S\n[lab]\naws_access_key_id = "
        "L\naws_secret_access_key = S\naws_session_token = T\n");
  Write(dir / "config",
        "[profile other]\naws_access_key_id = O\naws_secret_access_key = S\n[profile role]\nrole_arn = "
        "arn:x\n[profile half]\naws_access_key_id = H\n");
  Servers servers;
  const auto get = [&](const std::string& profile) {
    Variables variables = {{"AWS_SHARED_CREDENTIALS_FILE", dir.path() + "/credentials"},
                           {"AWS_CONFIG_FILE", dir.path() + "/config"}};
    if (!profile.empty()) variables["AWS_PROFILE"] = profile;
    return CredentialsChain(Of(variables), servers.Exchange()).Get();
  };
  EXPECT_EQ(get("")->key_id, "D");
  EXPECT_EQ(get("lab")->key_id, "L");
  EXPECT_EQ(get("lab")->token, "T");
  EXPECT_EQ(get("other")->key_id, "O");
  EXPECT_EQ(get("other")->source, "the profile 'other' in " + dir.path() + "/config");
  EXPECT_THAT(get("role").status().message(), HasSubstr("by role_arn of the profile 'role'"));
  EXPECT_EQ(get("half").status().code(), Code::kPermission);
  EXPECT_EQ(get("none").status().code(), Code::kInvalid);
  EXPECT_THAT(servers.asked, testing::IsEmpty());
}

TEST(Credentials, AreNotTakenFromTheMachineWhereAnotherIdentityIsMeant) {
  Servers servers;
  CredentialsChain chain(Of(NoFiles({{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}})), servers.Exchange());
  EXPECT_THAT(chain.Get().status().message(), HasSubstr("by AWS_WEB_IDENTITY_TOKEN_FILE"));
  EXPECT_THAT(servers.asked, testing::IsEmpty());
}

TEST(Credentials, ComeFromTheContainerWithItsToken) {
  const TempDir dir;
  Write(dir / "token", "secret-token\n");
  Servers servers;
  servers.Say("GET http://169.254.170.2/v2/creds", Answer("C"));
  servers.Say("GET http://127.0.0.1:8000/creds", Answer("F"));
  Variables variables = NoFiles({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/creds"}});
  EXPECT_EQ(CredentialsChain(Of(variables), servers.Exchange()).Get()->key_id, "C");
  EXPECT_TRUE(servers.asked.back().direct);  // never by way of a proxy

  variables = NoFiles({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:8000/creds"},
                       {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", dir.path() + "/token"}});
  EXPECT_EQ(CredentialsChain(Of(variables), servers.Exchange()).Get()->key_id, "F");
  EXPECT_EQ(servers.asked.back().headers.at("Authorization"), "secret-token");

  variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
      "http://127.0.0.1.example.org/creds";  // in the clear, to a stranger
  EXPECT_EQ(CredentialsChain(Of(variables), servers.Exchange()).Get().status().code(), Code::kPermission);
}

TEST(Credentials, ComeFromTheInstanceByASessionToken) {
  Servers servers;
  const std::string base = "http://imds/latest/meta-data/iam/security-credentials/";
  servers.Say("PUT http://imds/latest/api/token", "imds-token");
  servers.Say("GET " + base, "trainer\n");
  servers.Say("GET " + base + "trainer", Answer("I"));
  Variables variables = NoFiles({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://imds/"}});
  const auto found = CredentialsChain(Of(variables), servers.Exchange()).Get();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->key_id, "I");
  EXPECT_EQ(found->source, "the instance's role 'trainer'");
  EXPECT_EQ(servers.asked.back().headers.at("X-aws-ec2-metadata-token"), "imds-token");

  variables["AWS_EC2_METADATA_DISABLED"] = "true";
  servers.asked.clear();
  EXPECT_EQ(CredentialsChain(Of(variables), servers.Exchange()).Get().status().code(), Code::kPermission);
  EXPECT_THAT(servers.asked, testing::IsEmpty());
}

TEST(Credentials, ComeFromAnInstanceThatAnswersAtTheSecondTryOnly) {
  Servers servers;
  const std::string base = "http://imds/latest/meta-data/iam/security-credentials/";
  servers.Say("PUT http://imds/latest/api/token", "imds-token");
  servers.Say("GET " + base, "trainer\n");
  servers.Say("GET " + base + "trainer", Answer("I"));
  std::map<std::string, int> asked;
  const auto exchange = [&, answers = servers.Exchange()](HttpRequest request) {
    HttpAnswer answer = answers(request);
    if (++asked[request.url] == 1) {
      if (request.method == "PUT") {
        answer.lost = Status(Code::kTimeout, "2 s have passed");
      } else {
        answer.status = 503;
      }
    }
    return answer;
  };
  const auto found =
      CredentialsChain(Of(NoFiles({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://imds"}})), exchange).Get();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->key_id, "I");
}

TEST(Credentials, ThatAreNowhereAreAskedForByName) {
  Servers servers;
  const auto found = CredentialsChain(Of(NoFiles()), servers.Exchange()).Get();
  EXPECT_EQ(found.status().code(), Code::kPermission);
  EXPECT_THAT(found.status().message(),
              AllOf(HasSubstr("AWS_ACCESS_KEY_ID"), HasSubstr("/nowhere"), HasSubstr("'default'")));
}

TEST(Credentials, AreReadAgainBeforeTheyExpire) {
  Servers servers;
  auto now = std::chrono::system_clock::from_time_t(1800000000);
  const auto in = [&](int seconds) {
    const time_t then = std::chrono::system_clock::to_time_t(now) + seconds;
    char text[32];
    tm utc{};
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&then, &utc));
    return std::string(text);
  };
  const std::string from = "GET http://169.254.170.2/c";
  CredentialsChain chain(Of(NoFiles({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c"}})), servers.Exchange(),
                         [&] { return now; });
  servers.Say(from, Answer("ONE", in(3600)));
  EXPECT_EQ(chain.Get()->key_id, "ONE");
  servers.Say(from, Answer("TWO", in(200)));  // that is less than five minutes
  EXPECT_EQ(chain.Get()->key_id, "ONE");
  const Credentials one = *chain.Get();
  EXPECT_EQ(chain.Renew(one)->key_id, "TWO");
  servers.Say(from, "busy", 500);
  EXPECT_EQ(chain.Get()->key_id, "TWO");       // it still holds
  EXPECT_EQ(chain.Renew(one)->key_id, "TWO");  // another thread has done so already
  servers.Say(from, Answer("THREE", in(3600)));
  servers.asked.clear();
  now += std::chrono::seconds(29);
  EXPECT_EQ(chain.Get()->key_id, "TWO");  // it has failed just now
  EXPECT_EQ(chain.Renew(*chain.Get()).status().code(), Code::kPermission);
  EXPECT_THAT(servers.asked, testing::IsEmpty());
  now += std::chrono::seconds(1);
  EXPECT_EQ(chain.Get()->key_id, "THREE");
}

TEST(Credentials, NeverShowInARefusal) {
  Servers servers;
  servers.Say("GET http://169.254.170.2/c",
              R"({"AccessKeyId":"A","SecretAccessKey":"","Token":"verysecret","Message":"go away"})");
  const auto found =
      CredentialsChain(Of(NoFiles({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c"}})), servers.Exchange())
          .Get();
  EXPECT_THAT(found.status().message(), AllOf(HasSubstr("go away"), Not(HasSubstr("verysecret"))));
}

}  // namespace
}  // namespace cairn
