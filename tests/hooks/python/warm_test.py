"""Begins from what other libraries have written: Hugging Face's files, and checkpoints of torch.distributed.checkpoint."""
import hashlib
import json
import os
import sys

from lives import HERE, ROOT, Lives, free_port, main

sys.path.insert(0, str(ROOT / "hooks/python"))
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import cairn  # noqa: E402
import cairn.torch  # noqa: E402
from train import Net  # noqa: E402


def digest(tensor):
    return hashlib.sha256(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()


class WarmTest(Lives):
    def setUp(self):
        super().setUp()
        os.environ["CAIRN_LIBRARY"] = str(self.build.resolve() / "runtime/libcairn.so")

    def hugging_face(self, tensors):
        """A folder of two files and their index."""
        folder = self.folder / "hf"
        folder.mkdir()
        names = sorted(tensors)
        files = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(names)}
        for file in set(files.values()):
            save_file({name: tensors[name] for name in names if files[name] == file}, folder / file, metadata={"format": "pt"})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
        return folder

    def begin(self, run, kind, ranks, source, *arguments):
        """Digests of what the ranks hold after they have attached, which are the same on all."""
        said = self.life(run, ranks, HERE / "warm.py", kind, free_port(), *arguments, CAIRN_FROM=source)
        for words in said:
            self.assertEqual(words[:2], [["resumed", "0", "True"], ["moments", "0"]], self.log)
            self.assertEqual([line for line in words if line[0] == "weight"], [line for line in said[0] if line[0] == "weight"])
        return {line[1]: line[2] for line in said[0] if line[0] == "weight"}

    def test_a_program_saves_when_it_says_so_and_its_best_state_leaves_as_a_plain_file(self):
        weights = {words[1]: [float.fromhex(word) for word in words[2:]] for words in self.life("run", 1, HERE / "told.py")[0] if words[0] == "weight"}
        self.assertTrue((self.folder / "run/FINISHED").exists())
        for step, epoch in (("best:val_loss:min", "1"), ("epoch-0", "0"), ("best:val_loss:max", "0"), (None, "2")):
            state = cairn.torch.load(self.folder / "run", step=step, only="model.*")
            self.assertEqual(state["model.weight"].flatten().tolist(), weights[epoch], step)
        state = cairn.torch.load(self.folder / "run", step="best:val_loss:min", only="model.*")
        torch.save({name.removeprefix("model."): tensor for name, tensor in state.items()}, self.folder / "model.pt")
        plain = torch.nn.Linear(2, 1)
        plain.load_state_dict(torch.load(self.folder / "model.pt"))
        self.assertEqual(plain.weight.flatten().tolist(), weights["1"])

    def test_a_hugging_face_folder_gives_its_bits_to_sharded_ranks_and_to_a_module_on_the_meta_device(self):
        tensors = {name: torch.randn(tensor.shape) if tensor.is_floating_point() else torch.tensor(7) for name, tensor in Net().state_dict().items()}
        expected = {name: digest(tensor) for name, tensor in tensors.items()}
        old = {name.replace("hidden.", "middle.part."): tensor for name, tensor in tensors.items()}
        folder = self.hugging_face(old)
        self.assertEqual(self.begin("run", "fsdp2", 2, f"{folder}:weights", "--old", "middle.part"), expected)

        with torch.device("meta"):
            net = Net()
        cairn.torch.load(folder, into=net, rename={"middle.part.*": "hidden.*"})
        self.assertEqual({name: digest(tensor) for name, tensor in net.state_dict().items()}, expected)
        self.assertEqual(list(cairn.torch.load(folder, only="middle.*")), ["middle.part.weight"])
        with self.assertRaisesRegex(cairn.Mismatch, "model.hidden.weight: not in the checkpoint"):
            cairn.torch.load(folder, into=Net())
        with cairn.Checkpoint(folder / "model-00001-of-00002.safetensors") as checkpoint:
            self.assertEqual((checkpoint.step, checkpoint.world_size), (0, 0))

    def test_of_a_dcp_checkpoint_of_two_ranks_three_take_the_weights_alone(self):
        folder = self.folder / "dcp"
        said = self.life("writer", 2, HERE / "warm.py", "fsdp2", free_port(), "--write", folder)[0]
        expected = {line[1]: line[2] for line in said if line[0] == "weight"}
        self.assertIn(b"exp_avg", (folder / ".metadata").read_bytes())
        self.assertEqual(self.begin("run", "fsdp2", 3, f"{folder}:weights"), expected)
        net = Net()
        cairn.torch.load(folder, into=net)
        self.assertEqual({name: digest(tensor) for name, tensor in net.state_dict().items()}, expected)
        # Its own run goes on from what it has saved, and gives its weights to another.
        said = self.life("again", 1, HERE / "warm.py", "ddp", free_port(), CAIRN_FROM=f"{self.folder / 'run'}:weights")[0]
        self.assertEqual(said[:2], [["resumed", "0", "True"], ["moments", "0"]])
        trained = cairn.torch.load(self.folder / "run", only="model.*")
        self.assertEqual({f"model.{line[1]}": line[2] for line in said if line[0] == "weight"}, {name: digest(tensor) for name, tensor in trained.items()})

    def test_what_does_not_fit_is_refused_by_name(self):
        folder = self.hugging_face({name: torch.zeros((2,)) for name in ("embed.weight", "out.more")})
        with self.started("run", 1, HERE / "warm.py", "ddp", free_port(), CAIRN_FROM=f"{folder}:weights") as step:
            self.assertTrue(step.join(120), step.log())
            self.assertNotEqual(step.ranks[0].returncode, 0)
            for line in ("model.embed.weight: saved [2] F32, registered [24, 8] F32", "model.hidden.weight: registered [36, 24] F32, not in the checkpoint",
                         "model.out.more: saved [2] F32, not registered by the program"):
                self.assertIn(line, step.log())


main()
