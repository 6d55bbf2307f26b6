// bench_s3: an object sent in parts and read in ranges, against `curl -Z`, which makes the same requests over as many connections.
//
//     bench_s3 FOLDER MIB ROUNDS     the server and the credentials from the environment (docs/s3.md)
//
// What curl does not do is ours to do besides: the parts' MD5, and memory that takes what was read. Both begin and end the upload.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "runtime/s3/answers.h"
#include "runtime/s3/s3_store.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "bench_s3: %s\n", what.c_str());
  std::exit(2);
}

void Need(const Status& status) {
  if (!status.ok()) Fail(status.message());
}

class Bench {
 public:
  Bench(S3Config config, std::string folder, size_t bytes)
      : config_(std::move(config)), folder_(std::move(folder)), memory_(bytes, std::byte{7}) {
    auto client = S3Client::Start(config_, ProcessEnvironment);
    Need(client.status());
    client_ = *std::move(client);
    auto store = S3Store::Open(config_, ProcessEnvironment);
    Need(store.status());
    store_ = *std::move(store);
    S3Request create;
    create.method = "PUT";
    Need(client_->Make(std::move(create)).status());
    S3Request part;
    part.method = "PUT";
    part.key = "part";
    part.body = std::span(memory_).first(config_.part_bytes);
    auto answer = client_->Make(std::move(part));
    Need(answer.status());
    part_etag_ = answer->headers["etag"];
    part_file_ = folder_ + "/part";
    std::ofstream(part_file_)
        .write(reinterpret_cast<const char*>(memory_.data()), static_cast<long>(config_.part_bytes));
  }

  void Run(int rounds) {
    Need(store_->Put("get", Text()));
    for (int round = 0; round < rounds; ++round) {
      Compare(
          "put", [&] { return CurlPut(); }, [&] { return OurPut(); });
      Compare(
          "get", [&] { return CurlGet(); }, [&] { return OurGet(); });
    }
    const std::string keys[] = {"curl", "get", "ours", "part"};
    Need(store_->Remove(keys));
  }

 private:
  using Measure = std::function<double()>;

  void Compare(const char* what, const Measure& limit, const Measure& ours) {
    const double before = limit(), first = ours(), second = ours(), after = limit();
    std::printf(
        "{\"workload\": \"%s %zu MiB, %d connections\", \"limit_s\": [%.6f, %.6f], \"ours_s\": [%.6f, %.6f], "
        "\"bytes\": %zu}\n",
        what, memory_.size() >> 20, config_.connections, before, after, first, second, memory_.size());
    std::fflush(stdout);
  }

  static double Timed(const std::function<void()>& work) {
    const auto begin = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  std::string_view Text() const { return {reinterpret_cast<const char*>(memory_.data()), memory_.size()}; }

  double OurPut() {
    return Timed([&] { Need(store_->Put("ours", Text())); });
  }

  double OurGet() {
    const ObjectRange all{0, memory_};
    return Timed([&] { Need(store_->Read("get", {&all, 1})); });
  }

  double CurlPut() {
    return Timed([&] {
      S3Request begin;
      begin.method = "POST";
      begin.key = "curl";
      begin.query = {{"uploads", ""}};
      const auto answer = client_->Make(std::move(begin));
      Need(answer.status());
      const auto id = ParseUploadId(answer->text);
      Need(id.status());
      Curl([&](std::ostream& to, size_t part) {
        to << "url = \"" << config_.Url("curl", {{"partNumber", std::to_string(part + 1)}, {"uploadId", *id}})
           << "\"\nupload-file = \"" << part_file_ << "\"\n";
      });
      const std::string all = FormatComplete(std::vector<std::string>(Parts(), part_etag_));
      S3Request complete;
      complete.method = "POST";
      complete.key = "curl";
      complete.query = {{"uploadId", *id}};
      complete.body = std::as_bytes(std::span(all));
      Need(client_->Make(std::move(complete)).status());
    });
  }

  double CurlGet() {
    return Timed([&] {
      Curl([&](std::ostream& to, size_t part) {
        to << "url = \"" << config_.Url("get") << "\"\nrange = \"" << part * config_.part_bytes << "-"
           << (part + 1) * config_.part_bytes - 1 << "\"\n";
      });
    });
  }

  size_t Parts() const { return memory_.size() / config_.part_bytes; }

  // One request a part, as `say` has it in curl's configuration.
  void Curl(const std::function<void(std::ostream& to, size_t part)>& say) {
    const std::string path = folder_ + "/curl";
    std::ofstream to(path);
    for (size_t part = 0; part < Parts(); ++part) {
      if (part != 0) to << "next\n";
      say(to, part);
      to << "output = \"/dev/null\"\nfail\nsilent\nshow-error\naws-sigv4 = \"aws:amz:" << config_.region
         << ":s3\"\nuser = \"" << getenv("AWS_ACCESS_KEY_ID") << ":" << getenv("AWS_SECRET_ACCESS_KEY")
         << "\"\nheader = \"x-amz-content-sha256: UNSIGNED-PAYLOAD\"\n";
    }
    to.close();
    const std::string command = "curl --no-progress-meter --parallel --parallel-immediate --parallel-max " +
                                std::to_string(config_.connections) + " --config '" + path + "'";
    if (system(command.c_str()) != 0) Fail("curl failed");
  }

  const S3Config config_;
  const std::string folder_;
  std::vector<std::byte> memory_;
  std::string part_file_;  // of one part
  std::string part_etag_;  // the server's name for its bytes
  std::unique_ptr<S3Client> client_;
  std::unique_ptr<ObjectStore> store_;
};

int Main(int argc, char** argv) {
  if (argc != 4) Fail("usage: bench_s3 FOLDER MIB ROUNDS");
  auto config = S3Config::FromEnvironment("cairn-bench", ProcessEnvironment);
  Need(config.status());
  Bench(*config, argv[1], std::stoul(argv[2]) << 20).Run(std::stoi(argv[3]));
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) { return cairn::Main(argc, argv); }
