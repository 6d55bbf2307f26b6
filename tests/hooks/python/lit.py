"""A rank that trains a tiny model by Lightning's Trainer, up to the end or (first argument) to a step that it saves.

Prints "loss STEP VALUE" for each batch, with the step that it belongs to, and "rate STEP VALUE" after each step."""
import os
import sys

import lightning
import torch
from lightning.pytorch.plugins.environments import LightningEnvironment
from torch import nn

import cairn.lightning

stop_at = int(sys.argv[1])


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 1))

    def training_step(self, batch, _):
        loss = self.net(batch).square().mean()
        print("loss", self.global_step + 1, loss.item().hex(), flush=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9), "interval": "step"}}


class Watch(lightning.pytorch.Callback):
    def on_train_batch_end(self, trainer, *_):
        if trainer.fit_loop._should_accumulate():
            return
        print("rate", trainer.global_step, trainer.lr_scheduler_configs[0].scheduler.get_last_lr()[0].hex(), flush=True)
        if trainer.global_step == stop_at:
            callback.run.save()
            callback.run.wait()
            os._exit(0)


lightning.seed_everything(5, verbose=False)
samples = torch.randn(18, 8, generator=torch.Generator().manual_seed(6))
loader = torch.utils.data.DataLoader(samples, batch_size=2, sampler=torch.utils.data.DistributedSampler(samples, 1, 0, seed=7))
callback = cairn.lightning.Callback()
trainer = lightning.Trainer(accelerator="cpu", devices=1, plugins=[LightningEnvironment()], max_epochs=3, accumulate_grad_batches=2, logger=False,
                            callbacks=[callback, Watch()], enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Module(), loader)
