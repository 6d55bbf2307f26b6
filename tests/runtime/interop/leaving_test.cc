// `cairn export` and `cairn diff`, the programs, against the formats' own libraries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/formats/names.h"
#include "tests/runtime/command/program.h"
#include "tests/runtime/interop/made_run.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string Python() {
  const char* python = std::getenv("CAIRN_TEST_PYTHON");
  return python != nullptr ? python : "python3";
}

bool HasModules(const std::string& modules) {
  return std::system((Python() + " -c 'import " + modules + "' 2>/dev/null").c_str()) == 0;
}

// Puts each array's bytes into a file of its name, for a Python that compares.
std::string WriteExpected(const MadeRun& run) {
  const std::string folder = NewFolder();
  for (const MadeArray& array : run.arrays()) WriteText(folder + "/" + array.spec.name, array.bytes);
  return folder;
}

bool RunPython(const std::string& script, const std::string& arguments) {
  const std::string path = NewFolder() + "/check.py";
  WriteText(path, script);
  return std::system((Python() + " " + path + " " + arguments).c_str()) == 0;
}

TEST(CairnExport, WritesAFileThatEqualsTheCheckpoint) {
  const MadeRun run(AllKinds());
  const std::string out = NewFolder() + "/new/all.safetensors";
  const Outcome made = RunCairn({"export", run.path(), "--to", "safetensors", out});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr(out + ": 14 arrays"));
  EXPECT_THAT(made.out, HasSubstr("in Fortran order, so their dimensions are reversed there: field\n"));
  EXPECT_THAT(made.out, HasSubstr("left out, since they are no arrays: the blobs rng\n"));
  const Outcome diff = RunCairn({"diff", run.path(), out});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
  EXPECT_EQ(diff.out, "14 of 14 arrays equal\n");
}

TEST(CairnExport, LeavesNoBlobOutWhereThatIsRefused) {
  const MadeRun run(AllKinds());
  const std::string out = NewFolder() + "/out", names = NewFolder() + "/names.json";
  for (const std::string to : {"safetensors", "hf"}) {
    const Outcome refused = RunCairn({"export", run.path(), "--to", to, "--strict", out});
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(refused.err,
              "cairn: " + to +
                  " holds arrays alone, and these blobs would be left out: rng; `--to dcp` takes "
                  "them along, --names can drop them\n");
    EXPECT_FALSE(fs::exists(out));
  }
  WriteText(names, R"({"rng": null})");
  const Outcome dropped =
      RunCairn({"export", run.path(), "--to", "hf", "--strict", "--names", names, "--json", out});
  EXPECT_EQ(dropped.code, 0) << dropped.err;
  EXPECT_EQ(dropped.Json()["left_out"], nlohmann::json::array());
  EXPECT_EQ(dropped.Json()["blobs"], nlohmann::json::array());
}

TEST(CairnExport, GivesNoBlobTheNameOfAnArray) {
  const MadeRun run(AllKinds());
  const std::string names = NewFolder() + "/names.json", out = NewFolder() + "/out";
  WriteText(names, R"({"rng": "model.w"})");
  const Outcome refused = RunCairn({"export", run.path(), "--to", "dcp", "--names", names, out});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "cairn: an array and a blob would both be called \"model.w\"\n");
}

TEST(CairnExport, WritesWhatTheSafetensorsLibraryReads) {
  if (!HasModules("numpy, safetensors"))
    GTEST_SKIP() << Python() << " lacks safetensors or numpy; set CAIRN_TEST_PYTHON";
  std::vector<MadeArray> arrays = AllKinds();
  std::erase_if(arrays, [](const MadeArray& a) {  // numpy has no such types
    return a.spec.dtype == DType::kBF16 || a.spec.dtype == DType::kF8E4M3 || a.spec.dtype == DType::kF8E5M2;
  });
  const MadeRun run(std::move(arrays));
  const std::string out = NewFolder() + "/all.safetensors";
  ASSERT_EQ(RunCairn({"export", run.path(), "--to", "safetensors", out}).code, 0);
  EXPECT_TRUE(RunPython(R"(
import os, sys
from safetensors.numpy import load_file
found = load_file(sys.argv[1])
assert set(found) == set(os.listdir(sys.argv[2])), found.keys()
for name, array in found.items():
    assert array.tobytes() == open(os.path.join(sys.argv[2], name), "rb").read(), name
assert found["model.w"].shape == (6, 8) and found["optim.lr"].shape == () and found["model.none"].shape == (0, 4)
)",
                        out + " " + WriteExpected(run)));
}

// PyTorch's type of each name of safetensors', and the values in one of its elements. F6 it has not.
constexpr const char* kTorchTypes = R"(
import torch
TYPES = {"BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "F8_E5M2": torch.float8_e5m2, "F8_E4M3": torch.float8_e4m3fn,
         "I16": torch.int16, "U16": torch.uint16, "F16": torch.float16, "BF16": torch.bfloat16, "I32": torch.int32, "U32": torch.uint32,
         "F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "U64": torch.uint64, "C64": torch.complex64,
         "F8_E8M0": torch.float8_e8m0fnu, "F8_E4M3FNUZ": torch.float8_e4m3fnuz, "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
         "F4": torch.float4_e2m1fn_x2}
VALUES = {"F4": 2, "F6_E2M3": 4, "F6_E3M2": 4}
def bytes_of(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
)";

TEST(CairnExport, GivesEachTypeTheNameThatTheSafetensorsLibraryHasForIt) {
  if (!HasModules("torch, safetensors")) GTEST_SKIP() << Python() << " lacks torch; set CAIRN_TEST_PYTHON";
  const MadeRun run(OneOfEachType());
  const std::string out = NewFolder() + "/all.safetensors";
  ASSERT_EQ(RunCairn({"export", run.path(), "--to", "safetensors", out}).code, 0);
  EXPECT_TRUE(RunPython(std::string(kTorchTypes) + R"(
import json, re, safetensors, struct, sys
header = b'{"a":{"dtype":"none","shape":[],"data_offsets":[0,0]}}'
try:
    safetensors.deserialize(struct.pack("<Q", len(header)) + header)
except safetensors.SafetensorError as error:
    known = set(re.findall("`([A-Z0-9_]+)`", str(error).split("expected one of")[1]))
with safetensors.safe_open(sys.argv[1], framework="pt") as f:
    assert {name[len("kind."):] for name in f.keys()} == known, (known, f.keys())
    for name in f.keys():
        kind, expected = name[len("kind."):], open(sys.argv[2] + "/" + name, "rb").read()
        part = f.get_slice(name)
        assert part.get_dtype() == kind and part.get_shape() == [3, 8 * VALUES.get(kind, 1)], (kind, part.get_dtype(), part.get_shape())
        if kind in TYPES:
            tensor = f.get_tensor(name)
            assert tensor.dtype == TYPES[kind] and tensor.shape == (3, 8) and bytes_of(tensor) == expected, kind
# The checkpoint's own files, each with its box.
for number, columns, begin in ((1, 3, 0), (2, 5, 3)):
    with safetensors.safe_open(sys.argv[3] + f"/shard-{number:05}-model-00001-of-00001.safetensors", framework="pt") as f:
        places = json.loads(f.metadata()["DCP_SHARDING_INFO"])
        for kind in known:
            values = VALUES.get(kind, 1)
            assert f.get_slice("kind." + kind).get_shape() == [3, columns * values], kind
            assert places["kind." + kind]["saved_offsets"] == [0, begin * values], kind
)",
                        out + " " + WriteExpected(run) + " " + run.path() + "/" + run.checkpoint()));
  const std::string back = NewFolder() + "/back";
  ASSERT_EQ(RunCairn({"import", "--from", "safetensors", out, back}).code, 0);
  EXPECT_EQ(RunCairn({"diff", run.path(), back}).out, "22 of 22 arrays equal\n");
}

TEST(CairnExport, TakesEachTypeThatPyTorchHasAlongToDcp) {
  if (!HasModules("torch")) GTEST_SKIP() << Python() << " lacks torch; set CAIRN_TEST_PYTHON";
  const MadeRun run(OneOfEachType());
  const std::string folder = NewFolder(), out = folder + "/dcp";
  const Outcome refused = RunCairn({"export", run.path(), "--to", "dcp", out});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            "cairn: array \"kind.F6_E2M3\" is F6_E2M3, and PyTorch has no such type: leave it out by "
            "--names, or take it along by "
            "`--to safetensors`\n");
  EXPECT_FALSE(fs::exists(out));
  WriteText(folder + "/names.json", R"({"kind.F6_*": null})");
  ASSERT_EQ(RunCairn({"export", run.path(), "--to", "dcp", "--names", folder + "/names.json", out}).code, 0);
  EXPECT_TRUE(RunPython(std::string(kTorchTypes) + R"(
import sys
import torch.distributed.checkpoint as dcp
metadata = dcp.FileSystemReader(sys.argv[1]).read_metadata().state_dict_metadata
assert {name for name in metadata if name != "rng"} == {"kind." + kind for kind in TYPES}
state = {"kind." + kind: torch.zeros((3, 8), dtype=torch.uint8).view(TYPES[kind]) if kind.startswith(("F8", "F4")) else
         torch.zeros((3, 8), dtype=TYPES[kind]) for kind in TYPES}
dcp.load(state, checkpoint_id=sys.argv[1], no_dist=True)
for name, tensor in state.items():
    assert metadata[name].properties.dtype == TYPES[name[len("kind."):]] and metadata[name].size == (3, 8), name
    assert bytes_of(tensor) == open(sys.argv[2] + "/" + name, "rb").read(), name
)",
                        out + " " + WriteExpected(run)));
  const std::string back = NewFolder() + "/back";
  ASSERT_EQ(RunCairn({"import", "--from", "dcp", out, back}).code, 0);
  const Outcome diff = RunCairn({"diff", run.path(), back, "--json"});
  EXPECT_EQ(diff.Json()["arrays"].size(), 22U);
  for (const auto& array : diff.Json()["arrays"]) {
    const bool left_out = array["name"].get<std::string>().starts_with("kind.F6_");
    EXPECT_EQ(array["result"], left_out ? "only in A" : "equal") << array;
  }
}

TEST(CairnImport, ReadsEachTypeThatPyTorchSaves) {
  if (!HasModules("torch, safetensors")) GTEST_SKIP() << Python() << " lacks torch; set CAIRN_TEST_PYTHON";
  const std::string folder = NewFolder();
  ASSERT_TRUE(RunPython(std::string(kTorchTypes) + R"(
import sys
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
state = {}
for i, (kind, dtype) in enumerate(TYPES.items()):
    raw = (torch.arange(96, dtype=torch.uint8) * 5 + i) % 2 if kind == "BOOL" else torch.arange(96, dtype=torch.uint8) * 5 + i
    state[kind] = raw.view(dtype).reshape(3, -1)
    open(sys.argv[1] + "/" + kind, "wb").write(bytes_of(state[kind]))
save_file(state, sys.argv[1] + "/all.safetensors")
dcp.save(state, checkpoint_id=sys.argv[1] + "/dcp", no_dist=True)
)",
                        folder));
  for (const auto& [format, source] : {std::pair("safetensors", "/all.safetensors"), {"dcp", "/dcp"}}) {
    const std::string run = folder + "/run-" + format, out = run + ".back";
    const Outcome made = RunCairn({"import", "--from", format, folder + source, run});
    ASSERT_EQ(made.code, 0) << made.err;
    ASSERT_EQ(RunCairn({"export", run, "--to", "safetensors", out}).code, 0);
    EXPECT_TRUE(RunPython(std::string(kTorchTypes) + R"(
import sys
from safetensors import safe_open
with safe_open(sys.argv[1], framework="pt") as f:
    assert set(f.keys()) == set(TYPES)
    for kind in TYPES:
        tensor = f.get_tensor(kind)
        assert tensor.dtype == TYPES[kind] and bytes_of(tensor) == open(sys.argv[2] + "/" + kind, "rb").read(), kind
)",
                          out + " " + folder));
  }
}

TEST(CairnExport, WritesAFolderThatPyTorchReadsAsOneCheckpoint) {
  if (!HasModules("torch, safetensors")) GTEST_SKIP() << Python() << " lacks torch; set CAIRN_TEST_PYTHON";
  std::vector<MadeArray> arrays = AllKinds();
  std::erase_if(arrays, [](const MadeArray& a) {  // its HuggingFaceStorageReader knows no bool and no fp8
    return a.spec.dtype == DType::kBool || a.spec.dtype == DType::kF8E4M3 || a.spec.dtype == DType::kF8E5M2;
  });
  const MadeRun run(std::move(arrays));
  const std::string out = NewFolder() + "/hf";
  ASSERT_EQ(RunCairn({"export", run.path(), "--to", "hf", "--file-limit", "100", out}).code, 0);
  EXPECT_TRUE(RunPython(R"(
import json, os, sys, torch
import torch.distributed.checkpoint as dcp
from safetensors import safe_open
index = json.load(open(sys.argv[1] + "/model.safetensors.index.json"))
state, total = {}, 0
for name, file in index["weight_map"].items():
    with safe_open(sys.argv[1] + "/" + file, framework="pt") as f:
        tensor = f.get_tensor(name)
    total += tensor.numel() * tensor.element_size()
    state[name] = torch.zeros_like(tensor)
assert index["metadata"]["total_size"] == total
assert set(state) == set(os.listdir(sys.argv[2])) and len(set(index["weight_map"].values())) > 3
dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(sys.argv[1]), no_dist=True)
for name, tensor in state.items():
    expected = open(os.path.join(sys.argv[2], name), "rb").read()
    assert tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() == expected, name
)",
                        out + " " + WriteExpected(run)));
}

TEST(CairnExport, WritesACheckpointThatPyTorchLoads) {
  if (!HasModules("torch")) GTEST_SKIP() << Python() << " lacks torch; set CAIRN_TEST_PYTHON";
  const MadeRun run(AllKinds());
  const std::string out = NewFolder() + "/dcp";
  const Outcome made =
      RunCairn({"export", run.path(), "--to", "dcp", "--strict", "--file-limit", "1000", out});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("\nwith the blobs: rng\n"));
  EXPECT_TRUE(fs::exists(out + "/__0_2.distcp"));
  EXPECT_TRUE(RunPython(R"(
import os, sys, torch
import torch.distributed.checkpoint as dcp
metadata = dcp.FileSystemReader(sys.argv[1]).read_metadata()
state = {name: torch.zeros(tensor.size, dtype=tensor.properties.dtype)
         for name, tensor in metadata.state_dict_metadata.items() if name != "rng"}
assert set(state) == set(os.listdir(sys.argv[2])), state.keys()
state["rng"] = None
dcp.load(state, checkpoint_id=sys.argv[1], no_dist=True)
assert state.pop("rng") == [b"\xff\x80\x00A", None, b"seed", b"seed"]
for name, tensor in state.items():
    expected = open(os.path.join(sys.argv[2], name), "rb").read()
    assert tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() == expected, name
assert state["model.w"].shape == (6, 8) and state["optim.lr"].shape == () and state["model.none"].shape == (0, 4)
)",
                        out + " " + WriteExpected(run)));
  const Outcome diff = RunCairn({"diff", run.path(), out});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
}

TEST(CairnDiff, ReadsWhatPyTorchsRanksSavedTogether) {
  if (!HasModules("torch, numpy")) GTEST_SKIP() << Python() << " lacks torch; set CAIRN_TEST_PYTHON";
  const std::string folder = NewFolder();
  ASSERT_TRUE(RunPython(R"(
import os, sys, torch, torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor, Replicate, Shard
from safetensors.torch import save_file

def full():
    torch.manual_seed(1)
    return {"rows": torch.randn(7, 5), "columns": torch.randn(6, 9).to(torch.bfloat16), "grid": torch.randn(5, 6, 2),
            "same": torch.arange(10), "flags": torch.rand(9) > 0.5}

def rank_main(rank, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", RANK=str(rank), WORLD_SIZE="4")
    dist.init_process_group("gloo", init_method="file://" + out + "/rendezvous", rank=rank, world_size=4)
    line = init_device_mesh("cpu", (4,))
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    whole = full()
    state = {"rows": distribute_tensor(whole["rows"], line, [Shard(0)]),
             "columns": distribute_tensor(whole["columns"], line, [Shard(1)]),
             "grid": distribute_tensor(whole["grid"], grid, [Shard(0), Shard(1)]),
             "same": distribute_tensor(whole["same"], line, [Replicate()]), "flags": whole["flags"]}
    dcp.save(state, checkpoint_id=out + "/dcp")
    dist.destroy_process_group()

if __name__ == "__main__":
    save_file(full(), sys.argv[1] + "/whole.safetensors")
    torch.multiprocessing.spawn(rank_main, (sys.argv[1],), nprocs=4)
)",
                        folder));
  const Outcome diff = RunCairn({"diff", folder + "/dcp", folder + "/whole.safetensors"});
  EXPECT_EQ(diff.code, 0) << diff.err;
  EXPECT_EQ(diff.out, "5 of 5 arrays equal\n");
}

TEST(CairnExport, KeepsFilesOfAFolderBelowTheLimit) {
  const MadeRun run({{{"a", DType::kU8, false, {60}}, "", {}},
                     {{"b", DType::kU8, false, {40}}, "", {}},
                     {{"c", DType::kU8, false, {500}}, "", {}},
                     {{"d", DType::kU8, false, {1}}, "", {}}});
  const std::string out = NewFolder() + "/hf";
  const auto made =
      RunCairn({"export", run.path(), "--to", "hf", "--file-limit", "100", out, "--json"}).Json();
  EXPECT_EQ(made["files"],
            (std::vector<std::string>{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                      "model-00003-of-00003.safetensors", "model.safetensors.index.json"}));
  const auto index = nlohmann::json::parse(ReadText(out + "/model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 601);
  EXPECT_EQ(index["weight_map"]["b"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["d"], "model-00003-of-00003.safetensors");
  EXPECT_EQ(RunCairn({"diff", run.path(), out}).code, 0);
}

// PyTorch does not look at the checksums of its archives; Python's zipfile does.
TEST(CairnExport, WritesArchivesWhoseChecksumsHold) {
  const MadeRun run({{{"a", DType::kF32, false, {60, 7}}, "", {}},
                     {{"b", DType::kU8, false, {3}}, "", {}},
                     {{"c", DType::kBF16, false, {5000}}, "", {}}});
  const std::string out = NewFolder() + "/dcp";
  const Outcome made = RunCairn({"export", run.path(), "--to", "dcp", "--file-limit", "1", out});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(RunPython(R"(
import glob, os, struct, sys, zipfile
expected = {open(path, "rb").read() for path in glob.glob(sys.argv[2] + "/*")}
files = glob.glob(sys.argv[1] + "/*.distcp")
assert len(files) == 4 and len(expected) == 3, files  # one with the blob
found = set()
for path in files:
    archive = zipfile.ZipFile(path)
    assert archive.testzip() is None, path
    for member in archive.infolist():
        assert struct.unpack_from("<I", open(path, "rb").read(), member.header_offset + 14)[0] == member.CRC, member
    if "archive/data/0" in archive.namelist():
        found.add(archive.read("archive/data/0"))
    else:
        assert b"latin1" in archive.read("archive/data.pkl")
assert found == expected
)",
                        out + " " + WriteExpected(run)));
}

TEST(CairnExport, GivesArraysTheNamesOfTheFile) {
  const MadeRun run(AllKinds());
  const std::string folder = NewFolder();
  WriteText(folder + "/names.json", R"({"model.*": "*", "optim.*": null, "field": null})");
  const auto made = RunCairn({"export", run.path(), "--to", "hf", folder + "/hf", "--names",
                              folder + "/names.json", "--json"})
                        .Json();
  EXPECT_EQ(made["arrays"], 7);
  EXPECT_EQ(made["files"], std::vector<std::string>{"model.safetensors"});
  const std::string header = ReadText(folder + "/hf/model.safetensors").substr(8, 700);
  EXPECT_THAT(header, HasSubstr(R"("columns":{"dtype":"BF16","shape":[5,7])"));
}

TEST(CairnExport, LeavesNothingBehindOfADamagedCheckpoint) {
  const MadeRun run(AllKinds());
  const std::string shard = run.path() + "/" + run.checkpoint() + "/" + names::Shard(1);
  std::string bytes = ReadText(shard);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteText(shard, bytes);
  const std::string folder = NewFolder();
  for (const char* format : {"safetensors", "hf", "dcp"}) {
    const Outcome made = RunCairn({"export", run.path(), "--to", format, folder + "/out"});
    EXPECT_EQ(made.code, 1);
    EXPECT_THAT(made.err, HasSubstr(shard + ": block 0"));
    EXPECT_TRUE(fs::is_empty(folder)) << format;
  }
}

TEST(CairnExport, RefusesToReplaceWhatIsThere) {
  const MadeRun run(AllKinds());
  const std::string out = NewFolder() + "/there";
  WriteText(out, "precious");
  for (const char* format : {"safetensors", "hf", "dcp"}) {
    const Outcome made = RunCairn({"export", run.path(), "--to", format, out});
    EXPECT_EQ(made.code, 1);
    EXPECT_EQ(made.err, "cairn: " + out + " is there already: name a new one\n");
  }
  EXPECT_EQ(ReadText(out), "precious");
}

TEST(CairnDiff, ExitsOneAndSaysHowMuchDiffers) {
  const MadeRun a({{{"w", DType::kF32, false, {2}}, std::string("\0\0\x80\x3f\0\0\x80\x3f", 8), {}},
                   {{"same", DType::kU8, false, {3}}, "abc", {}}});
  const MadeRun b({{{"w", DType::kF32, false, {2}}, std::string("\0\0\x80\x3f\0\0\0\x40", 8), {}},
                   {{"same", DType::kU8, false, {3}}, "abc", {}}});
  const Outcome diff = RunCairn({"diff", a.path(), b.path() + "@100"});
  EXPECT_EQ(diff.code, 1);
  EXPECT_EQ(diff.out,
            "ARRAY  DTYPE  SHAPE  RESULT   DIFFERING  MAX ABS  MAX REL\n"
            "w      F32    [2]    differs          1        1      0.5\n"
            "\n"
            "1 of 2 arrays equal\n");
  const auto json = RunCairn({"diff", "--json", a.path(), b.path()}).Json();
  EXPECT_EQ(json["equal"], false);
  EXPECT_EQ(json["arrays"][0]["max_rel"], 0.5);
  EXPECT_EQ(json["arrays"][1]["result"], "equal");
}

}  // namespace
}  // namespace cairn
