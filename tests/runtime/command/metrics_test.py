"""`cairn metrics` of a run with three lives, and contrib/grafana/cairn.json: metrics_test.py BUILD SOURCE"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fault"))
from step import Programs, Step, wait_for  # noqa: E402

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None  # the grammar below is what is left

DIR = "/scratch/me/a\"b\\c"  # as a label, where both are escaped
JOURNAL = [
    ("life", 1, {"job": "12", "step": "0", "restart": 0, "node": "n1", "world_size": 4}),
    ("restore", 1, {"checkpoint": "", "step": 0, "world_size": 4, "saved_world_size": 0, "read_bytes": 0, "near_bytes": 0, "restore_ns": 0}),
    ("asked", 1, {"trigger": "interval", "count": 98}),
    ("staged", 1, {"step": 100, "wait_ns": 500_000_000}),
    ("saved", 1, {"checkpoint": "step-000000000100.e1.00c0ffee", "step": 100, "label": 100, "trigger": "interval", "bytes": 4000,
                  "stall_ns": 20_000_000, "drain_ns": 1, "durable_ns": 2_000_000_000}),
    ("dropped", 1, {"trigger": "request", "step": 0, "why": "no room"}),
    ("ending", 1, {"cause": "preempted", "why": "", "count": 140}),
    ("life", 2, {"job": "12", "step": "0", "restart": 1, "node": "n2", "world_size": 2}),
    ("restore", 2, {"checkpoint": "step-000000000100.e1.00c0ffee", "step": 100, "world_size": 2, "saved_world_size": 4, "read_bytes": 5000,
                    "near_bytes": 1000, "restore_ns": 1_500_000_000}),
    ("asked", 2, {"trigger": "end", "count": 200}),
    ("staged", 2, {"step": 200, "wait_ns": 250_000_000}),
    ("saved", 2, {"checkpoint": "step-000000000200.e2.00c0ffee", "step": 200, "label": 200, "trigger": "end", "bytes": 6000,
                  "stall_ns": 30_000_000, "drain_ns": 1, "durable_ns": 1_000_000_000}),
    ("finished", 2, {"checkpoint": "step-000000000200.e2.00c0ffee"}),
    ("end", 2, {"count": 200}),
]
# Worked out by hand from the above.
EXPECTED = {
    ("cairn_lives_total", "preempted"): 1, ("cairn_lives_total", "finished"): 1, ("cairn_ranks",): 2, ("cairn_step",): 200,
    ("cairn_steps_lost_total",): 40, ("cairn_saves_total", "durable", "interval"): 1, ("cairn_saves_total", "durable", "end"): 1,
    ("cairn_saves_total", "given_up", "request"): 1, ("cairn_save_stall_seconds_sum",): 0.05, ("cairn_save_stall_seconds_count",): 2,
    ("cairn_save_staged_seconds_sum",): 0.75, ("cairn_save_staged_seconds_count",): 2, ("cairn_save_durable_seconds_sum",): 3,
    ("cairn_save_durable_seconds_count",): 2, ("cairn_saved_bytes_total",): 10000, ("cairn_checkpoint_bytes",): 6000,
    ("cairn_checkpoint_step",): 200, ("cairn_checkpoint_timestamp_seconds",): 1772366411.5, ("cairn_restore_seconds_sum",): 1.5,
    ("cairn_restore_seconds_count",): 1, ("cairn_restore_read_bytes_total", "directory"): 4000, ("cairn_restore_read_bytes_total", "memory"): 1000,
    ("cairn_last_event_timestamp_seconds",): 1772366413.5, ("cairn_finished",): 0}


def samples(text):
    """By name and labels' values but the directory's; an independent reading of the text format."""
    found, typed = {}, {}
    for line in text.splitlines():
        if match := re.fullmatch(r"# HELP ([a-z_]+) (\S.*)", line):
            assert match[1] not in typed, "a family twice: " + line
            typed[match[1]] = None
        elif match := re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge|summary)", line):
            assert typed[match[1]] is None
            typed[match[1]] = match[2]
        else:
            match = re.fullmatch(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\S+)', line)
            assert match, line
            family = re.sub("_(sum|count)$", "", match[1]) if match[1] not in typed else match[1]
            assert list(typed)[-1] == family, "out of its family: " + line
            assert (typed[family] == "counter") == family.endswith("_total"), line
            labels = re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', match[2])
            key = (match[1], *(value for name, value in labels if name != "dir"))
            assert key not in found, line
            found[key] = float(match[3])
    return found


def metrics(*arguments):
    return subprocess.run([programs.cairn, "metrics", *map(str, arguments)], check=True, text=True, stdout=subprocess.PIPE).stdout


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.told = cls.folder / pathlib.Path(DIR).name
        with Step(programs, cls.folder / "life", cls.folder / "made", ["--n", 100, "--steps", 3], 1) as step:
            assert step.join()
        cls.made = cls.folder / "made"
        shutil.copytree(cls.made, cls.told)
        for name in cls.told.glob("FINISHED*"):
            name.unlink()
        with open(cls.told / "journal.jsonl", "w") as journal:
            for second, (event, epoch, fields) in enumerate(JOURNAL):
                journal.write(json.dumps({"event": event, "time": f"2026-03-01T12:00:{second:02}.500Z", "epoch": epoch} | fields) + "\n")

    def test_the_values_are_those_of_the_journal(self):
        self.assertEqual(samples(metrics(self.told)), {key: float(value) for key, value in EXPECTED.items()})
        self.assertEqual(samples(metrics(self.made))["cairn_finished",], 1)

    def test_a_parser_of_prometheus_reads_them(self):
        if text_string_to_metric_families is None:
            self.skipTest("no prometheus_client; CAIRN_TEST_PYTHON names a Python that has it")
        families = list(text_string_to_metric_families(metrics(self.told, self.made)))
        read = {}
        for family in families:
            self.assertTrue(family.documentation)
            self.assertIn(family.type, ("counter", "gauge", "summary"))
            for sample in family.samples:
                labels = dict(sample.labels)
                if labels.pop("dir") == str(self.told):
                    read[(sample.name, *labels.values())] = sample.value
        self.assertEqual(read, {key: float(value) for key, value in EXPECTED.items()})

    def test_two_runs_share_the_families(self):
        text = metrics(self.told, self.made)
        self.assertEqual(len(re.findall("^# TYPE cairn_step gauge$", text, re.M)), 1)
        self.assertEqual(len(re.findall("^cairn_step{", text, re.M)), 2)

    def test_the_file_is_replaced_again_and_again(self):
        folder = self.folder / "textfile"
        folder.mkdir()
        file = folder / "run.prom"
        writer = subprocess.Popen([programs.cairn, "metrics", self.made, "-o", file, "--every", "20ms"])
        try:
            self.assertTrue(wait_for(lambda: file.exists() and samples(file.read_text())["cairn_step",] == 3))
            with open(self.made / "journal.jsonl", "a") as journal:
                journal.write(json.dumps({"event": "progress", "time": "2099-01-01T00:00:00.000Z", "epoch": 1, "count": 77}) + "\n")
            self.assertTrue(wait_for(lambda: samples(file.read_text())["cairn_step",] == 77))
        finally:
            writer.kill()
            writer.wait()
        self.assertEqual([name for name in os.listdir(folder) if name.endswith(".prom")], ["run.prom"])

    def test_prometheus_can_ask_for_them(self):
        server = subprocess.Popen([programs.cairn, "metrics", self.told, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        try:
            address = re.fullmatch(r"serving /metrics at (127\.0\.0\.1:\d+)\n", server.stdout.readline())[1]
            host, port = address.split(":")
            for nonsense in (b"", b"\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n"):
                with socket.create_connection((host, int(port))) as client:
                    client.sendall(nonsense)
            with urllib.request.urlopen(f"http://{address}/metrics") as answer:
                self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
                self.assertEqual(samples(answer.read().decode())["cairn_step",], 200)
            with self.assertRaises(urllib.error.HTTPError) as other:
                urllib.request.urlopen(f"http://{address}/")
            self.assertEqual(other.exception.code, 404)
            other.exception.close()
        finally:
            server.kill()
            server.wait()
            server.stdout.close()

    def test_the_dashboard_asks_for_metrics_that_there_are(self):
        dashboard = (source / "contrib/grafana/cairn.json").read_text()
        asked = set(re.findall(r"\bcairn_[a-z_]+", dashboard))
        there = {name for name, *_ in samples(metrics(self.told))}
        self.assertEqual(asked - there, set())
        self.assertGreater(len(asked), 10)
        ids = [panel["id"] for panel in json.loads(dashboard)["panels"]]
        self.assertEqual(len(set(ids)), len(ids))

    def test_the_page_lists_them_all(self):
        page = (source / "docs/monitoring.md").read_text()
        there = {re.sub("_(sum|count)$", "", name) for name, *_ in samples(metrics(self.told))}
        self.assertEqual(set(re.findall(r"^\| `(cairn_[a-z_]+)", page, re.M)), there)


if __name__ == "__main__":
    programs, source = Programs(sys.argv[1]), pathlib.Path(sys.argv[2])
    programs.fault = programs.shim  # of tests that inject faults
    if programs.missing():
        print("skipped: not built:", *programs.missing())
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], warnings="ignore")
