"""torch.distributed.checkpoint with Cairn's storage: without srun, with and without a process group."""
import concurrent.futures
import contextlib
import dataclasses
import glob
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from unittest import mock

from lives import HERE, ROOT, Lives, free_port, main, run_group

sys.path.insert(0, str(ROOT / "hooks/python"))
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as torch_dcp  # noqa: E402
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex  # noqa: E402
from torch.distributed.checkpoint.planner import WriteItemType  # noqa: E402
from torch.distributed.checkpoint.state_dict import get_state_dict  # noqa: E402
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import Replicate, distribute_tensor  # noqa: E402

import cairn.torch  # noqa: E402
from cairn.torch.dcp import StorageReader, StorageWriter  # noqa: E402
from cairn.torch.placement import DTYPES  # noqa: E402

warnings.filterwarnings("ignore", "torch.distributed is (disabled|unavailable)")


class Opaque:
    def __eq__(self, other):
        return isinstance(other, Opaque)


class OpaqueCodec:
    """Knows of one thing alone."""

    @staticmethod
    def encode(value, where):
        assert value == Opaque(), "a codec for one thing"
        return b"opaque"

    @staticmethod
    def decode(data):
        assert data == b"opaque"
        return Opaque()


class Halves(torch_dcp.DefaultSavePlanner):
    """A planner of a user's: the matrix in two boxes, of its first row and of all others."""

    def create_local_plan(self):
        plan = super().create_local_plan()
        item, = plan.items
        self.plan = dataclasses.replace(plan, items=[
            dataclasses.replace(item, type=WriteItemType.SHARD, index=MetadataIndex(item.index.fqn, offset), tensor_data=dataclasses.replace(
                item.tensor_data, chunk=ChunkStorageMetadata(torch.Size(offset), torch.Size(extent))))
            for offset, extent in (((0, 0), (1, 3)), ((1, 0), (3, 3)))])
        return self.plan

    def lookup_object(self, index):
        return self.state_dict[index.fqn][1:] if index.offset[0] else self.state_dict[index.fqn][:1]


class DcpTest(unittest.TestCase):
    def setUp(self):
        os.environ["CAIRN_LIBRARY"] = str(Lives.build.resolve() / "runtime/libcairn.so")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(self.give_back)
        self.run_directory = self.folder / "run"

    def give_back(self):
        """The directories that this process owns, before they are removed."""
        while cairn.torch.dcp._writers:
            cairn.torch.dcp._writers.popitem()[1].close()

    def cairn(self, *arguments):
        return subprocess.run([Lives.build / "runtime/command/cairn", *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    def steps(self):
        """(step, tags) of the run's own line, newest first."""
        return [(one["step"], *one["tags"]) for one in self.listing() if not one["orphan"]]

    def listing(self):
        return json.loads(self.cairn("ls", "--json", self.run_directory))["checkpoints"]

    def save(self, state, **options):
        torch_dcp.save(state, storage_writer=StorageWriter(self.run_directory, **options))

    def eventually_save(self, state, bound=60):
        deadline = time.monotonic() + bound
        while True:
            try:
                return self.save(state)
            except torch_dcp.CheckpointException as error:
                if time.monotonic() > deadline or "is in use by" not in str(error):
                    raise
                time.sleep(0.05)

    def load(self, state, which="", **options):
        torch_dcp.load(state, storage_reader=StorageReader(f"{self.run_directory}{which}", **options))
        return state

    def test_what_four_ranks_save_two_load_in_other_placements_and_cairn_reads(self):
        from dcp_ranks import WAYS, check, whole

        run_group(self, 4, "dcp_ranks.py", "save", self.folder)
        run_group(self, 2, "dcp_ranks.py", "load", self.folder)
        self.assertEqual(self.steps(), [(21,), (20,), (1, "first")])
        self.cairn("verify", self.run_directory)
        check({name[len("tensors."):]: tensor for name, tensor in cairn.torch.load(self.run_directory, step="first").items()})
        check({name[len("tensors."):]: tensor for name, tensor in cairn.torch.load(self.run_directory).items()})
        self.assertTrue(torch.equal(cairn.torch.load(self.folder / "half", step=3)["tensor"], torch.arange(9.)))
        for step in (1, 2, 3):
            self.assertEqual(cairn.torch.load(self.folder / "three", step=step)["x"].item(), step)

        shards, = ([pathlib.Path(path) for path in glob.glob(f"{self.run_directory}/{one['name']}/*.safetensors")] for one in self.listing()
                   if one["tags"] == ["first"])
        holders = {name: sum(f'"tensors.{name}"'.encode() in path.read_bytes() for path in shards) for name in WAYS}
        self.assertEqual({name: holders[name] for name in ("plain", "copies", "few", "rows")}, {"plain": 1, "copies": 2, "few": 2, "rows": 4})

        pytorch = {f"tensors.{name}": torch.zeros_like(whole(name)) for name in WAYS}
        torch_dcp.load(pytorch, storage_reader=torch_dcp.HuggingFaceStorageReader(str(shards[0].parent)))
        check({name[len("tensors."):]: tensor for name, tensor in pytorch.items()})

    def test_pytorchs_own_checks_find_what_another_way_of_wrapping_has_saved(self):
        run_group(self, 2, "dcp_judged.py", self.folder)

    def test_a_state_comes_back_without_a_process_group_or_a_state_to_fill(self):
        state = {"weights": {"a": torch.arange(6.).reshape(2, 3), "mask": torch.tensor([True, False]), "none": torch.zeros(0, 3)},
                 "groups": [{"lr": 0.1, "names": ["x", "y"]}], "count": 3}
        self.save(state)
        found = _load_state_dict_from_keys(storage_reader=StorageReader(self.run_directory))
        self.assertTrue(torch.equal(found["weights"].pop("a"), state["weights"]["a"]))
        self.assertEqual(found["weights"].pop("mask").tolist(), [True, False])
        self.assertEqual(found["weights"].pop("none").shape, (0, 3))
        self.assertEqual(found, {"weights": {}, "groups": state["groups"], "count": 3})
        self.assertEqual(_load_state_dict_from_keys({"count"}, storage_reader=StorageReader(self.run_directory)), {"count": 3})

    def test_elements_of_every_type_come_back(self):
        numbers = torch.arange(96, dtype=torch.uint8)
        state = {name: (numbers % 2 if dtype == torch.bool else numbers).view(dtype).reshape(3, -1) for dtype, name in DTYPES.items()}
        self.assertTrue({"F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4"} <= set(state))
        self.save(state)
        loaded = self.load({name: torch.zeros(96, dtype=torch.uint8).view(tensor.dtype).reshape(3, -1) for name, tensor in state.items()})
        for found in (loaded, cairn.torch.load(self.run_directory)):
            self.assertEqual(set(found), set(state))
            for name, tensor in state.items():
                self.assertEqual((found[name].dtype, found[name].shape), (tensor.dtype, tensor.shape))
                self.assertTrue(torch.equal(found[name].view(torch.uint8), tensor.view(torch.uint8)), name)

    def test_what_pytorch_has_no_type_for_is_named(self):
        header = b'{"kept":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"six":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[2,5]}}'
        file = self.folder / "six.safetensors"
        file.write_bytes(len(header).to_bytes(8, "little") + header + b"\1\2\3\4\5")
        with self.assertRaisesRegex(cairn.Mismatch, 'array "six" is F6_E2M3, and this PyTorch has no such type: leave it out by `only`'):
            cairn.torch.load(file)
        self.assertEqual(cairn.torch.load(file, only="kept")["kept"].tolist(), [1, 2])
        with cairn.Checkpoint(file) as checkpoint:
            self.assertEqual(checkpoint.array("six").tobytes(), b"\3\4\5")

    def test_a_step_of_the_past_begins_another_branch(self):
        for step in (10, 20, 30):
            self.save({"x": torch.tensor(float(step))}, step=step)
        self.save({"x": torch.tensor(15.)}, step=15)
        self.assertEqual(self.steps(), [(15,), (10,)])
        self.assertEqual(sorted(one["step"] for one in self.listing() if one["orphan"]), [20, 30])
        self.save({"x": torch.tensor(16.)}, tag="best")
        self.assertEqual(self.steps(), [(16, "best"), (15,), (10,)])
        self.assertEqual(self.load({"x": torch.zeros(())}, "@15")["x"], 15)
        self.assertEqual(self.load({"x": torch.zeros(())}, "@best")["x"], 16)
        self.save({"x": torch.tensor(17.)}, keep="last=1")
        self.assertEqual(self.steps(), [(17,), (16, "best")])

    def test_what_cannot_be_encoded_is_named_unless_a_codec_knows_it(self):
        with self.assertRaisesRegex(torch_dcp.CheckpointException, r"deep\[0\]\['odd'\] is a .*Opaque, which Cairn does not save"):
            self.save({"deep": ({"odd": Opaque()},), "x": torch.zeros(2)})
        with self.assertRaisesRegex(torch_dcp.CheckpointException, "z is of torch.complex128"):
            self.save({"z": torch.zeros(2, dtype=torch.complex128)})
        self.assertEqual(self.listing(), [])
        for cached in (False, True):  # the first save of such a planner makes its plans
            with self.assertRaisesRegex(torch_dcp.CheckpointException, "has enable_plan_caching") if cached else contextlib.nullcontext():
                torch_dcp.save({"x": torch.zeros(2)}, storage_writer=StorageWriter(self.run_directory, step=1),
                               planner=torch_dcp.DefaultSavePlanner(enable_plan_caching=True))
        self.assertEqual(self.steps(), [(1,)])
        self.save({"odd": Opaque()}, codec=OpaqueCodec)
        self.assertEqual(self.load({"odd": None}, codec=OpaqueCodec)["odd"], Opaque())

    def test_a_planner_may_give_a_rank_several_boxes_of_a_tensor(self):
        matrix = torch.arange(12.).reshape(4, 3)
        torch_dcp.save({"matrix": matrix}, storage_writer=StorageWriter(self.run_directory), planner=Halves())
        self.assertEqual(len(glob.glob(f"{self.run_directory}/step-*/*.safetensors")), 2)
        self.assertTrue(torch.equal(self.load({"matrix": torch.zeros(4, 3)})["matrix"], matrix))

    def test_a_save_that_fails_orphans_nothing(self):
        class Failing(torch_dcp.DefaultSavePlanner):
            def resolve_data(self, write_item):
                raise RuntimeError("no memory left")

        for step in (10, 20):
            self.save({"x": torch.tensor(float(step))}, step=step)
        with self.assertRaisesRegex(torch_dcp.CheckpointException, "no memory left"):
            torch_dcp.save({"x": torch.zeros(2)}, storage_writer=StorageWriter(self.run_directory, step=20), planner=Failing())
        self.assertEqual(self.steps(), [(20,), (10,)])
        torch_dcp.async_save({"x": torch.zeros(2)}, storage_writer=StorageWriter(self.run_directory)).result(60)  # another thread does not wait for it
        self.assertEqual(self.steps()[0], (21,))

    def test_what_the_path_does_not_name_is_as_it_was_given(self):
        self.run_directory = self.folder / "me@lab" / "run"  # which is not there
        with contextlib.chdir(self.folder):
            writer = StorageWriter("me@lab/run", step=3, tag="given")
        torch_dcp.save({"x": torch.zeros(2)}, storage_writer=writer)
        torch_dcp.save({"x": torch.zeros(2)}, storage_writer=writer)
        torch_dcp.save({"x": torch.zeros(2)}, storage_writer=StorageWriter(self.folder, tag="best"), checkpoint_id=f"{self.run_directory}@7")
        self.assertEqual(self.steps(), [(7, "best"), (4,), (3, "given")])
        self.assertEqual(os.listdir(self.folder), ["me@lab"])

    def test_saves_are_made_in_the_order_in_which_they_queue_up(self):
        inside, go, queued = threading.Event(), threading.Event(), threading.Event()

        class Watched(StorageWriter):
            def set_up_storage_writer(self, *arguments, **options):
                super().set_up_storage_writer(*arguments, **options)
                queued.set()

            def finish(self, metadata, results):
                inside.set()
                go.wait(60)
                super().finish(metadata, results)

        failing = torch_dcp.DefaultSavePlanner()
        failing.resolve_data = mock.Mock(side_effect=RuntimeError("no memory left"))
        with concurrent.futures.ThreadPoolExecutor(6) as threads:
            saves = []
            for step in range(1, 7):
                queued.clear()
                saves.append(threads.submit(torch_dcp.save, {"x": torch.full((2,), float(step))}, storage_writer=Watched(self.run_directory, step=step),
                                            planner=failing if step == 3 else None))
                self.assertTrue(queued.wait(60))
                self.assertTrue(inside.wait(60))
            self.assertFalse(any(save.done() for save in saves))
            go.set()
            with self.assertRaisesRegex(torch_dcp.CheckpointException, "no memory left"):
                saves.pop(2).result(60)
            for save in saves:
                save.result(60)
        self.assertEqual(self.steps(), [(6,), (5,), (4,), (2,), (1,)])
        self.assertEqual([one["orphan"] for one in self.listing()], [False] * 5)
        self.assertTrue(torch.equal(self.load({"x": torch.zeros(2)}, "@1")["x"], torch.ones(2)))

    def test_a_process_saves_and_leaves_the_directory_to_others(self):
        process = torch_dcp.state_dict_saver.AsyncCheckpointerType.PROCESS
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        self.addCleanup(dist.destroy_process_group)
        with mock.patch.dict(os.environ, MASTER_ADDR="127.0.0.1"):
            for step in (1, 2):
                torch_dcp.async_save({"x": torch.full((2,), float(step)), "step": step}, storage_writer=StorageWriter(self.run_directory, step=step),
                                     async_checkpointer_type=process).result(120)
            with self.assertRaisesRegex(torch_dcp.CheckpointException, "a codec for one thing"):  # in the middle of the save
                torch_dcp.async_save({"z": 3}, storage_writer=StorageWriter(self.run_directory, step=3, codec=OpaqueCodec),
                                     async_checkpointer_type=process).result(120)
        self.assertEqual(self.steps(), [(2,), (1,)])
        self.assertEqual(self.load({"x": torch.zeros(2), "step": 0}, "@2")["step"], 2)
        self.eventually_save({"x": torch.zeros(2)})  # by this process, which is refused as long as that one has it
        self.assertEqual(self.steps()[0], (3,))

    def test_asynchronous_saves_survive_a_group_that_was_left_and_joined_again(self):
        for step in (1, 2):
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
            try:
                scalar = distribute_tensor(torch.tensor(float(step)), init_device_mesh("cpu", (1,)), [Replicate()])
                cairn.torch.checkpoint.async_save({"x": scalar}, checkpoint_id=f"{self.run_directory}@{step}")
                with torch.no_grad():
                    scalar.fill_(-1)
                self.assertTrue(cairn.torch.checkpoint.maybe_finalize_async_calls(blocking=True))
            finally:
                dist.destroy_process_group()
        self.assertEqual(self.steps(), [(2,), (1,)])
        self.assertEqual(self.load({"x": torch.zeros(())})["x"], 2)

    def test_an_error_that_nobody_has_asked_for_is_told_at_the_end(self):
        program = ("import sys, torch, cairn.torch\n"
                   "cairn.torch.checkpoint.async_save({'z': torch.zeros(2, dtype=torch.complex128)}, checkpoint_id=sys.argv[1])")
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, self.run_directory], env={**os.environ, "PYTHONPATH": str(ROOT / "hooks/python")},
                              capture_output=True, text=True, timeout=120)
        self.assertIn("cairn: the last asynchronous save failed: ", done.stderr)
        self.assertIn("z is of torch.complex128", done.stderr)

    def test_a_process_of_multiprocessing_gives_the_directory_back_at_its_end(self):
        program = ("import multiprocessing, sys\n"
                   "from cairn.writer import Writer\n"
                   "def own():\n"
                   "    Writer(sys.argv[1])\n"
                   "process = multiprocessing.get_context('fork').Process(target=own)\n"
                   "process.start()\n"
                   "process.join()\n"
                   "Writer(sys.argv[1]).close()")
        done = subprocess.run([sys.executable, "-c", program, self.run_directory], env={**os.environ, "PYTHONPATH": str(ROOT / "hooks/python")},
                              capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))  # a line tells of the wait for an owner that has died without a word

    def test_a_damaged_shard_is_not_loaded(self):
        self.save({"x": torch.arange(1000.)})
        path, = glob.glob(f"{self.run_directory}/step-*/*.safetensors")
        content = bytearray(pathlib.Path(path).read_bytes())
        content[-1] ^= 1
        pathlib.Path(path).write_bytes(content)
        with self.assertRaisesRegex(torch_dcp.CheckpointException, "checksum"):
            self.load({"x": torch.zeros(1000)})


class AttachedTest(Lives):
    def test_a_run_that_was_attached_loads_by_the_names_of_its_state_dicts(self):
        self.life("run", 2, HERE / "train.py", "fsdp2", "--save-at", 3, "--stop-at", 3, "--port", free_port())
        os.environ["CAIRN_LIBRARY"] = str(self.build.resolve() / "runtime/libcairn.so")
        from train import Net, optimizer_of

        net = Net()
        optimizer = optimizer_of("adamw", "plain", net)
        model, optim = get_state_dict(net, optimizer)
        torch_dcp.load({"model": model, "optim": optim}, storage_reader=StorageReader(self.folder / "run"))
        saved = cairn.torch.load(self.folder / "run")
        for name, tensor in model.items():
            self.assertTrue(torch.equal(tensor, saved[f"model.{name}"]), name)
        self.assertTrue(torch.equal(optim["state"]["out.weight"]["max_exp_avg_sq"], saved["optim.state.out.weight.max_exp_avg_sq"]))
        self.assertEqual(optim["state"]["out.weight"]["step"], 3)
        for group, rate in zip(optim["param_groups"], (0.01, 0.005)):  # after three steps of the schedule
            self.assertAlmostEqual(group["lr"], rate * (1 + math.cos(math.pi * 3 / 20)) / 2, 12)


if __name__ == "__main__":
    main()
