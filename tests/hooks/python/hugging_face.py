"""A rank that trains a tiny model by Hugging Face's Trainer, up to the end or (first argument) to a step that it saves.

Prints "loss STEP VALUE" for each batch, with the step that it belongs to, and "rate STEP VALUE" after each step."""
import os
import sys

import torch
import transformers

import cairn.torch
import cairn.transformers

stop_at = int(sys.argv[1])


class Trainer(transformers.Trainer):
    def compute_loss(self, *arguments, **options):
        loss = super().compute_loss(*arguments, **options)
        print("loss", self.state.global_step + 1, loss.item().hex(), flush=True)
        return loss


class Watch(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, model, lr_scheduler, **_):
        print("rate", state.global_step, lr_scheduler.get_last_lr()[0].hex(), flush=True)
        if state.global_step == stop_at:
            run = cairn.torch.attach(model)  # the handle that there is
            run.save()
            run.wait()
            os._exit(0)


transformers.set_seed(5)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2,
                                                             bos_token_id=0, eos_token_id=0))  # with dropout: it takes the generators
texts = torch.randint(0, 32, (18, 12), generator=torch.Generator().manual_seed(6)).tolist()
arguments = transformers.TrainingArguments(
    output_dir=os.environ["TMPDIR"], num_train_epochs=3, per_device_train_batch_size=2, gradient_accumulation_steps=2, learning_rate=0.01,
    lr_scheduler_type="cosine", save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False)
trainer = Trainer(model, arguments, train_dataset=[{"input_ids": text, "labels": text} for text in texts])
cairn.transformers.attach(trainer)
trainer.add_callback(Watch())
trainer.train()
