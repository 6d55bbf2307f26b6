// Socket and Address: the control plane's stream sockets. Every socket is non-blocking and CLOEXEC.
#ifndef CAIRN_RUNTIME_CONTROL_SOCKET_H_
#define CAIRN_RUNTIME_CONTROL_SOCKET_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/fd.h"

namespace cairn {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}

  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

// "10.0.0.7:4711", "[fe80::1]:4711", or "@name": an abstract Unix socket, which leaves nothing behind in the file system.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  static Result<Address> Parse(std::string_view text);
  bool is_unix() const { return storage.ss_family == AF_UNIX; }
};

// "a,b" → {"a", "b"}; the order is the order of trial.
std::vector<std::string> SplitAddresses(std::string_view text);

Result<Socket> Listen(const Address& address);

// Listens on `host` ("" = all addresses, IPv6 included where the machine has it) and the first free port of [first, last]; 0, 0 = any.
Result<Socket> ListenTcp(const std::string& host, uint16_t first_port, uint16_t last_port);

uint16_t LocalPort(const Socket& socket);

// Begins to connect; the outcome is the first read's or write's.
Result<Socket> StartConnect(const Address& address);

// The addresses ("a:port") by which others can reach a socket that listens on all of this machine's: those of running interfaces (of one, when
// named), loopback last. Link-local ones are left out.
std::vector<std::string> ReachableAddresses(uint16_t port, const std::string& interface);

// OK when the peer of a Unix socket runs as this process's user; always OK for TCP.
Status CheckPeerUser(const Socket& socket);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_SOCKET_H_
