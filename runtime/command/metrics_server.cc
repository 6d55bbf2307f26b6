#include "runtime/command/metrics_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <string_view>

#include "runtime/control/socket.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kClientBound{2};  // for one request and its answer: others wait
constexpr size_t kMostRequestBytes = 8192;

bool Await(int fd, short events, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  pollfd poll_fd{fd, events, 0};
  return left > 0 && poll(&poll_fd, 1, static_cast<int>(left)) > 0;
}

// Up to the end of the head; "" when it does not come.
std::string ReadHead(int fd, Clock::time_point until) {
  std::string head;
  char buffer[2048];
  while (head.find("\r\n\r\n") == std::string::npos) {
    if (head.size() > kMostRequestBytes || !Await(fd, POLLIN, until)) return "";
    const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return "";
    head.append(buffer, static_cast<size_t>(n));
  }
  return head;
}

void SendAll(int fd, std::string_view text, Clock::time_point until) {
  while (!text.empty() && Await(fd, POLLOUT, until)) {
    const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

std::string Answer(const char* status, const std::string& body) {
  return std::string("HTTP/1.1 ") + status +
         "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nConnection: "
         "close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

Status ServeMetrics(const std::string& address, const std::function<void(int port)>& ready,
                    const std::function<Result<std::string>()>& page) {
  CAIRN_ASSIGN_OR_RETURN(const Address parsed, Address::Parse(address));
  CAIRN_ASSIGN_OR_RETURN(const Socket listener, Listen(parsed));
  ready(LocalPort(listener));
  for (;;) {
    pollfd poll_fd{listener.fd(), POLLIN, 0};
    if (poll(&poll_fd, 1, -1) < 0 && errno != EINTR) return Status::FromErrno(errno, "wait on " + address);
    const Socket client(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client.fd() < 0) continue;
    const auto until = Clock::now() + kClientBound;
    const std::string head = ReadHead(client.fd(), until);
    if (head.empty()) continue;
    if (!head.starts_with("GET /metrics ")) {
      SendAll(client.fd(), Answer("404 Not Found", "GET /metrics\n"), until);
      continue;
    }
    const Result<std::string> body = page();
    SendAll(client.fd(),
            body.ok() ? Answer("200 OK", *body)
                      : Answer("503 Service Unavailable", body.status().message() + "\n"),
            Clock::now() + kClientBound);
  }
}

}  // namespace cairn
