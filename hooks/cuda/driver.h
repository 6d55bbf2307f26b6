// Driver: the functions of the CUDA driver that Cairn uses. They are those of the libcuda.so.1 that the process has, or else of the one that the
// loader finds; no CUDA runtime is needed, so it does not matter which one the program brings.
#ifndef CAIRN_HOOKS_CUDA_DRIVER_H_
#define CAIRN_HOOKS_CUDA_DRIVER_H_

#include <cuda.h>

#include <string>

namespace cairn::cuda {

// By the names of cuda.h, which expand to the version that its declarations have.
#define CAIRN_CUDA_FUNCTIONS(X) \
  X(cuInit)                     \
  X(cuDriverGetVersion)         \
  X(cuGetErrorString)           \
  X(cuDeviceGet)                \
  X(cuDevicePrimaryCtxRetain)   \
  X(cuCtxPushCurrent)           \
  X(cuCtxPopCurrent)            \
  X(cuPointerGetAttribute)      \
  X(cuStreamCreate)             \
  X(cuStreamSynchronize)        \
  X(cuStreamWaitEvent)          \
  X(cuEventCreate)              \
  X(cuEventRecord)              \
  X(cuEventSynchronize)         \
  X(cuEventDestroy)             \
  X(cuMemHostRegister)          \
  X(cuMemHostUnregister)        \
  X(cuMemcpyDtoHAsync)          \
  X(cuMemcpyHtoDAsync)          \
  X(cuMemcpy2DAsync)            \
  X(cuThreadExchangeStreamCaptureMode)

struct Driver {
#define X(name) decltype(&::name) name = nullptr;
  CAIRN_CUDA_FUNCTIONS(X)
#undef X

  // Finds and initialises it. "": done; else why there is none that will do.
  std::string Load();

  std::string Text(CUresult result) const;
};

}  // namespace cairn::cuda

#endif  // CAIRN_HOOKS_CUDA_DRIVER_H_
