"""`cairn status --watch` on a terminal of 80 columns and 24 lines, beside a real run: watch_test.py BUILD"""
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fault"))
from step import Programs, Step, wait_for  # noqa: E402


class Watch(unittest.TestCase):
    def test_it_fits_the_terminal_and_follows_the_run(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        run = folder / ("a-directory-with-a-long-name-" * 3) / "run"
        run.parent.mkdir()
        with Step(programs, folder / "life", run, ["--n", 10007, "--steps", 10**9, "--step-us", 2000, "--save-every", 50], 3) as step:
            self.assertTrue(wait_for(lambda: (run / "journal.jsonl").exists() and '"saved"' in (run / "journal.jsonl").read_text()))
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            watch = subprocess.Popen([programs.cairn, "status", "--watch", run], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave)
            os.close(slave)
            try:
                text, deadline = "", time.monotonic() + 30
                while text.count("\033[J") < 2 and time.monotonic() < deadline and select.select([master], [], [], 30)[0]:
                    text += os.read(master, 65536).decode()
            finally:
                watch.kill()
                watch.wait()
                os.close(master)
        pages = [re.sub(r"\033\[[0-9;]*[A-Za-z]", "", page).replace("\r", "") for page in text.split("\033[J")[:2]]
        if "CAIRN_SHOW" in os.environ:
            print(pages[1])
        for page in pages:
            lines = page.split("\n")
            self.assertLessEqual(len(lines), 24)
            for line in lines:
                self.assertLessEqual(len(line), 80, line)
        told = [dict(re.findall(r"^(\S+(?: \S+)?) {2,}(.*)$", page, re.M)) for page in pages]
        self.assertEqual(told[0]["ranks"], "3")
        self.assertEqual(re.sub(r"\n {12}", "", pages[0]).count(str(run)), 1)  # whole, in several lines
        counts = [int(re.match(r"\d+", page["step"])[0]) for page in told]
        self.assertLess(counts[0], counts[1])


if __name__ == "__main__":
    programs = Programs(sys.argv[1])
    programs.fault = programs.shim  # of tests that inject faults
    if programs.missing():
        print("skipped: not built:", *programs.missing())
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], warnings="ignore")
