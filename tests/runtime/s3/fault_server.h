// FaultServer: a server of HTTP in the test's own process that answers as the test says, or hands on to another server and answers as that does,
// with faults in between.
//
// The handler is called for one request at a time, in the order of their arrival.
#ifndef CAIRN_TESTS_RUNTIME_S3_FAULT_SERVER_H_
#define CAIRN_TESTS_RUNTIME_S3_FAULT_SERVER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cairn {

struct SeenRequest {
  std::string method;
  std::string target;                          // path and query, as sent
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string raw_head;  // the lines as they came, each with its end

  bool Has(const std::string& part) const { return target.find(part) != std::string::npos; }
};

struct Reply {
  int status = 200;
  std::map<std::string, std::string> headers;
  std::string body;

  bool pass = false;  // the answer of the other server instead
  bool lose =
      false;  // close the connection without an answer (with `pass`: after the other server has answered)
  bool hang = false;                         // say nothing more, and keep the connection
  size_t cut_at = std::string::npos;         // close (or hang) after so many bytes of the answer
  std::function<void(SeenRequest*)> change;  // of what is passed on
  std::shared_future<void> when;             // answers no earlier
  bool trickle = false;                      // a byte every 5 ms

  static Reply Pass() {
    Reply reply;
    reply.pass = true;
    return reply;
  }
  static Reply Error(int status, const std::string& code, const std::string& message = "so it is") {
    return {
        status,
        {},
        "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>"};
  }
};

class FaultServer {
 public:
  using Handler = std::function<Reply(const SeenRequest&)>;

  explicit FaultServer(Handler handler, uint16_t upstream_port = 0)
      : handler_(std::move(handler)), upstream_port_(upstream_port) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = Loopback(0);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(listener_, 64);
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }

  ~FaultServer() {
    ending_ = true;
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      std::lock_guard lock(mutex_);
      for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& thread : connections_) thread.join();
    close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<SeenRequest> seen() {
    std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  static sockaddr_in Loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void Accept() {
    while (!ending_) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      std::lock_guard lock(mutex_);
      open_.push_back(fd);
      connections_.emplace_back([this, fd] {
        std::string ahead;
        while (Serve(fd, &ahead)) {
        }
        std::lock_guard closing(mutex_);
        open_.erase(std::find(open_.begin(), open_.end(), fd));
        close(fd);
      });
    }
  }

  static bool Receive(int fd, std::string* into) {
    char buffer[65536];
    const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n > 0) into->append(buffer, static_cast<size_t>(n));
    return n > 0;
  }

  static void SendAll(int fd, const std::string& bytes, bool trickle = false) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = send(fd, bytes.data() + at, trickle ? 1 : bytes.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      if (trickle) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      at += static_cast<size_t>(n);
    }
  }

  // One request on the connection; false when it is over.
  bool Serve(int fd, std::string* ahead) {
    size_t end;
    while ((end = ahead->find("\r\n\r\n")) == std::string::npos) {
      if (!Receive(fd, ahead)) return false;
    }
    SeenRequest request;
    request.raw_head = ahead->substr(0, end + 2);
    ahead->erase(0, end + 4);
    Parse(&request);
    const size_t length =
        request.headers.count("content-length") != 0 ? std::stoul(request.headers["content-length"]) : 0;
    while (ahead->size() < length) {
      if (!Receive(fd, ahead)) return false;
    }
    request.body = ahead->substr(0, length);
    ahead->erase(0, length);

    Reply reply;
    {
      std::lock_guard lock(handling_);
      {
        std::lock_guard seeing(mutex_);
        seen_.push_back(request);
      }
      reply = handler_(request);
    }
    std::string answer;
    if (reply.pass) {
      if (reply.change) reply.change(&request);
      answer = AskUpstream(request);
    } else {
      answer = "HTTP/1.1 " + std::to_string(reply.status) + " Said\r\n";
      for (const auto& [name, value] : reply.headers) answer += name + ": " + value + "\r\n";
      if (reply.headers.count("Content-Length") == 0)
        answer += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
      answer += "\r\n";
      if (request.method != "HEAD") answer += reply.body;
    }
    if (reply.when.valid()) reply.when.wait();
    if (!reply.lose) SendAll(fd, answer.substr(0, reply.cut_at), reply.trickle);
    if (reply.hang) {
      pollfd wait{fd, POLLRDHUP, 0};
      poll(&wait, 1, -1);  // until the client or the destructor ends it
    }
    return !reply.pass && !reply.lose && !reply.hang && reply.cut_at == std::string::npos;
  }

  static void Parse(SeenRequest* request) {
    const std::string& head = request->raw_head;
    const size_t space = head.find(' '), second = head.find(' ', space + 1);
    request->method = head.substr(0, space);
    request->target = head.substr(space + 1, second - space - 1);
    for (size_t at = head.find("\r\n") + 2; at < head.size();) {
      const size_t end = head.find("\r\n", at), colon = head.find(':', at);
      std::string name = head.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(tolower(c)); });
      const size_t value = head.find_first_not_of(' ', colon + 1);
      request->headers[name] = head.substr(value, end - value);
      at = end + 2;
    }
  }

  std::string AskUpstream(const SeenRequest& request) const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(upstream_port_);
    std::string answer;
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      SendAll(fd, request.raw_head + "Connection: close\r\n\r\n" + request.body);
      while (Receive(fd, &answer)) {
      }
    }
    close(fd);
    return answer;
  }

  const Handler handler_;
  const uint16_t upstream_port_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> ending_{false};
  std::thread acceptor_;
  std::mutex handling_;
  std::mutex mutex_;  // guards what follows
  std::vector<int> open_;
  std::vector<std::thread> connections_;
  std::vector<SeenRequest> seen_;
};

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_S3_FAULT_SERVER_H_
