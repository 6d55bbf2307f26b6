"""A rank in plain Python whose array lies in device memory, by the stand-in for the driver: it holds the number of steps everywhere. Prints
"resumed STEP", "holds VALUE …" (which values were restored) and "done"."""
import ctypes
from ctypes import byref, c_size_t, c_uint, c_uint64, c_void_p

import cairn

COUNT, NON_BLOCKING = 3000, 1
driver = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    assert getattr(driver, name)(*arguments) == 0, name


context, stream, address = c_void_p(), c_void_p(), c_uint64()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuStreamCreate", byref(stream), NON_BLOCKING)
call("cuMemAlloc_v2", byref(address), c_size_t(4 * COUNT))

session = cairn.Session()
session.add_array("w", "U32", (COUNT,), [cairn.Piece((0,), (COUNT,), address.value)], cuda=True, fence=True)
session.set_stream(0, stream.value)
report = session.restore()
print("resumed", report.step, flush=True)
found = (c_uint * COUNT)()
call("cuMemcpyDtoH_v2", found, address, c_size_t(4 * COUNT))
print("holds", *sorted(set(found)), flush=True)
for step in range(report.step, 5):
    session.fence()
    call("cuMemsetD32Async", address, c_uint(step + 1), c_size_t(COUNT), stream)
    session.step(step + 1)
session.finalize()
print("done", flush=True)
