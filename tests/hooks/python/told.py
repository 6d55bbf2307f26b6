"""A rank that trains three epochs and has the end of each saved under a name, with what was measured: the second one is the best. Prints
"weight EPOCH HEX …"."""
import torch

import cairn.torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
with cairn.torch.attach(model, optimizer) as run:
    for epoch in run.epochs(3):
        for batch in run.batches(torch.ones(2, 1, 2)):
            model(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        run.save(tag=f"epoch-{epoch}", metrics={"val_loss": (0.75, 0.25, 0.5)[epoch]})
        run.wait()
        print("weight", epoch, *map(float.hex, model.weight.flatten().tolist()), flush=True)
