"""A rank that trains a tiny model by Lightning's Trainer, to the end or (first argument) to a save: STEP, at the end of that step; vSTEP, in the validation
after it. With the second argument "endless" the loader has no length. With a port there it is one of several ranks, without dropout, of which each
takes its share of a step's two batches; it saves and trains on, and leaves without a word after the last step.

It stops early, after two validations that were no better than the first.

Prints "loss STEP VALUE" for each batch, with the step that it belongs to, "rate STEP VALUE" after each step, and "valid STEP VALUE".
"rerun" prints what becomes of a second fit, and of a state and data that do not fit."""
import os
import sys

import lightning
import torch
from lightning.pytorch.plugins.environments import LightningEnvironment
from torch import nn

import cairn
import cairn.lightning

stop_at, ranks, rank, port = sys.argv[1], int(os.environ["SLURM_NTASKS"]), int(os.environ["SLURM_PROCID"]), "".join(sys.argv[2:])
spread = port.isdigit()
if spread:
    os.environ |= {"LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
early = os.path.join(os.environ["TMPDIR"], "early.ckpt")  # Lightning's own, of the whole run: from the second life on it is given


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0 if spread else 0.2), nn.Linear(16, 1))

    def training_step(self, batch, _):
        loss = self.net(batch).square().mean()
        print("loss", self.global_step + 1, loss.item().hex(), flush=True)
        return loss

    def validation_step(self, batch, _):
        loss = self.net(batch).square().mean()
        self.log("valid", loss)
        if not self.trainer.sanity_checking:
            save_at(f"v{self.global_step}")
            print("valid", self.global_step, loss.item().hex(), flush=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.7, patience=0, threshold=10.)  # a validation is never better
        return [optimizer], [{"scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9), "interval": "step"},
                             {"scheduler": plateau, "interval": "epoch", "monitor": "valid"}]


class Watch(lightning.pytorch.Callback):
    def on_train_batch_end(self, trainer, *_):
        if not trainer.fit_loop._should_accumulate():
            print("rate", trainer.global_step, trainer.optimizers[0].param_groups[0]["lr"].hex(), flush=True)
            if trainer.global_step == 3 and stop_at == "whole":
                trainer.save_checkpoint(early)
            save_at(str(trainer.global_step))
            if spread and stop_at != "-" and trainer.global_step == 8:
                os._exit(0)


class Endless:
    """A loader's batches, whose number is not told."""

    def __init__(self, loader):
        self.loader, self.sampler = loader, loader.sampler

    def __iter__(self):
        return iter(self.loader)


def save_at(place):
    if place == stop_at:
        callback.run.save()
        callback.run.wait()
        if not spread:
            os._exit(0)


lightning.seed_everything(5, verbose=False)
samples = torch.randn(16 if spread else 18, 8, generator=torch.Generator().manual_seed(6))
loader = torch.utils.data.DataLoader(samples, batch_size=2, sampler=torch.utils.data.DistributedSampler(samples, ranks, rank, seed=7))
if port == "endless":
    loader = Endless(loader)
callback = cairn.lightning.Callback()
early_stopping = lightning.pytorch.callbacks.EarlyStopping("valid", min_delta=10., patience=2)
trainer = lightning.Trainer(accelerator="cpu", devices=ranks, strategy="ddp" if ranks > 1 else "auto", plugins=[LightningEnvironment()],
                            max_epochs=2 if spread else 4, accumulate_grad_batches=2 // ranks, logger=False, callbacks=[callback, Watch(), early_stopping], enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
module = Module()
trainer.fit(module, loader, torch.utils.data.DataLoader(samples[:4], batch_size=4, shuffle=True), weights_only=False,
            ckpt_path=None if spread or stop_at in ("whole", "5") else early)
if stop_at == "rerun":
    print("finished", trainer.global_step)
    fetcher = lightning.pytorch.loops.fetchers._PrefetchDataFetcher()
    fetcher.setup(lightning.pytorch.utilities.CombinedLoader(loader))
    for attempt in (lambda: trainer.fit(module, loader), lambda: cairn.lightning._Loops(trainer).load_state_dict({"world_size": 2, "accumulated": 2}),
                    lambda: callback._pass_over(fetcher, 10)):
        try:
            attempt()
        except cairn.Error as error:
            print("refused", type(error).__name__)
