// IpcRemoval: whether systemd's logind empties shared memory (/dev/shm too) of a user whose last login session on a node ends, as an ssh into a
// running job does. Mappings live on; files, and so what a restart would find, are gone.
#ifndef CAIRN_RUNTIME_STAGING_IPC_REMOVAL_H_
#define CAIRN_RUNTIME_STAGING_IPC_REMOVAL_H_

#include <cstdint>
#include <string>
#include <vector>

namespace cairn {

enum class IpcRemoval {
  kNoLogind,    // none runs here
  kOff,         // RemoveIPC=no
  kSystemUser,  // it spares those
  kLingers,     // the user never counts as logged out (loginctl enable-linger)
  kOn,
};

inline constexpr uint32_t kOrdinaryUser = 60000;  // a uid that is no system user's anywhere

// Reads logind's configuration, /etc/login.defs and the list of lingering users below `root` ("" = this machine's). `user` is the name that goes
// with `uid`; "" = not known.
IpcRemoval FindIpcRemoval(const std::string& root, uint32_t uid, const std::string& user);

// Pure: the RemoveIPC= that holds after these files of logind's configuration, in their order; systemd's
// default is yes.
bool RemovesIpc(const std::vector<std::string>& files);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_IPC_REMOVAL_H_
