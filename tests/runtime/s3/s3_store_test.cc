// The store against a server that answers as each test says.
#include "runtime/s3/s3_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "runtime/s3/transfers.h"
#include "tests/runtime/s3/fault_server.h"
#include "tests/runtime/s3/variables.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const Variables kKeys = {{"AWS_ACCESS_KEY_ID", "AKID"}, {"AWS_SECRET_ACCESS_KEY", "verysecret"}};

S3Config ConfigFor(const FaultServer& server) {
  setenv("no_proxy", "127.0.0.1", 1);
  S3Config config;
  config.bucket = "lab";
  config.endpoint = server.url();
  config.region = "us-east-1";
  config.path_style = true;
  config.first_pause = milliseconds(1);
  config.longest_pause = milliseconds(4);
  config.stall = milliseconds(60000);
  config.deadline = milliseconds(60000);
  return config;
}

std::unique_ptr<ObjectStore> Open(const S3Config& config, const Variables& variables = kKeys) {
  auto store = S3Store::Open(config, Of(variables));
  EXPECT_TRUE(store.ok()) << store.status().message();
  return *std::move(store);
}

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(S3Store, GetsAnObjectByASignedRequest) {
  FaultServer server([](const SeenRequest&) { return Reply{200, {}, "hello"}; });
  const auto got = Open(ConfigFor(server))->Get("runs/a b/RUN", 100);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(*got, "hello");
  const SeenRequest seen = server.seen().at(0);
  EXPECT_EQ(seen.method, "GET");
  EXPECT_EQ(seen.target, "/lab/runs/a%20b/RUN");
  EXPECT_THAT(seen.headers.at("authorization"),
              AllOf(HasSubstr("AWS4-HMAC-SHA256 Credential=AKID/"), HasSubstr("/us-east-1/s3/aws4_request"),
                    HasSubstr("SignedHeaders=host;x-amz-content-sha256;x-amz-date")));
}

// The examples of Amazon's description of Signature Version 4 for S3. The proxy variable has the request come here, whatever its host.
struct Vector {
  std::string target_key;
  std::map<std::string, std::string> query, headers;
  std::string signature;
};
TEST(S3Store, SignsAsThePublishedExamplesDo) {
  FaultServer server([](const SeenRequest&) { return Reply{}; });
  unsetenv("no_proxy");
  setenv("http_proxy", server.url().c_str(), 1);
  auto transfers = Transfers::Start({});
  ASSERT_TRUE(transfers.ok()) << transfers.status().message();
  S3Config config;
  config.bucket = "examplebucket";
  config.endpoint = "http://s3.amazonaws.com";
  const Vector vectors[] = {
      {"test.txt",
       {},
       {{"Range", "bytes=0-9"}},
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {"", {{"lifecycle", ""}}, {}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {"",
       {{"prefix", "J"}, {"max-keys", "2"}},
       {},
       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
  for (const Vector& vector : vectors) {
    HttpRequest request;
    request.url = config.Url(vector.target_key, vector.query);
    request.headers = vector.headers;
    request.headers["x-amz-date"] = "20130524T000000Z";
    request.headers["x-amz-content-sha256"] =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    request.signature =
        HttpSignature{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1"};
    EXPECT_TRUE((*transfers)->Exchange(request).lost.ok());
    EXPECT_THAT(server.seen().back().headers["authorization"], HasSubstr("Signature=" + vector.signature))
        << request.url;
  }
  unsetenv("http_proxy");
}

TEST(S3Store, MakesARequestAgainThatTheServerRefusesForTheMoment) {
  int calls = 0;
  const Reply moments[] = {Reply::Error(500, "InternalError"),
                           Reply::Error(503, "SlowDown"),
                           Reply{502},
                           Reply{504},
                           Reply{429},
                           Reply{408},
                           Reply::Error(400, "RequestTimeout")};
  FaultServer server([&](const SeenRequest&) {
    return calls < 7 ? moments[calls++] : Reply{200, {}, "at last"};
  });
  const auto got = Open(ConfigFor(server))->Get("k", 100);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(*got, "at last");
  EXPECT_THAT(server.seen(), SizeIs(8));
}

TEST(S3Store, GivesUpAtTheDeadlineAndSaysWhatTheServerSaid) {
  FaultServer server(
      [](const SeenRequest&) { return Reply::Error(503, "SlowDown", "Please reduce your request rate."); });
  S3Config config = ConfigFor(server);
  config.deadline = milliseconds(20);
  const auto got = Open(config)->Get("k", 100);
  EXPECT_EQ(got.status().code(), Code::kUnavailable);
  EXPECT_THAT(got.status().message(), AllOf(HasSubstr("s3://lab/k"), HasSubstr(server.url()),
                                            HasSubstr("503 SlowDown: Please reduce"), HasSubstr("tried ")));
}

TEST(S3Store, DoesNotTryAgainBeforeTheTimeThatTheServerNames) {
  FaultServer server([](const SeenRequest&) { return Reply{503, {{"Retry-After", "3000"}}, ""}; });
  EXPECT_EQ(Open(ConfigFor(server))->Get("k", 100).status().code(),
            Code::kUnavailable);  // the deadline is before that
  EXPECT_THAT(server.seen(), SizeIs(1));
}

TEST(S3Store, MakesNoRequestAgainThatWillNeverBeAllowed) {
  FaultServer server([](const SeenRequest&) { return Reply::Error(403, "AccessDenied", "No."); });
  const auto got = Open(ConfigFor(server))->Get("k", 100);
  EXPECT_EQ(got.status().code(), Code::kPermission);
  EXPECT_THAT(got.status().message(),
              AllOf(HasSubstr("403 AccessDenied: No."), HasSubstr("AWS_ACCESS_KEY_ID of the environment"),
                    Not(HasSubstr("verysecret"))));
  EXPECT_THAT(server.seen(), SizeIs(1));
}

TEST(S3Store, TellsABucketThatIsNotThereFromAnObject) {
  std::string code = "NoSuchKey";
  FaultServer server([&](const SeenRequest&) { return Reply::Error(404, code); });
  const auto store = Open(ConfigFor(server));
  EXPECT_EQ(store->Get("k", 100).status().code(), Code::kNotFound);
  EXPECT_EQ(store->Bytes("k").status().code(), Code::kNotFound);
  code = "NoSuchBucket";
  EXPECT_EQ(store->Get("k", 0).status().code(), Code::kInvalid);
  EXPECT_EQ(store->Bytes("k").status().code(), Code::kInvalid);
}

TEST(S3Store, WaitsForTheServerBehindAProxyThatKnowsNoObjects) {
  const Reply pages[] = {Reply{404, {}, "<html><body>404 Not Found</body></html>"}, Reply{404}};
  for (const Reply& page : pages) {
    int calls = 0;
    FaultServer server([&](const SeenRequest& request) {
      if (request.method == "HEAD" || ++calls % 3 != 0) return page;
      return request.Has("list-type") ? Reply{200, {}, "<ListBucketResult/>"} : Reply{200, {}, "hello"};
    });
    const auto store = Open(ConfigFor(server));
    EXPECT_EQ(store->Get("k", 100).status().message(), "");
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(store->List("k").status().message(), "");
    EXPECT_EQ(calls, 6);
    const auto bytes = store->Bytes("k");
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_EQ(*bytes, 5);
    EXPECT_EQ(calls, 9);
  }
}

TEST(S3Store, NeverSaysNotFoundOfWhatAProxyAnswersInTheServersPlace) {
  FaultServer server([](const SeenRequest&) { return Reply{404, {}, "404 page not found"}; });
  S3Config config = ConfigFor(server);
  config.deadline = milliseconds(5);
  const auto store = Open(config);
  EXPECT_EQ(store->Get("k", 100).status().code(), Code::kUnavailable);
  EXPECT_EQ(store->Bytes("k").status().code(), Code::kUnavailable);
  EXPECT_EQ(store->List("k").status().code(), Code::kUnavailable);
  EXPECT_EQ(store->PutNew("k", "new").code(), Code::kUnavailable);
}

TEST(S3Store, NeverSaysNotFoundOfAListing) {
  FaultServer server([](const SeenRequest&) { return Reply::Error(404, "NoSuchKey"); });
  EXPECT_EQ(Open(ConfigFor(server))->ListFolder("k/").status().code(), Code::kIo);
}

TEST(S3Store, NamesTheRegionOfABucketThatIsElsewhere) {
  FaultServer server([](const SeenRequest&) {
    return Reply{400,
                 {},
                 "<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message><Region>eu-west-3</"
                 "Region></Error>"};
  });
  const auto got = Open(ConfigFor(server))->Get("k", 100);
  EXPECT_EQ(got.status().code(), Code::kInvalid);
  EXPECT_THAT(got.status().message(), HasSubstr("set AWS_REGION=eu-west-3"));
}

TEST(S3Store, SaysDamageOfAnObjectThatIsLongerThanItMayBe) {
  FaultServer server([](const SeenRequest&) { return Reply{200, {}, std::string(101, 'x')}; });
  const auto store = Open(ConfigFor(server));
  EXPECT_TRUE(store->Get("k", 101).ok());
  EXPECT_EQ(store->Get("k", 100).status().code(), Code::kDamage);
}

TEST(S3Store, ReadsAgainWhatAResetCutOff) {
  int calls = 0;
  FaultServer server([&](const SeenRequest& request) {
    EXPECT_EQ(request.headers.at("range"), "bytes=10-14");
    Reply reply{206, {{"Content-Range", "bytes 10-14/100"}}, "abcde"};
    if (++calls == 1)
      reply.cut_at =
          std::string("HTTP/1.1 206 Said\r\nContent-Range: bytes 10-14/100\r\nContent-Length: 5\r\n\r\nab")
              .size();
    return reply;
  });
  std::string into(5, '.');
  const ObjectRange range{10, std::as_writable_bytes(std::span(into))};
  const Status status = Open(ConfigFor(server))->Read("k", {&range, 1});
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(into, "abcde");
  EXPECT_EQ(calls, 2);
}

TEST(S3Store, MakesARequestAgainInWhichNothingMoves) {
  int calls = 0;
  FaultServer server([&](const SeenRequest&) {
    Reply reply{200, {}, "hello"};
    reply.hang = ++calls == 1;
    reply.cut_at = reply.hang ? 20 : std::string::npos;
    return reply;
  });
  S3Config config = ConfigFor(server);
  config.stall = milliseconds(40);
  const auto got = Open(config)->Get("k", 100);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(*got, "hello");
  EXPECT_GE(calls, 2);
}

TEST(S3Store, CutsOffWhatMovesByteByByte) {
  int calls = 0;
  FaultServer server([&](const SeenRequest&) {
    Reply reply{200, {}, std::string(100000, 'x')};  // ten minutes
    reply.trickle = ++calls == 1;
    return reply;
  });
  S3Config config = ConfigFor(server);
  config.stall = milliseconds(1000);
  const auto store = Open(config);
  auto got = std::async(std::launch::async, [&] { return store->Get("k", 100000).status(); });
  const bool ended = got.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  EXPECT_TRUE(ended);
  if (!ended) _exit(1);
  EXPECT_EQ(got.get().message(), "");
}

TEST(S3Store, CountsTheDeadlineFromTheFirstFailure) {
  int calls = 0;
  FaultServer server([&](const SeenRequest& request) {
    if (++calls == 1) std::this_thread::sleep_for(milliseconds(300));  // the second waits for its turn
    if (calls == 2) return Reply::Error(503, "SlowDown");
    return Reply{206, {{"Content-Range", "bytes " + request.headers.at("range").substr(6) + "/8"}}, "abcd"};
  });
  S3Config config = ConfigFor(server);
  config.part_bytes = 4;
  config.connections = 1;
  config.deadline = milliseconds(200);
  std::string into(8, '.');
  const ObjectRange range{0, std::as_writable_bytes(std::span(into))};
  EXPECT_EQ(Open(config)->Read("k", {&range, 1}).message(), "");
  EXPECT_EQ(calls, 3);
}

TEST(S3Store, GivesASignOfLifeWhileAllConnectionsAreBusyWithBulk) {
  std::promise<void> alive;
  FaultServer server([when = alive.get_future().share()](const SeenRequest& request) {
    if (request.method == "PUT") return Reply{};
    Reply reply{206, {{"Content-Range", "bytes 0-3/4"}}, "abcd"};
    reply.when = when;
    return reply;
  });
  S3Config config = ConfigFor(server);
  config.connections = 1;
  const auto store = Open(config);
  std::string into(4, '.');
  const ObjectRange range{0, std::as_writable_bytes(std::span(into))};
  auto read = std::async(std::launch::async, [&] { return store->Read("k", {&range, 1}); });
  while (server.seen().empty()) std::this_thread::yield();
  auto put = std::async(std::launch::async, [&] { return store->Put("ALIVE", "7"); });
  EXPECT_EQ(put.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  alive.set_value();
  EXPECT_EQ(put.get().message(), "");
  EXPECT_EQ(read.get().message(), "");
}

TEST(Transfers, GiveSmallRequestsAndWhatHasWaitedAlreadyTheirTurnFirst) {
  std::promise<void> begin;
  FaultServer server([when = begin.get_future().share()](const SeenRequest&) {
    Reply reply;
    reply.when = when;
    return reply;
  });
  setenv("no_proxy", "127.0.0.1", 1);
  Transfers::Options options;
  options.connections = 1;
  auto transfers = Transfers::Start(options);
  ASSERT_TRUE(transfers.ok()) << transfers.status().message();
  std::promise<void> ended;
  int left = 6;
  const auto send = [&](const std::string& path, HttpTurn turn) {
    HttpRequest request;
    request.url = server.url() + path;
    request.turn = turn;
    (*transfers)->Begin(&left, std::move(request), [&](const HttpAnswer&) {
      if (--left == 0) ended.set_value();
    });
  };
  // One of bulk and two small ones take all connections.
  send("/under-way", HttpTurn::kBulk);
  send("/under-way", HttpTurn::kFirst);
  send("/under-way", HttpTurn::kFirst);
  send("/bulk", HttpTurn::kBulk);
  send("/again", HttpTurn::kBulkAgain);
  send("/small", HttpTurn::kFirst);
  while (server.seen().size() < 3) std::this_thread::yield();
  begin.set_value();
  ended.get_future().wait();
  std::vector<std::string> order;
  for (const SeenRequest& request : server.seen()) order.push_back(request.target);
  const auto at = [&](const char* path) {
    return std::find(order.begin(), order.end(), path) - order.begin();
  };
  EXPECT_LT(at("/again"), at("/bulk"));
  EXPECT_EQ(left, 0);
}

TEST(S3Store, SaysDamageWhereAnObjectEndsBeforeARange) {
  bool beyond = false;
  FaultServer server([&](const SeenRequest&) {
    return beyond ? Reply::Error(416, "InvalidRange")
                  : Reply{206, {{"Content-Range", "bytes 10-12/13"}}, "abc"};
  });
  std::string into(5, '.');
  const ObjectRange range{10, std::as_writable_bytes(std::span(into))};
  const auto store = Open(ConfigFor(server));
  EXPECT_EQ(store->Read("k", {&range, 1}).code(), Code::kDamage);
  beyond = true;
  EXPECT_EQ(store->Read("k", {&range, 1}).code(), Code::kDamage);
}

TEST(S3Store, RefusesAnotherRangeThanItAskedFor) {
  std::map<std::string, std::string> headers = {{"Content-Range", "bytes 0-4/100"}};
  std::string body = "abcde";
  FaultServer server([&](const SeenRequest&) { return Reply{206, headers, body}; });
  std::string into(5, '.');
  const ObjectRange range{10, std::as_writable_bytes(std::span(into))};
  const auto store = Open(ConfigFor(server));
  EXPECT_EQ(store->Read("k", {&range, 1}).code(), Code::kIo);
  headers = {{"Content-Range", "bytes 10-15/100"}};
  body = "abcdef";  // more than that
  EXPECT_EQ(store->Read("k", {&range, 1}).code(), Code::kIo);
}

TEST(S3Store, RefusesAWholeObjectInPlaceOfARange) {
  FaultServer server([](const SeenRequest&) { return Reply{200, {}, "abcdefghij"}; });
  std::string into(5, '.');
  const ObjectRange range{2, std::as_writable_bytes(std::span(into))};
  EXPECT_EQ(Open(ConfigFor(server))->Read("k", {&range, 1}).code(), Code::kIo);
  EXPECT_EQ(into, ".....");
}

TEST(S3Store, SendsTheMd5OfABodyAndSendsAgainWhatDidNotArriveWhole) {
  int calls = 0;
  FaultServer server(
      [&](const SeenRequest&) { return ++calls == 1 ? Reply::Error(400, "BadDigest") : Reply{}; });
  EXPECT_TRUE(Open(ConfigFor(server))->Put("k", "abc").ok());
  const auto seen = server.seen();
  ASSERT_THAT(seen, SizeIs(2));
  EXPECT_EQ(seen[1].method, "PUT");
  EXPECT_EQ(seen[1].body, "abc");
  EXPECT_EQ(seen[1].headers.at("content-md5"), "kAFQmDzST7DWlj99KOF/cg==");  // openssl md5 -binary | base64
  EXPECT_THAT(seen[1].headers.at("authorization"), HasSubstr("content-md5;"));
}

TEST(S3Store, RenewsExpiredCredentialsOnceARequest) {
  const TempDir dir;
  const std::string path = dir / "credentials";
  const auto write = [&](const std::string& key) {
    Write(path, "[default]\naws_access_key_id = " + key +
                    "\naws_secret_access_key = s\naws_session_token = t-" + key + "\n");
  };
  write("OLD");
  bool always = false;
  FaultServer server([&](const SeenRequest& request) {
    write("NEW");
    const bool old = request.headers.at("x-amz-security-token") == "t-OLD";
    return old || always ? Reply::Error(400, "ExpiredToken", "The provided token has expired.")
                         : Reply{200, {}, "hello"};
  });
  const auto store =
      Open(ConfigFor(server), {{"AWS_SHARED_CREDENTIALS_FILE", path}, {"AWS_CONFIG_FILE", "/nowhere"}});
  EXPECT_TRUE(store->Get("k", 100).ok());
  EXPECT_THAT(server.seen(), SizeIs(2));
  always = true;
  const auto refused = store->Get("k", 100);
  EXPECT_EQ(refused.status().code(), Code::kPermission);
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("ExpiredToken"), HasSubstr("the profile 'default' in " + path)));
  EXPECT_THAT(server.seen(), SizeIs(4));
}

TEST(S3Store, RenewsCredentialsThatAHeadFindsExpired) {
  const TempDir dir;
  const std::string path = dir / "credentials";
  const auto write = [&](const std::string& key) {
    Write(path, "[default]\naws_access_key_id = " + key +
                    "\naws_secret_access_key = s\naws_session_token = t-" + key + "\n");
  };
  write("OLD");
  FaultServer server([&](const SeenRequest& request) {
    write("NEW");
    return request.headers.at("x-amz-security-token") == "t-OLD" ? Reply::Error(400, "ExpiredToken")
                                                                 : Reply{200, {}, "hello"};
  });
  const auto bytes =
      Open(ConfigFor(server), {{"AWS_SHARED_CREDENTIALS_FILE", path}, {"AWS_CONFIG_FILE", "/nowhere"}})
          ->Bytes("k");
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, 5);
}

// A server that keeps one object with its id, and forgets answers on demand.
struct OneObject {
  std::optional<std::string> body;
  std::string id;
  int lose_puts = 0;
  bool knows_conditions = true;

  Reply operator()(const SeenRequest& request) {
    if (request.method == "HEAD")
      return body ? Reply{200,
                          {{"x-amz-meta-cairn-id", id}, {"Content-Length", std::to_string(body->size())}},
                          ""}
                  : Reply{404};
    if (request.method == "GET") return Reply::Error(404, "NoSuchKey");
    if (request.method != "PUT") return Reply{400};
    const bool conditional = request.headers.count("if-none-match") != 0;
    if (conditional && !knows_conditions) return Reply::Error(501, "NotImplemented");
    if (conditional && body) return Reply::Error(412, "PreconditionFailed");
    body = request.body;
    id = request.headers.count("x-amz-meta-cairn-id") != 0 ? request.headers.at("x-amz-meta-cairn-id") : "";
    Reply reply;
    reply.lose = lose_puts-- > 0;
    return reply;
  }
};

TEST(S3Store, PutsANewObjectAloneWhereThereIsNone) {
  OneObject object;
  FaultServer server([&](const SeenRequest& request) { return object(request); });
  const auto store = Open(ConfigFor(server));
  EXPECT_TRUE(store->PutNew("RUN", "first").ok());
  EXPECT_EQ(store->PutNew("RUN", "first").code(), Code::kExists);
  EXPECT_EQ(object.body, "first");
}

TEST(S3Store, KnowsItsOwnObjectAfterALostAnswer) {
  OneObject object;
  object.lose_puts = 1;
  FaultServer server([&](const SeenRequest& request) { return object(request); });
  const Status status = Open(ConfigFor(server))->PutNew("RUN", "first");
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(S3Store, DoesNotTakeAnothersObjectForItsOwn) {
  OneObject object;
  bool raced = false;
  FaultServer server([&](const SeenRequest& request) {
    if (request.method == "PUT" && !raced) {  // another one's arrives between the look and ours
      raced = true;
      object.body = "first";
      object.id = "another";
    }
    return object(request);
  });
  EXPECT_EQ(Open(ConfigFor(server))->PutNew("RUN", "first").code(), Code::kExists);
  EXPECT_TRUE(raced);
}

TEST(S3Store, LooksFirstWhereTheServerKnowsNoConditions) {
  OneObject object;
  object.knows_conditions = false;
  FaultServer server([&](const SeenRequest& request) { return object(request); });
  const auto store = Open(ConfigFor(server));
  EXPECT_TRUE(store->PutNew("RUN", "first").ok());
  EXPECT_EQ(store->PutNew("RUN", "second").code(), Code::kExists);
  EXPECT_EQ(object.body, "first");
}

// A server of one upload.
struct OneUpload {
  std::map<std::string, std::string> parts;  // by number
  std::string id;
  std::string completed_with;  // the body
  bool there = false, dropped = false;
  std::function<std::optional<Reply>(const SeenRequest&, int completions)> fault;
  int completions = 0;

  Reply operator()(const SeenRequest& request) {
    const bool completing = request.method == "POST" && request.Has("uploadId=");
    if (completing) ++completions;
    std::optional<Reply> said = fault ? fault(request, completions) : std::nullopt;
    if (said && !said->lose) return *said;
    Reply reply = Answer(request);
    reply.lose = said.has_value();
    return reply;
  }

  Reply Answer(const SeenRequest& request) {
    if (request.method == "POST" && request.Has("?uploads=")) {
      id = request.headers.at("x-amz-meta-cairn-id");
      return Reply{200,
                   {},
                   "<InitiateMultipartUploadResult "
                   "xmlns=\"x\"><UploadId>up/1+</UploadId></InitiateMultipartUploadResult>"};
    }
    if (request.method == "HEAD") return there ? Reply{200, {{"x-amz-meta-cairn-id", id}}, ""} : Reply{404};
    if (request.method == "GET") return Reply::Error(404, "NoSuchKey");
    EXPECT_TRUE(request.Has("uploadId=up%2F1%2B")) << request.target;
    if (request.method == "DELETE") {
      dropped = true;
      return Reply{204};
    }
    if (request.method == "PUT") {
      const std::string number = request.target.substr(request.target.find("partNumber=") + 11, 1);
      parts[number] = request.body;
      return Reply{200, {{"ETag", "\"e" + number + "\""}}, ""};
    }
    if (there) return Reply::Error(404, "NoSuchUpload");
    completed_with = request.body;
    there = true;
    return Reply{200, {}, "<CompleteMultipartUploadResult/>"};
  }
};

// Sends "abcd", "efgh", "ij", the last one first.
Status SendThreeParts(ObjectStore* store) {
  auto upload = store->Upload("shard", 10);
  if (!upload.ok()) return upload.status();
  EXPECT_EQ((*upload)->part_bytes(), 4);
  CAIRN_RETURN_IF_ERROR((*upload)->Send(2, BytesOf("ij")));
  CAIRN_RETURN_IF_ERROR((*upload)->Send(0, BytesOf("abcd")));
  CAIRN_RETURN_IF_ERROR((*upload)->Send(1, BytesOf("efgh")));
  return (*upload)->Finish();
}

S3Config WithSmallParts(const FaultServer& server) {
  S3Config config = ConfigFor(server);
  config.part_bytes = 4;
  return config;
}

TEST(S3Upload, SendsPartsInAnyOrderAndNamesThemAllAtTheEnd) {
  OneUpload one;
  FaultServer server([&](const SeenRequest& request) { return one(request); });
  const auto store = Open(WithSmallParts(server));
  const Status status = SendThreeParts(store.get());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(one.parts, (std::map<std::string, std::string>{{"1", "abcd"}, {"2", "efgh"}, {"3", "ij"}}));
  EXPECT_THAT(
      one.completed_with,
      HasSubstr(
          "<Part><PartNumber>1</PartNumber><ETag>\"e1\"</ETag></Part><Part><PartNumber>2</PartNumber>"));
  EXPECT_FALSE(one.dropped);
}

TEST(S3Upload, SendsAPartAgainAfterEachKindOfTrouble) {
  OneUpload one;
  int troubles = 0;
  one.fault = [&](const SeenRequest& request, int) -> std::optional<Reply> {
    if (request.method != "PUT" || troubles == 3) return std::nullopt;
    Reply lost;
    lost.lose = true;
    return std::array{Reply::Error(503, "SlowDown"), lost, Reply::Error(400, "BadDigest")}[troubles++];
  };
  FaultServer server([&](const SeenRequest& request) { return one(request); });
  const Status status = SendThreeParts(Open(WithSmallParts(server)).get());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(troubles, 3);
  EXPECT_THAT(one.parts, SizeIs(3));
}

TEST(S3Upload, TakesAnErrorInAGoodAnswerForOne) {
  OneUpload one;
  one.fault = [&](const SeenRequest&, int completions) -> std::optional<Reply> {
    if (completions != 1) return std::nullopt;
    return Reply{
        200,
        {},
        "<?xml version=\"1.0\"?>\n\n   <Error><Code>InternalError</Code><Message>m</Message></Error>"};
  };
  FaultServer server([&](const SeenRequest& request) { return one(request); });
  const Status status = SendThreeParts(Open(WithSmallParts(server)).get());
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(one.completions, 2);
}

TEST(S3Upload, KnowsThatItIsCompleteAfterALostAnswer) {
  OneUpload one;
  one.fault = [&](const SeenRequest&, int completions) -> std::optional<Reply> {
    if (completions != 1) return std::nullopt;
    Reply lost;
    lost.lose = true;
    return lost;
  };
  FaultServer server([&](const SeenRequest& request) { return one(request); });
  const Status status = SendThreeParts(Open(WithSmallParts(server)).get());
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(one.completions, 2);
}

TEST(S3Upload, FailsWhenSomebodyHasGivenItUp) {
  OneUpload one;
  one.fault = [&](const SeenRequest&, int completions) -> std::optional<Reply> {
    if (completions == 0) return std::nullopt;
    return Reply::Error(404, "NoSuchUpload");
  };
  FaultServer server([&](const SeenRequest& request) { return one(request); });
  EXPECT_EQ(SendThreeParts(Open(WithSmallParts(server)).get()).code(), Code::kIo);
}

TEST(S3Upload, DropsItsPartsWhenItIsNotFinished) {
  OneUpload one;
  one.fault = [&](const SeenRequest& request, int) -> std::optional<Reply> {
    if (request.method == "PUT") return Reply::Error(403, "QuotaExceeded");
    return std::nullopt;
  };
  FaultServer server([&](const SeenRequest& request) { return one(request); });
  EXPECT_EQ(SendThreeParts(Open(WithSmallParts(server)).get()).code(), Code::kNoSpace);
  EXPECT_TRUE(one.dropped);
  EXPECT_FALSE(one.there);
}

// The server holds the first part, or the end of the upload, for as long as it likes.
TEST(S3Upload, CancelEndsWhatWaitsForTheServerAndAsksNothingMore) {
  for (const std::string method : {"PUT", "POST"}) {
    OneUpload one;
    std::promise<void> begun, over;
    std::atomic<bool> held = false;
    FaultServer server([&](const SeenRequest& request) {
      if (request.method == method && request.Has("uploadId=") && !held.exchange(true)) {
        begun.set_value();
        over.get_future().wait();
      }
      return one(request);
    });
    const auto store = Open(WithSmallParts(server));
    {
      auto upload = store->Upload("shard", 4);
      ASSERT_TRUE(upload.ok()) << upload.status().message();
      ASSERT_TRUE((*upload)->Send(0, BytesOf("abcd")).ok());
      std::thread canceller([&] {
        begun.get_future().wait();
        (*upload)->Cancel();
      });
      EXPECT_EQ((*upload)->Finish().code(), Code::kCancelled);
      canceller.join();
      EXPECT_EQ((*upload)->Finish().code(), Code::kCancelled);
    }
    for (const SeenRequest& seen : server.seen()) EXPECT_NE(seen.method, "DELETE");
    over.set_value();
  }
}

TEST(S3Store, PutsWhatIsLargeInParts) {
  OneUpload one;
  FaultServer server([&](const SeenRequest& request) { return one(request); });
  EXPECT_TRUE(Open(WithSmallParts(server))->Put("big", "abcdefghij").ok());
  EXPECT_EQ(one.parts, (std::map<std::string, std::string>{{"1", "abcd"}, {"2", "efgh"}, {"3", "ij"}}));
}

TEST(S3Store, ListsOverAsManyAnswersAsItTakes) {
  FaultServer server([](const SeenRequest& request) {
    if (!request.Has("continuation-token")) {
      EXPECT_EQ(request.target, "/lab?encoding-type=url&list-type=2&prefix=runs%2F");
      return Reply{200,
                   {},
                   "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</"
                   "IsTruncated><NextContinuationToken>a+b/c=</NextContinuationToken>"
                   "<Contents><Key>runs/b%2Bc</Key><Size>7</Size></Contents></ListBucketResult>"};
    }
    EXPECT_TRUE(request.Has("continuation-token=a%2Bb%2Fc%3D")) << request.target;
    return Reply{
        200,
        {},
        "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
        "<Contents><Key>runs/a+x</Key><Size>18446744073709551615</Size></Contents></ListBucketResult>"};
  });
  const auto listed = Open(ConfigFor(server))->List("runs/");
  ASSERT_TRUE(listed.ok()) << listed.status().message();
  EXPECT_THAT(*listed,
              ElementsAre(StoredObject{"runs/a x", 18446744073709551615u}, StoredObject{"runs/b+c", 7}));
}

TEST(S3Store, ListsAFolderAsNames) {
  FaultServer server([](const SeenRequest& request) {
    EXPECT_EQ(request.target, "/lab?delimiter=%2F&encoding-type=url&list-type=2&prefix=runs%2F");
    return Reply{200,
                 {},
                 "<ListBucketResult><Contents><Key>runs/</Key><Size>0</Size></Contents><Contents><Key>runs/"
                 "RUN</Key><Size>1</Size></Contents>"
                 "<CommonPrefixes><Prefix>runs/10/</Prefix></CommonPrefixes></ListBucketResult>"};
  });
  const auto names = Open(ConfigFor(server))->ListFolder("runs/");
  ASSERT_TRUE(names.ok()) << names.status().message();
  EXPECT_THAT(*names, ElementsAre("10", "RUN"));
}

TEST(S3Store, RefusesAListingThatIsSomeProxysPage) {
  FaultServer server([](const SeenRequest&) { return Reply{200, {}, "<html><body>Sign in</body></html>"}; });
  const auto listed = Open(ConfigFor(server))->List("runs/");
  EXPECT_EQ(listed.status().code(), Code::kIo);
  EXPECT_THAT(listed.status().message(), HasSubstr("Sign in"));
}

TEST(S3Store, RemovesAThousandAtATime) {
  FaultServer server([](const SeenRequest& request) {
    EXPECT_EQ(request.target, "/lab?delete=");
    EXPECT_NE(request.headers.at("content-md5"), "");
    return Reply{200, {}, "<DeleteResult/>"};
  });
  std::vector<std::string> keys(1001, "a&b");
  EXPECT_TRUE(Open(ConfigFor(server))->Remove(keys).ok());
  const auto seen = server.seen();
  ASSERT_THAT(seen, SizeIs(2));
  EXPECT_THAT(seen[1].body, HasSubstr("<Quiet>true</Quiet><Object><Key>a&amp;b</Key></Object></Delete>"));
}

TEST(S3Store, ReportsAnObjectThatMayNotBeRemoved) {
  FaultServer server([](const SeenRequest&) {
    return Reply{200,
                 {},
                 "<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code><Message>locked</Message></"
                 "Error></DeleteResult>"};
  });
  const std::string key = "k";
  const Status status = Open(ConfigFor(server))->Remove({&key, 1});
  EXPECT_EQ(status.code(), Code::kPermission);
  EXPECT_THAT(status.message(), HasSubstr("locked"));
}

TEST(S3Store, GivesUpTheUploadsThatOthersLeft) {
  std::vector<std::string> dropped;
  FaultServer server([&](const SeenRequest& request) {
    if (request.method == "DELETE") {
      dropped.push_back(request.target);
      return Reply{204};
    }
    if (!request.Has("key-marker")) {
      return Reply{200,
                   {},
                   "<ListMultipartUploadsResult><Upload><Key>runs/a</Key><UploadId>1</UploadId></"
                   "Upload><IsTruncated>true</IsTruncated>"
                   "<NextKeyMarker>runs/a</NextKeyMarker><NextUploadIdMarker>1</NextUploadIdMarker></"
                   "ListMultipartUploadsResult>"};
    }
    EXPECT_TRUE(request.Has("key-marker=runs%2Fa&prefix=runs%2F&upload-id-marker=1&uploads="))
        << request.target;
    return Reply{200,
                 {},
                 "<ListMultipartUploadsResult><Upload><Key>runs/b</Key><UploadId>2</UploadId></Upload></"
                 "ListMultipartUploadsResult>"};
  });
  EXPECT_TRUE(Open(ConfigFor(server))->AbortUploads("runs/").ok());
  EXPECT_THAT(dropped, ElementsAre("/lab/runs/a?uploadId=1", "/lab/runs/b?uploadId=2"));
}

TEST(S3Store, CutsALongRangeIntoPieces) {
  FaultServer server([](const SeenRequest& request) {
    return Reply{206,
                 {{"Content-Range", "bytes " + request.headers.at("range").substr(6) + "/10"}},
                 request.headers.at("range") == "bytes=8-9"   ? "ij"
                 : request.headers.at("range") == "bytes=4-7" ? "efgh"
                                                              : "abcd"};
  });
  std::string into(10, '.');
  const ObjectRange range{0, std::as_writable_bytes(std::span(into))};
  const Status status = Open(WithSmallParts(server))->Read("k", {&range, 1});
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(into, "abcdefghij");
  EXPECT_THAT(server.seen(), SizeIs(3));
}

TEST(S3Store, FailsAtOnceInAForkedChild) {
  FaultServer server([](const SeenRequest&) { return Reply{200, {}, "hello"}; });
  auto store = Open(ConfigFor(server));
  ASSERT_TRUE(store->Get("k", 100).ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const bool inert = store->Get("k", 100).status().code() == Code::kUnavailable;
    store.reset();
    _exit(inert ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(store->Get("k", 100).ok());
}

}  // namespace
}  // namespace cairn
