"""Any layout into any other, against NumPy's slicing.

    reshard_test.py RESHARD [CASES [SEED]]

Each case has a few arrays, random layouts of two worlds (boxes, strided ones with halos, flat ranges with padding, replicas, blocks in turns,
overlaps; C and Fortran order), ranks that write files together or not, and small blocks. RESHARD (reshard.cc) saves what NumPy cut out of the arrays, restores it in the other world, and
what it gives back must be what NumPy cuts out there; halos and padding untouched, each block read once. 77 = skipped: no NumPy.
"""
import os
import random
import struct
import subprocess
import sys

try:
    import numpy
except ImportError:
    print("skipped: no NumPy; CAIRN_TEST_PYTHON names a Python that has it")
    sys.exit(77)

DTYPES = {"u1": 1, "u2": 6, "u4": 10, "u8": 14}  # CAIRN_U8 and so on: these never change
FILLER = 0xEE


class Piece:
    """A part of an array in the memory of a rank. `memory` is all bytes of it; `part` a view of the elements that count."""

    def __init__(self, array, words, memory, part, of):
        self.array, self.words, self.memory, self.part, self.of = array, words, memory, part, of


def box_piece(rng, array, offset, extent):
    order = "F" if array.order else "C"
    halo = [(rng.randrange(2), rng.randrange(2)) if rng.random() < 0.3 else (0, 0) for _ in extent]
    memory = numpy.full([e + low + high for e, (low, high) in zip(extent, halo)], array.filler, array.dtype, order)
    part = memory[(*(slice(low, low + e) for e, (low, high) in zip(extent, halo)), ...)]
    size = array.dtype.itemsize
    dense = not any(map(sum, halo)) and rng.random() < 0.5
    strides = [0 if dense else s // size for s in memory.strides]
    begin = sum(low * s for (low, _), s in zip(halo, memory.strides))
    index = tuple(slice(o, o + e) for o, e in zip(offset, extent))
    return Piece(array, [*offset, *extent, *strides, begin], memory, part, array.whole[index])


def flat_piece(array, offset, count):
    memory = numpy.full(count, array.filler, array.dtype)
    of = array.whole.ravel("F" if array.order else "C")[offset:offset + count]
    return Piece(array, [offset, count], memory, memory[:of.size], of)


class Array:
    def __init__(self, rng, seed):
        ndim = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
        self.shape = [rng.choice([1, 2, 3, 5, 8, 12, 17]) for _ in range(ndim)]
        while ndim > 2 and numpy.prod(self.shape) > 2000:
            self.shape[self.shape.index(max(self.shape))] = 2
        if ndim and rng.random() < 0.04:
            self.shape[rng.randrange(ndim)] = 0
        self.order = rng.randrange(2)
        name = rng.choice(list(DTYPES))
        self.dtype, self.number = numpy.dtype(name), DTYPES[name]
        self.filler = int.from_bytes(bytes([FILLER]) * self.dtype.itemsize, "little")
        generator = numpy.random.default_rng(seed)
        self.whole = generator.integers(0, 2**63, self.shape, "u8").astype(self.dtype)

    def head(self):
        return [self.number, self.order, len(self.shape), *self.shape]


def cut(rng, extent, parts):
    """[(offset, extent), …] of a dimension: even, or not."""
    if rng.random() < 0.6:
        borders = [extent * i // parts for i in range(parts + 1)]
    else:
        borders = [0, *sorted(rng.randint(0, extent) for _ in range(parts - 1)), extent]
    return list(zip(borders, [b - a for a, b in zip(borders, borders[1:])]))


def boxes_of(rng, array, ranks):
    """By rank: (offset, extent) of its boxes, which cover the array together."""
    held = [[] for _ in range(ranks)]
    ndim, kind = len(array.shape), rng.randrange(5)
    whole = ([0] * ndim, list(array.shape))
    if kind == 0 or ndim == 0:  # replicas on all or some
        for rank in rng.sample(range(ranks), rng.choice([1, ranks])):
            held[rank].append(whole)
    elif kind in (1, 2):  # a grid: one cell for each rank in turn, or blocks dealt out at random; the rest are replicas
        parts = [rng.choice([1, 1, 2, 3]) for _ in range(ndim)] if kind == 2 else [1] * ndim
        if kind == 1:
            parts[rng.randrange(ndim)] = ranks
        cuts = [cut(rng, e, p) for e, p in zip(array.shape, parts)]
        cells = list(numpy.ndindex(*parts))
        deal = rng.random() < 0.7
        for i in range(max(len(cells), ranks if deal else 0)):
            at = cells[i % len(cells)]
            box = [cuts[d][p] for d, p in enumerate(at)]
            held[i % ranks if deal else rng.randrange(ranks)].append(([o for o, _ in box], [e for _, e in box]))
    elif kind == 3:  # cut up again and again
        boxes = [whole]
        for _ in range(rng.randrange(2 * ranks)):
            offset, extent = boxes.pop(rng.randrange(len(boxes)))
            d = rng.randrange(ndim)
            low = rng.randint(0, extent[d])
            boxes.append((offset, [low if i == d else e for i, e in enumerate(extent)]))
            boxes.append(([o + low if i == d else o for i, o in enumerate(offset)], [e - low if i == d else e for i, e in enumerate(extent)]))
        for box in boxes:
            held[rng.randrange(ranks)].append(box)
    else:  # slabs that overlap
        d = rng.randrange(ndim)
        for rank, (offset, extent) in enumerate(cut(rng, array.shape[d], ranks)):
            first, last = max(0, offset - rng.randrange(3)), min(array.shape[d], offset + extent + rng.randrange(3))
            held[rank].append(([first if i == d else 0 for i in range(ndim)], [last - first if i == d else e for i, e in enumerate(array.shape)]))
    return held


def ranges_of(rng, array, ranks):
    count = int(numpy.prod(array.shape))
    if rng.random() < 0.5:  # equal, with padding behind the end
        share = -(-count // ranks)
        return [[(rank * share, share)] for rank in range(ranks)] if share else [[] for _ in range(ranks)]
    held = [[] for _ in range(ranks)]
    for offset, extent in cut(rng, count, rng.randint(1, 2 * ranks)):
        held[rng.randrange(ranks)].append((offset, extent))
    return held


class World:
    """ranks[r][a]: (flat, pieces)."""

    def __init__(self, rng, arrays):
        self.count = rng.randint(1, 7)
        self.ranks = [[] for _ in range(self.count)]
        for array in arrays:
            flat = rng.random() < 0.3
            held = (ranges_of if flat else boxes_of)(rng, array, self.count)
            if flat and rng.random() < 0.3:  # some ranks hold boxes, others ranges: all of it, here
                held = [[(0, int(numpy.prod(array.shape)))] for _ in held]
            for rank, parts in zip(self.ranks, held):
                rank.append((flat, [flat_piece(array, *p) if flat else box_piece(rng, array, *p) for p in parts]))

    def pieces(self):
        return [piece for rank in self.ranks for _, pieces in rank for piece in pieces]

    def encode(self):
        out = [struct.pack("<q", self.count)]
        for rank in self.ranks:
            for flat, pieces in rank:
                out.append(struct.pack("<2q", flat, len(pieces)))
                for piece in pieces:
                    memory = piece.memory.tobytes("A")
                    out.append(struct.pack(f"<{len(piece.words) + 1}q", *piece.words, len(memory)))
                    out.append(memory + bytes(-len(memory) % 8))
        return b"".join(out)


def random_writers(rng, ranks):
    """The writer of each rank, numbered by their lowest ranks; or nothing: each is its own."""
    writers = []
    while len(writers) < ranks and (writers or rng.random() < 0.6):
        writers.append(rng.randint(0, max(writers, default=-1) + 1))
    return writers


def run_case(program, seed):
    rng = random.Random(seed)
    arrays = [Array(rng, seed + i) for i in range(rng.randint(1, 4))]
    saved, wanted = World(rng, arrays), World(rng, arrays)
    for piece in saved.pieces():
        piece.part[...] = piece.of
    numbers = [rng.choice([16, 100, 512, 4096, 1 << 16]), rng.choice([1, 64, 1024]), len(arrays)]
    head = [word for array in arrays for word in array.head()]
    writers = random_writers(rng, saved.count)
    words = [*numbers, *head, len(writers), *writers]
    program.stdin.write(struct.pack(f"<{len(words)}q", *words) + saved.encode() + wanted.encode())
    program.stdin.flush()
    for number, piece in enumerate(wanted.pieces()):
        size = piece.memory.nbytes
        got = program.stdout.read(size + -size % 8)[:size]
        if len(got) < size:
            sys.exit(f"seed {seed}: {program.args[0]} ended")
        piece.part[...] = piece.of  # what must be there; all else as it was
        if got != piece.memory.tobytes("A"):
            sys.exit(f"seed {seed}: piece {number} of the restored world, {piece.words} of an array of {piece.array.shape}, is wrong")
    counts = program.stdout.read(16)
    if len(counts) < 16:
        sys.exit(f"seed {seed}: {program.args[0]} ended")
    read, different = struct.unpack("<2q", counts)
    if read != different:
        sys.exit(f"seed {seed}: {read} blocks were read, {different} different ones")


def main():
    cases = (int(sys.argv[2]) if len(sys.argv) > 2 else 2000) * (10 if os.environ.get("CAIRN_TEST_FULL") else 1)
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else int.from_bytes(os.urandom(4), "little")
    print(f"seeds {seed} to {seed + cases - 1}")
    with subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for number in range(seed, seed + cases):
            run_case(program, number)
        program.stdin.close()
        if program.wait() != 0:
            sys.exit(f"{sys.argv[1]} ended with status {program.returncode}")
    print(f"{cases} pairs of layouts: every byte right, every block read once")


if __name__ == "__main__":
    main()
