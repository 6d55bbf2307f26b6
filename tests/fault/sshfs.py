"""Sshfs: a folder of this machine seen through two mounts, each with a cache of its own for names and attributes, as two nodes see a file
server. It stands in for NFS, which cannot be mounted in a container. sshfs talks to the SFTP server by a pipe: no sshd, no keys."""
import os
import pathlib
import shutil
import subprocess

from step import wait_for

SERVER = "/usr/lib/openssh/sftp-server"
CACHE_SECONDS = 20


def missing():
    """Why it cannot be had here; "" when it can."""
    if not shutil.which("sshfs") or not os.path.exists(SERVER):
        return "sshfs and openssh-sftp-server are not installed (contrib/install-deps)"
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse"
    return ""


class Mount:
    """`folder` seen through one more client; unmounted at the end of `with`."""

    def __init__(self, folder, at):
        self.at = pathlib.Path(at)
        self.at.mkdir(parents=True)
        server = self.at.with_suffix(".server")
        server.write_text(f"#!/bin/sh\nexec {SERVER}\n")
        server.chmod(0o755)
        self.log = open(self.at.with_suffix(".log"), "w")
        cache = [f"{name}={CACHE_SECONDS}" for name in ("dcache_timeout", "entry_timeout", "attr_timeout", "negative_timeout")]
        self.process = subprocess.Popen(
            ["sshfs", "-f", "-o", ",".join([f"ssh_command={server}", "dir_cache=yes", *cache]), f"server:{folder}", str(self.at)],
            stdout=self.log, stderr=self.log)
        if not wait_for(lambda: os.path.ismount(self.at) or self.process.poll() is not None) or self.process.poll() is not None:
            self.process.kill()
            raise RuntimeError("sshfs does not mount: " + self.at.with_suffix(".log").read_text())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["fusermount3", "-u", "-z", self.at], check=False)
        self.process.terminate()
        self.process.wait()
        self.log.close()
