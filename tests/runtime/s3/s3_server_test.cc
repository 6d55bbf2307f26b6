// The store against a real server: the one that CAIRN_S3_ENDPOINT names, else one that tests/support/s3_server starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>

#include "runtime/s3/s3_store.h"
#include "runtime/s3/s3_upload.h"
#include "tests/runtime/s3/fault_server.h"
#include "tests/runtime/s3/variables.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr size_t kMiB = 1 << 20;
constexpr size_t kPart = 5 * kMiB;  // the least that servers take

class S3Server : public testing::Environment {
 public:
  void SetUp() override {
    if (getenv("CAIRN_S3_ENDPOINT") != nullptr) return;
    dir_ = "/tmp/cairn-s3-server-" + std::to_string(getpid());
    FILE* script = popen((std::string(CAIRN_S3_SERVER " start ") + dir_).c_str(), "r");
    char line[512];
    while (fgets(line, sizeof line, script) != nullptr) {
      std::string text(line);
      text.resize(text.find('\n'));
      const size_t equals = text.find('=');
      setenv(text.substr(0, equals).c_str(), text.substr(equals + 1).c_str(), 1);
    }
    const int status = pclose(script);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
      why_not_ = "this machine has no server of S3 (contrib/install-deps installs one)";
    ASSERT_TRUE(status == 0 || !why_not_.empty()) << "the server does not start";
  }
  void TearDown() override {
    if (!dir_.empty()) static_cast<void>(system((std::string(CAIRN_S3_SERVER " stop ") + dir_).c_str()));
  }
  const std::string& why_not() const { return why_not_; }

 private:
  std::string dir_, why_not_;
};
S3Server* const server = static_cast<S3Server*>(testing::AddGlobalTestEnvironment(new S3Server));

// Bytes that differ from one to the next, and from one seed to another.
std::string Pattern(size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 2654435761u + seed) >> 13);
  return text;
}

class RealServer : public testing::Test {
 protected:
  void SetUp() override {
    if (!server->why_not().empty()) GTEST_SKIP() << server->why_not();
    auto config = S3Config::FromEnvironment("cairn-test", ProcessEnvironment);
    ASSERT_TRUE(config.ok()) << config.status().message();
    config_ = *config;
    config_.part_bytes = kPart;
    config_.first_pause = milliseconds(1);
    config_.longest_pause = milliseconds(10);
    config_.deadline = milliseconds(30000);
    auto client = S3Client::Start(config_, ProcessEnvironment);
    ASSERT_TRUE(client.ok()) << client.status().message();
    client_ = *std::move(client);
    S3Request create;
    create.method = "PUT";
    const Status created = client_->Make(std::move(create)).status();
    ASSERT_TRUE(created.ok()) << created.message();
    store_ = Open(config_);
  }
  void TearDown() override {
    if (!store_) return;
    store_ = Open(config_);  // a test's proxy is gone
    const auto left = store_->List("");
    ASSERT_TRUE(left.ok()) << left.status().message();
    std::vector<std::string> keys;
    for (const StoredObject& object : *left) keys.push_back(object.key);
    EXPECT_TRUE(store_->Remove(keys).ok());
    EXPECT_TRUE(store_->AbortUploads("").ok());
  }

  static std::unique_ptr<ObjectStore> Open(const S3Config& config) {
    auto store = S3Store::Open(config, ProcessEnvironment);
    EXPECT_TRUE(store.ok()) << store.status().message();
    return *std::move(store);
  }

  // The store by way of a proxy that does to requests as the test says.
  std::unique_ptr<FaultServer> Proxy(FaultServer::Handler handler) {
    const size_t colon = config_.endpoint.rfind(':');
    auto proxy = std::make_unique<FaultServer>(
        std::move(handler), static_cast<uint16_t>(std::stoi(config_.endpoint.substr(colon + 1))));
    S3Config through = config_;
    through.endpoint = proxy->url();
    through.stall = milliseconds(2000);
    store_ = Open(through);
    return proxy;
  }

  Status UploadAll(const std::string& key, const std::string& bytes) {
    auto upload = store_->Upload(key, bytes.size());
    if (!upload.ok()) return upload.status();
    const auto all = std::as_bytes(std::span(bytes));
    for (size_t part = 0; part * kPart < bytes.size(); ++part) {
      CAIRN_RETURN_IF_ERROR(
          (*upload)->Send(part, all.subspan(part * kPart, std::min(kPart, bytes.size() - part * kPart))));
    }
    return (*upload)->Finish();
  }

  size_t UploadsUnderWay() {
    S3Request list;
    list.query = {{"uploads", ""}};
    const auto answer = client_->Make(std::move(list));
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    size_t n = 0;
    for (size_t at = 0; (at = answer->text.find("<Upload>", at)) != std::string::npos; ++at) ++n;
    return n;
  }

  S3Config config_;
  std::unique_ptr<S3Client> client_;
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(RealServer, KeepsObjectsOfAnyKey) {
  for (const std::string key : {"runs/a/RUN", "runs/with space+plus%&'()*!~/é=@:,;", "runs//double/./dot"}) {
    ASSERT_TRUE(store_->Put(key, "bytes of " + key).ok()) << key;
    const auto got = store_->Get(key, 1000);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(*got, "bytes of " + key);
    EXPECT_EQ(*store_->Bytes(key), ("bytes of " + key).size());
  }
  EXPECT_THAT(*store_->List("runs/"), SizeIs(3));
  ASSERT_TRUE(store_->Put("runs/empty", "").ok());
  EXPECT_EQ(*store_->Get("runs/empty", 0), "");
  EXPECT_EQ(*store_->Bytes("runs/empty"), 0);
}

TEST_F(RealServer, SaysNotFoundOfAnObjectAndInvalidOfABucket) {
  EXPECT_EQ(store_->Get("nothing", 10).status().code(), Code::kNotFound);
  EXPECT_EQ(store_->Bytes("nothing").status().code(), Code::kNotFound);
  S3Config other = config_;
  other.bucket = "cairn-no-such-bucket";
  const auto elsewhere = Open(other);
  EXPECT_EQ(elsewhere->Get("nothing", 10).status().code(), Code::kInvalid);
  EXPECT_EQ(elsewhere->Bytes("nothing").status().code(), Code::kInvalid);
  EXPECT_EQ(elsewhere->List("").status().code(), Code::kInvalid);
  EXPECT_EQ(elsewhere->Put("k", "v").code(), Code::kInvalid);
  EXPECT_EQ(elsewhere->PutNew("k", "v").code(), Code::kInvalid);
}

TEST_F(RealServer, RefusesAWrongSecret) {
  const auto store = S3Store::Open(
      config_, Of({{"AWS_ACCESS_KEY_ID", getenv("AWS_ACCESS_KEY_ID")}, {"AWS_SECRET_ACCESS_KEY", "wrong"}}));
  ASSERT_TRUE(store.ok());
  EXPECT_EQ((*store)->Get("k", 10).status().code(), Code::kPermission);
}

TEST_F(RealServer, TrustsACertificateThatTheCaFileVouchesForAndNoOther) {
  if (getenv("S3_SERVER_TLS") == nullptr)
    GTEST_SKIP() << "the server that CAIRN_S3_ENDPOINT names is not ours";
  S3Config secure = config_;
  secure.endpoint = getenv("S3_SERVER_TLS");
  const Status refused = Open(secure)->Put("k", "v");
  EXPECT_EQ(refused.code(), Code::kPermission);
  EXPECT_THAT(refused.message(), HasSubstr("AWS_CA_BUNDLE"));
  secure.ca_file = getenv("S3_SERVER_CA");
  const auto store = Open(secure);
  const Status put = store->Put("k", "v");
  EXPECT_TRUE(put.ok()) << put.message();
  EXPECT_EQ(*store->Get("k", 10), "v");
}

TEST_F(RealServer, LetsOneOfManyPutANewObject) {
  std::vector<std::thread> threads;
  std::atomic<int> put{0}, there{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const Status status = store_->PutNew("RUN", "by " + std::to_string(i));
      if (status.ok()) ++put;
      if (status.code() == Code::kExists) ++there;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(put, 1);
  EXPECT_EQ(there, 7);
}

TEST_F(RealServer, TakesALargeObjectInPartsAndGivesAnyRangesOfIt) {
  const std::string bytes = Pattern(3 * kPart + 12345, 1);
  ASSERT_TRUE(UploadAll("shard", bytes).ok());
  EXPECT_EQ(*store_->Bytes("shard"), bytes.size());
  std::string into(bytes.size(), '\0');
  const auto all = std::as_writable_bytes(std::span(into));
  // The end first, then a piece that spans parts, then neighbours.
  const ObjectRange ranges[] = {{2 * kPart, all.subspan(2 * kPart)},
                                {1000, all.subspan(1000, 2 * kPart - 1000)},
                                {0, all.first(10)},
                                {10, all.subspan(10, 990)}};
  const Status status = store_->Read("shard", ranges);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(into == bytes);
  const ObjectRange beyond{bytes.size() - 5, all.first(10)};
  EXPECT_EQ(store_->Read("shard", {&beyond, 1}).code(), Code::kDamage);
  EXPECT_EQ(UploadsUnderWay(), 0);
}

TEST_F(RealServer, ShowsNothingOfAnUploadThatIsGivenUp) {
  const std::string bytes = Pattern(2 * kPart, 2);
  {
    auto upload = store_->Upload("shard", bytes.size());
    ASSERT_TRUE(upload.ok());
    ASSERT_TRUE((*upload)->Send(0, std::as_bytes(std::span(bytes)).first(kPart)).ok());
    EXPECT_EQ(UploadsUnderWay(), 1);
  }
  EXPECT_EQ(UploadsUnderWay(), 0);
  EXPECT_THAT(*store_->List(""), IsEmpty());
}

TEST_F(RealServer, GivesUpTheUploadsThatADeadProcessLeft) {
  for (const char* key : {"runs/a/x", "runs/a/y", "runs/b/x"}) {
    S3Request begin;
    begin.method = "POST";
    begin.key = key;
    begin.query = {{"uploads", ""}};
    ASSERT_TRUE(client_->Make(std::move(begin)).ok());
  }
  EXPECT_EQ(UploadsUnderWay(), 3);
  ASSERT_TRUE(store_->AbortUploads("runs/a/").ok());
  EXPECT_EQ(UploadsUnderWay(), 1);
}

TEST_F(RealServer, ListsFoldersAndManyObjects) {
  std::vector<std::string> keys;
  {
    S3Requests puts(client_.get());
    for (int i = 0; i < 1003; ++i) {
      keys.push_back("runs/many/" + std::to_string(i));
      S3Request put;
      put.method = "PUT";
      put.key = keys.back();
      puts.Add(std::move(put), [](const HttpAnswer&) { return OkStatus(); });
    }
    ASSERT_TRUE(puts.WaitUntilBelow(1).ok());
  }
  ASSERT_TRUE(store_->Put("runs/RUN", "r").ok());
  std::sort(keys.begin(), keys.end());
  const auto listed = store_->List("runs/many/");
  ASSERT_TRUE(listed.ok()) << listed.status().message();
  ASSERT_THAT(*listed, SizeIs(1003));
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ((*listed)[i].key, keys[i]);
  EXPECT_THAT(*store_->ListFolder("runs/"), ElementsAre("RUN", "many"));
  EXPECT_THAT(*store_->ListFolder("nothing/"), IsEmpty());
  ASSERT_TRUE(store_->Remove(keys).ok());
  EXPECT_THAT(*store_->List("runs/"), ElementsAre(StoredObject{"runs/RUN", 1}));
  EXPECT_TRUE(store_->Remove(keys).ok());  // what is not there is fine
}

TEST_F(RealServer, RefusesBytesThatTheWireHasChanged) {
  int changed = 0;
  const auto proxy = Proxy([&](const SeenRequest& request) {
    Reply reply = Reply::Pass();
    if (request.method == "PUT" && ++changed == 1)
      reply.change = [](SeenRequest* passed) { passed->body[17] ^= 1; };
    return reply;
  });
  const std::string bytes = Pattern(100000, 3);
  const Status status = store_->Put("k", bytes);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_GE(changed, 2);
  EXPECT_TRUE(*store_->Get("k", 1 << 20) == bytes);
}

TEST_F(RealServer, KeepsAnUploadWholeThroughResetsStallsThrottlingAndLostAnswers) {
  std::map<std::string, int> seen;  // requests, by what they are
  const auto proxy = Proxy([&](const SeenRequest& request) {
    const std::string kind = request.method + (request.Has("partNumber") ? " part"
                                               : request.Has("uploadId") ? " complete"
                                                                         : "");
    const int n = ++seen[kind];
    Reply reply = Reply::Pass();
    if (kind == "PUT part" && n == 1) return Reply::Error(503, "SlowDown");
    if (kind == "PUT part" && n == 2) reply.lose = true;
    if (kind == "PUT part" && n == 3) return Reply::Error(500, "InternalError");
    if (kind == "PUT part" && n == 4) reply.hang = true, reply.pass = false, reply.lose = true;
    if (kind == "POST complete" && n == 1) reply.lose = true;
    return reply;
  });
  const std::string bytes = Pattern(2 * kPart + 1, 4);
  const Status status = UploadAll("shard", bytes);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_GE(seen["PUT part"], 7);
  EXPECT_GE(seen["POST complete"], 2);
  std::string into(bytes.size(), '\0');
  const ObjectRange range{0, std::as_writable_bytes(std::span(into))};
  ASSERT_TRUE(store_->Read("shard", {&range, 1}).ok());
  EXPECT_TRUE(into == bytes);
}

TEST_F(RealServer, ReadsWholeThroughResetsInTheMiddle) {
  const std::string bytes = Pattern(2 * kPart + 1, 5);
  ASSERT_TRUE(UploadAll("shard", bytes).ok());
  int gets = 0;
  const auto proxy = Proxy([&](const SeenRequest& request) {
    Reply reply = Reply::Pass();
    if (request.headers.at("range") == "bytes=0-5242879" && ++gets <= 3)
      reply.cut_at = 50000 * static_cast<size_t>(gets);
    return reply;
  });
  std::string into(bytes.size(), '\0');
  const ObjectRange range{0, std::as_writable_bytes(std::span(into))};
  const Status status = store_->Read("shard", {&range, 1});
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(into == bytes);
  EXPECT_GE(gets, 4);
}

TEST_F(RealServer, KnowsItsOwnNewObjectAfterALostAnswer) {
  int puts = 0;
  const auto proxy = Proxy([&](const SeenRequest& request) {
    Reply reply = Reply::Pass();
    reply.lose = request.method == "PUT" && ++puts == 1;
    return reply;
  });
  const Status status = store_->PutNew("RUN", "mine");
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(store_->PutNew("RUN", "mine").code(), Code::kExists);
}

}  // namespace
}  // namespace cairn
