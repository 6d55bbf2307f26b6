#include "runtime/control/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace cairn {
namespace {

constexpr int kBacklog = 4096;

template <typename T>
T* As(Address* address) {
  return reinterpret_cast<T*>(&address->storage);
}

Result<Socket> NewSocket(int family) {
  Socket s(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (s.fd() < 0) return Status::FromErrno(errno, "open a socket");
  if (family != AF_UNIX) {
    const int on = 1;
    setsockopt(s.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return s;
}

Address TcpAddress(int family, uint16_t port) {
  Address a;
  a.storage.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    a.size = sizeof(sockaddr_in6);
    As<sockaddr_in6>(&a)->sin6_port = htons(port);
  } else {
    a.size = sizeof(sockaddr_in);
    As<sockaddr_in>(&a)->sin_port = htons(port);
  }
  return a;
}

}  // namespace

Result<Address> Address::Parse(std::string_view text) {
  Address a;
  if (text.starts_with('@')) {
    auto* un = As<sockaddr_un>(&a);
    if (text.size() > sizeof(un->sun_path))
      return Status(Code::kInvalid, "the socket name is too long: " + std::string(text));
    un->sun_family = AF_UNIX;
    std::memcpy(un->sun_path + 1, text.data() + 1, text.size() - 1);
    a.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
    return a;
  }
  const Status bad(Code::kInvalid, "not an address of the form host:port: \"" + std::string(text) + "\"");
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad;
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  if (auto [at, error] = std::from_chars(text.data() + colon + 1, end, port);
      error != std::errc() || at != end)
    return bad;
  std::string host(text.substr(0, colon));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    a = TcpAddress(AF_INET6, port);
    if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &As<sockaddr_in6>(&a)->sin6_addr) != 1)
      return bad;
  } else {
    a = TcpAddress(AF_INET, port);
    if (inet_pton(AF_INET, host.c_str(), &As<sockaddr_in>(&a)->sin_addr) != 1) return bad;
  }
  return a;
}

std::vector<std::string> SplitAddresses(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) out.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

Result<Socket> Listen(const Address& address) {
  CAIRN_ASSIGN_OR_RETURN(Socket s, NewSocket(address.storage.ss_family));
  if (bind(s.fd(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      listen(s.fd(), kBacklog) != 0) {
    return Status::FromErrno(errno, "listen");
  }
  return s;
}

Result<Socket> ListenTcp(const std::string& host, uint16_t first_port, uint16_t last_port) {
  Status failed;
  for (uint32_t port = first_port; port <= last_port; ++port) {
    std::vector<Address> candidates;
    if (host.empty()) {
      candidates = {TcpAddress(AF_INET6, static_cast<uint16_t>(port)),
                    TcpAddress(AF_INET, static_cast<uint16_t>(port))};
    } else {
      const std::string bracketed =
          host.find(':') == std::string::npos || host.front() == '[' ? host : "[" + host + "]";
      CAIRN_ASSIGN_OR_RETURN(Address a, Address::Parse(bracketed + ":" + std::to_string(port)));
      candidates = {a};
    }
    for (const Address& a : candidates) {
      auto s = Listen(a);
      if (s.ok()) return s;
      failed = s.status();
    }
  }
  return failed.Annotate("ports " + std::to_string(first_port) + " to " + std::to_string(last_port));
}

uint16_t LocalPort(const Socket& socket) {
  Address a;
  a.size = sizeof(a.storage);
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&a.storage), &a.size) != 0) return 0;
  return ntohs(a.storage.ss_family == AF_INET6 ? As<sockaddr_in6>(&a)->sin6_port
                                               : As<sockaddr_in>(&a)->sin_port);
}

Result<Socket> StartConnect(const Address& address) {
  CAIRN_ASSIGN_OR_RETURN(Socket s, NewSocket(address.storage.ss_family));
  if (connect(s.fd(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 &&
      errno != EINPROGRESS) {
    return Status::FromErrno(errno, "connect");
  }
  return s;
}

std::vector<std::string> ReachableAddresses(uint16_t port, const std::string& interface) {
  std::vector<std::string> reachable, loopback;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  for (ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    if (!interface.empty() && interface != i->ifa_name) continue;
    char text[INET6_ADDRSTRLEN] = {};
    std::string address;
    if (i->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof(text));
      address = text;
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& in6 = reinterpret_cast<sockaddr_in6*>(i->ifa_addr)->sin6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&in6)) continue;
      inet_ntop(AF_INET6, &in6, text, sizeof(text));
      address = "[" + std::string(text) + "]";
    } else {
      continue;
    }
    ((i->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : reachable)
        .push_back(address + ":" + std::to_string(port));
  }
  freeifaddrs(list);
  reachable.insert(reachable.end(), loopback.begin(), loopback.end());
  return reachable;
}

Status CheckPeerUser(const Socket& socket) {
  sockaddr_storage local{};
  socklen_t size = sizeof(local);
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&local), &size) != 0)
    return Status::FromErrno(errno, "getsockname");
  if (local.ss_family != AF_UNIX) return OkStatus();
  ucred peer{};
  size = sizeof(peer);
  if (getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return Status::FromErrno(errno, "SO_PEERCRED");
  if (peer.uid == geteuid()) return OkStatus();
  return Status(Code::kPermission, "a process of uid " + std::to_string(peer.uid) + " tried to connect");
}

}  // namespace cairn
