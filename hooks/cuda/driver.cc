#include "hooks/cuda/driver.h"

#include <dlfcn.h>

namespace cairn::cuda {
namespace {

#define CAIRN_TEXT(x) CAIRN_TEXT_OF(x)
#define CAIRN_TEXT_OF(x) #x

std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::string Driver::Load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::string("there is no NVIDIA driver on this node (") + dlerror() + ")";
  const char* missing = nullptr;
#define X(name)                                                              \
  name = reinterpret_cast<decltype(name)>(dlsym(library, CAIRN_TEXT(name))); \
  if (name == nullptr && missing == nullptr) missing = CAIRN_TEXT(name);
  CAIRN_CUDA_FUNCTIONS(X)
#undef X
  int version = 0;
  if (cuDriverGetVersion != nullptr) cuDriverGetVersion(&version);
  if (missing != nullptr) {
    return "the NVIDIA driver of this node is too old: it speaks CUDA " + VersionText(version) +
           " and lacks " + missing + ", which this Cairn was built for (CUDA " + VersionText(CUDA_VERSION) +
           ")";
  }
  const CUresult result = cuInit(0);
  return result == CUDA_SUCCESS ? "" : "the NVIDIA driver cannot be used (cuInit: " + Text(result) + ")";
}

std::string Driver::Text(CUresult result) const {
  const char* text = nullptr;
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr)
    return "error " + std::to_string(static_cast<int>(result));
  return text;
}

}  // namespace cairn::cuda
