"""Makes the small checkpoint of torch.distributed.checkpoint beside this file; needs PyTorch. Its content is known to dcp_test.cc."""
import os
import pathlib
import shutil

import torch
import torch.distributed.checkpoint as dcp

os.chdir(pathlib.Path(__file__).parent)
folder = "dcp"  # .metadata holds this path
shutil.rmtree(folder, ignore_errors=True)
state = {
    "w": torch.arange(12, dtype=torch.float32).reshape(3, 4),
    "transposed": torch.arange(6, dtype=torch.int16).reshape(2, 3).t(),
    "scalar": torch.tensor(3.5, dtype=torch.bfloat16),
    "mask": torch.tensor([True, False, True]),
    "fp8": torch.arange(5).to(torch.float8_e4m3fn),
    "empty": torch.zeros(0, 4),
    "optim": {"lr": 0.1, "name": "adam"},
}
dcp.save(state, checkpoint_id=folder, no_dist=True)
