"""`cairn report` of a real run: report_test.py BUILD {figures|browser}

figures   the page is well-formed, refers to nothing outside, and its figures are those of the journal; a run of 10,000 saves stays small
browser   a real browser draws it, and the lives' bands are where the journal says; 77 = skipped: no browser (CAIRN_TEST_BROWSER names one)
"""
import datetime
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fault"))
from step import Programs, Step, wait_for  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def events(run):
    journal = run / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True) if journal.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def count(run, epoch, event):
    return sum(1 for e in events(run) if e["event"] == event and e["epoch"] == epoch)


def make_run(folder):
    """Three lives: told to end, then a rank lost, then finished; of 2, 3 and 2 ranks."""
    run = folder / "run"
    toy = ["--n", 10007, "--step-us", 3000, "--save-every", 20]

    def live(epoch, ranks, steps):
        return Step(programs, folder / f"life{epoch}", run, [*toy, "--steps", steps], ranks, restart=epoch - 1)

    with live(1, 2, 10**9) as step:
        assert wait_for(lambda: count(run, 1, "saved") >= 2)
        for rank in range(2):
            step.signal(rank, signal.SIGTERM)
        assert wait_for(lambda: count(run, 1, "ending") == 1)
    with live(2, 3, 10**9) as step:
        assert wait_for(lambda: count(run, 2, "saved") >= 2)
        step.signal(1, signal.SIGKILL)
        assert wait_for(lambda: count(run, 2, "gone") >= 1)
    with live(3, 2, max(e["step"] for e in events(run) if e["event"] == "saved") + 50) as step:
        assert step.join()
    return run


def report(run):
    page = run.parent / "report.html"
    subprocess.run([programs.cairn, "report", run, "-o", page], check=True, stdout=subprocess.DEVNULL)
    return page


def text_of(element):
    return "".join(element.itertext()).replace("\u00a0", "")


class Figures(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_they_are_those_of_the_journal(self):
        run = make_run(self.folder)
        with open(run / "journal.jsonl", "a") as journal:  # what users name is text, whatever it looks like
            journal.write(json.dumps({"event": "dropped", "time": events(run)[-1]["time"], "epoch": 3, "trigger": "interval",
                                      "step": 0, "why": "<script>&\"' \u0001"}) + "\n")
        told = events(run)
        page = report(run).read_text()
        root = xml.etree.ElementTree.fromstring(page)

        tiles = [text_of(tile.find("b")) for tile in root.iter("div") if tile.get("class") == "tile"]
        saved = [e for e in told if e["event"] == "saved"]
        first = {e["epoch"]: e["step"] for e in told if e["event"] == "restore"}
        came = {epoch: max(e.get("count", e["step"] if e["event"] == "staged" else 0) for e in told if e["epoch"] == epoch)
                for epoch in first}
        lost = [max(0, came[epoch] - first[epoch + 1]) for epoch in (1, 2)]
        self.assertEqual([tile.lstrip("≥ ") for tile in tiles[:4]], [str(came[3]), "3", str(len(saved)), str(sum(lost))])
        self.assertEqual(came[3], saved[-1]["step"])

        rows = {table.get("id"): [[text_of(cell) for cell in row.findall("td")] for row in table.iter("tr")][1:]
                for table in root.iter("table")}
        self.assertEqual([row[4] for row in rows["lives"]], ["2", "3", "2"])
        self.assertEqual([row[5] for row in rows["lives"]], [str(first[epoch]) for epoch in (1, 2, 3)])
        self.assertEqual([row[8].lstrip("≥ ") for row in rows["lives"]], [str(n) if n else "–" for n in lost] + ["–"])
        self.assertTrue(rows["lives"][1][9].startswith("rank lost"))
        durable = [row for row in rows["saves"] if not row[8].startswith(("given up", "under way"))]
        self.assertEqual([(row[0], row[1], row[2]) for row in durable],
                         [(str(e["epoch"]), e["trigger"], str(e["step"])) for e in saved])
        self.assertEqual(rows["saves"][-1][8].split(" ", 2)[2], "<script>&\"' ?")
        self.assertIn("newest", durable[-1][8])
        timeline = next(root.iter(SVG + "svg"))
        self.assertEqual([band.get("class") for band in timeline.iter(SVG + "rect") if "band" in band.get("class")],
                         ["band told", "band bad", "band good"])
        self.assertEqual(sum(1 for image in root.iter("img")), 1)  # the numbers of ranks differ

    def test_the_page_refers_to_nothing_outside(self):
        run = make_run(self.folder)
        page = report(run).read_text()
        root = xml.etree.ElementTree.fromstring(page)
        for element in root.iter():
            self.assertNotIn(element.tag.rpartition("}")[2], ("script", "link", "iframe", "object", "base", "a", "use", "image"))
            for name, value in element.items():
                self.assertFalse(name.startswith("on"), name)
                if name.rpartition("}")[2] in ("src", "href"):
                    self.assertTrue(value.startswith("data:"), value[:50])
                else:
                    self.assertNotIn("//", value)
        style = next(root.iter("style")).text
        for word in ("url(", "@import", "//"):
            self.assertNotIn(word, style)

    def test_ten_thousand_saves_make_a_small_page(self):
        run = self.folder / "run"
        with Step(programs, self.folder / "life", run, ["--n", 100, "--steps", 3], 1) as step:
            self.assertTrue(step.join())
        lines, step, now = [], 0, datetime.datetime(2026, 3, 1)

        def tell(event, **fields):
            lines.append(json.dumps({"event": event, "time": now.strftime("%Y-%m-%dT%H:%M:%S.000Z"), "epoch": epoch} | fields))

        for epoch in range(1, 41):
            tell("life", job="12", step="0", restart=epoch, node="n1", world_size=64)
            tell("restore", checkpoint="", step=step, world_size=64)
            for _ in range(250):
                now += datetime.timedelta(minutes=2)
                step += 40
                tell("staged", step=step, wait_ns=10**9)
                tell("saved", checkpoint=f"step-{step:012}.e{epoch}.00c0ffee", step=step, label=step, trigger="interval", bytes=10**11,
                     stall_ns=2 * 10**7, drain_ns=3 * 10**10, durable_ns=4 * 10**10)
        (run / "journal.jsonl").write_text("\n".join(lines) + "\n")
        page = report(run)
        self.assertLess(page.stat().st_size, 1_000_000)
        root = xml.etree.ElementTree.fromstring(page.read_text())
        self.assertEqual([text_of(tile.find("b")) for tile in root.iter("div") if tile.get("class") == "tile"][:4],
                         ["400000", "40", "10000", "0"])
        self.assertLess(sum(1 for _ in root.iter()), 10_000)


def pixels(png):
    """Rows of (r, g, b) of an 8-bit PNG that is not interlaced."""
    data, at, packed = png.read_bytes(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data[at + 8:at + 21])
            assert depth == 8 and colour in (2, 6) and not interlaced
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    channels = 3 if colour == 2 else 4
    raw, before, rows = zlib.decompress(packed), bytearray(width * channels), []
    for y in range(height):
        kind, line = raw[y * (width * channels + 1)], bytearray(raw[y * (width * channels + 1) + 1:(y + 1) * (width * channels + 1)])
        for i in range(len(line)):
            left, up, corner = (line[i - channels] if i >= channels else 0), before[i], (before[i - channels] if i >= channels else 0)
            if kind == 4:
                guess = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
            else:
                guess = (0, left, up, (left + up) // 2)[kind]
            line[i] = (line[i] + guess) & 255
        rows.append([tuple(line[i:i + 3]) for i in range(0, len(line), channels)])
        before = line
    return rows


class Browser(unittest.TestCase):
    # The page's colours of a life that was told to end, was lost, and finished.
    LIGHT = {"told": (0xc9, 0x8a, 0x12), "bad": (0xc9, 0x37, 0x2c), "good": (0x0f, 0x8a, 0x6d)}

    def test_it_draws_the_lives_where_the_journal_says(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        run = make_run(folder)
        page, picture = report(run), folder / "page.png"
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,520",
                        "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile", f"--screenshot={picture}", page.as_uri()],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        rows = pixels(picture)
        self.assertEqual((len(rows[0]), len(rows)), (1200, 520))
        # The row of the lives' heads: all three colours, each in one stretch.
        found = None
        for row in rows:
            spans = {kind: [x for x, pixel in enumerate(row) if pixel == colour] for kind, colour in self.LIGHT.items()}
            if all(len(xs) > 10 and xs[-1] - xs[0] < len(xs) + 2 for xs in spans.values()):
                found = {kind: (xs[0], xs[-1]) for kind, xs in spans.items()}
                break
        self.assertIsNotNone(found, "no row has the heads of all lives")

        def time(e):
            return datetime.datetime.fromisoformat(e["time"].replace("Z", "+00:00")).timestamp()

        spans = {e: [time(line) for line in events(run) if line["epoch"] == e] for e in (1, 2, 3)}
        begin, end = min(map(min, spans.values())), max(map(max, spans.values()))
        left, right = found["told"][0], found["good"][1]
        self.assertGreater(right - left, 400)  # the axis ends at its next mark
        for epoch, kind in ((1, "told"), (2, "bad"), (3, "good")):
            for at, x in ((min(spans[epoch]), found[kind][0]), (max(spans[epoch]), found[kind][1])):
                self.assertAlmostEqual(x, left + (right - left) * (at - begin) / (end - begin), delta=4)


if __name__ == "__main__":
    programs = Programs(sys.argv[1])
    programs.fault = programs.shim  # of tests that inject faults
    if programs.missing():
        print("skipped: not built:", *programs.missing())
        sys.exit(77)
    if sys.argv[2] == "browser":
        names = [os.environ.get("CAIRN_TEST_BROWSER"), "chromium", "chromium-browser", "google-chrome"]
        browser = next(filter(None, (shutil.which(name) for name in names if name)), None)
        if browser is None:
            print("skipped: no browser; CAIRN_TEST_BROWSER names one (Debian has it in `chromium`)")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], {"figures": "Figures", "browser": "Browser"}[sys.argv[2]]], warnings="ignore")
