"""A rank that trains a tiny model by Hugging Face's Trainer, to the end or (first argument) to a save: STEP, at the end of that step; vSTEP, in an evaluation
after it. It evaluates after every third step and at the end of the first epoch.

With a port as second argument it is one of several ranks, without dropout, of which each takes its share of a step's two batches; it saves and trains on, and
leaves without a word after the last step. With "anew" there it leaves out to pass over batches.

It stops early, after five evaluations that were no better than the first.

Prints "data STEP SUM" of what it is made of and "loss STEP VALUE" for each batch, with the step that it belongs to, "rate STEP VALUE" after each step, and "valid STEP VALUE". "rerun" prints what
becomes of a second training, and of a state that does not fit."""
import os
import sys

import torch
import transformers

import cairn
import cairn.torch
import cairn.transformers

stop_at, ranks, port = sys.argv[1], int(os.environ["SLURM_NTASKS"]), "".join(sys.argv[2:])
if port.isdigit():
    rank = os.environ["SLURM_PROCID"]
    os.environ |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


class Trainer(transformers.Trainer):
    def compute_loss(self, model, inputs, *arguments, **options):
        loss = super().compute_loss(model, inputs, *arguments, **options)
        if not model.training:
            save_at(f"v{self.state.global_step}")
            print("valid", self.state.global_step, (loss[0] if isinstance(loss, tuple) else loss).item().hex(), flush=True)
        else:
            print("data", self.state.global_step + 1, inputs["input_ids"].sum().item(), flush=True)
            print("loss", self.state.global_step + 1, loss.item().hex(), flush=True)
        return loss


class Watch(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, optimizer, **_):
        print("rate", state.global_step, optimizer.param_groups[0]["lr"].hex(), flush=True)
        save_at(str(state.global_step))
        if port.isdigit() and stop_at != "-" and state.global_step == state.max_steps:
            os._exit(0)

    def on_epoch_end(self, args, state, control, **_):
        control.should_evaluate = state.global_step == 5


def save_at(place):
    if place == stop_at:
        run = cairn.torch.attach(model)  # the handle that there is
        run.save()
        run.wait()
        if not port.isdigit():
            os._exit(0)


transformers.set_seed(5)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2,
                                                             bos_token_id=0, eos_token_id=0,  # with dropout: it takes the generators
                                                             **{f"{what}_pdrop": 0.0 if port.isdigit() else 0.1 for what in ("resid", "embd", "attn")}))
texts = torch.randint(0, 32, (16 if port.isdigit() else 18, 12), generator=torch.Generator().manual_seed(6)).tolist()
samples = [{"input_ids": text, "labels": text} for text in texts]
arguments = transformers.TrainingArguments(
    output_dir=os.environ["TMPDIR"], num_train_epochs=2 if port else 4, per_device_train_batch_size=2, gradient_accumulation_steps=2 // ranks,
    learning_rate=0.01, ignore_data_skip=port == "anew",
    lr_scheduler_type="reduce_lr_on_plateau", lr_scheduler_kwargs={"factor": 0.7, "patience": 0, "threshold": 10.},  # an evaluation is never better
    eval_strategy="steps", eval_steps=3, metric_for_best_model="loss", save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
    dataloader_pin_memory=False)
trainer = Trainer(model, arguments, train_dataset=samples, eval_dataset=samples[:4])
cairn.transformers.attach(trainer)
trainer.add_callback(Watch())
trainer.add_callback(transformers.EarlyStoppingCallback(early_stopping_patience=5, early_stopping_threshold=10.))
trainer.train()
if stop_at == "rerun":
    print("finished", trainer.state.global_step)
    for attempt in (trainer.train, lambda: cairn.transformers._Progress(trainer).load_state_dict({"batch": 5})):
        try:
            attempt()
        except cairn.Error as error:
            print("refused", type(error).__name__)
