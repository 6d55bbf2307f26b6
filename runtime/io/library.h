// OpenLibrary: a library of Cairn's that is loaded when it is needed. As it is installed: in the folder "cairn" beside libcairn.so; else where the loader
// finds it. Any thread.
#ifndef CAIRN_RUNTIME_IO_LIBRARY_H_
#define CAIRN_RUNTIME_IO_LIBRARY_H_

#include <string>

namespace cairn {

// As dlopen, which stays open; nullptr: dlerror() says why.
void* OpenLibrary(const std::string& name);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_LIBRARY_H_
