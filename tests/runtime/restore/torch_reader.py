"""Loads the shards of a folder by PyTorch's own HuggingFaceStorageReader, and opens each by the safetensors library.

    torch_reader.py FOLDER ARRAYS       ARRAYS: JSON, [[name, dtype, shape], …]

Every element is compared with what tests/planner/oracle.h says an element is. Exits 77 where torch or safetensors is not to be had.
"""
import json
import pathlib
import sys

try:
    import numpy
    import torch
    from safetensors import safe_open
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint import HuggingFaceStorageReader
except ImportError as missing:
    print(missing)
    sys.exit(77)

TYPES = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8}


def expected(array, dtype, shape):
    """The bytes of the whole array."""
    count = int(numpy.prod(shape, dtype=numpy.int64))
    x = (numpy.uint64(array) << numpy.uint64(40)) + numpy.arange(1, count + 1, dtype=numpy.uint64)
    x *= numpy.uint64(0x9E3779B97F4A7C15)
    x ^= x >> numpy.uint64(29)
    width = torch.empty((), dtype=TYPES[dtype]).element_size()
    return x.view(numpy.uint8).reshape(count, 8)[:, :width].tobytes()


def content(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


folder, arrays = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
wanted = {name: torch.zeros(shape, dtype=TYPES[dtype]) for name, dtype, shape in arrays}
checkpoint.load(wanted, storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
for array, (name, dtype, shape) in enumerate(arrays):
    assert content(wanted[name]) == expected(array, dtype, shape), f"{name} is not what was saved"

opened = 0
for path in sorted(folder.glob("*.safetensors")):
    with safe_open(path, "pt") as file:
        offsets = json.loads(file.metadata()["DCP_SHARDING_INFO"])
        for name in file.keys():
            array = [one[0] for one in arrays].index(name)
            _, dtype, shape = arrays[array]
            whole = torch.frombuffer(bytearray(expected(array, dtype, shape)), dtype=TYPES[dtype]).reshape(shape)
            box = file.get_tensor(name)
            begin = offsets[name]["saved_offsets"]
            part = whole[tuple(slice(b, b + n) for b, n in zip(begin, box.shape))]
            assert content(box) == content(part), f"{name} in {path.name} is not what was saved"
            opened += 1
assert opened > len(arrays), "nothing was cut"
