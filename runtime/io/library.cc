#include "runtime/io/library.h"

#include <dlfcn.h>

namespace cairn {

void* OpenLibrary(const std::string& name) {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&OpenLibrary), &here) != 0 && here.dli_fname != nullptr) {
    const std::string path = here.dli_fname;
    const std::string beside = path.substr(0, path.rfind('/') + 1) + "cairn/" + name;
    if (void* library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace cairn
