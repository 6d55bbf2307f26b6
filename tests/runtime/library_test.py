"""libcairn.so is a guest in other people's programs: it shows nothing but cairn.h, needs no shared C++ library, and no newer glibc than is promised.

usage: library_test.py libcairn.so cairn.h
"""

import platform
import re
import subprocess
import sys

NEEDED = {"libuv.so.1", "libsodium.so.23", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"}

GLIBC = (2, 36)  # docs/containers.md; who builds with a newer one may get symbols of that


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(library, header):
    with open(header, encoding="utf-8") as text:
        declared = set(re.findall(r"CAIRN_API [^;]*?\b(cairn_\w+)\(", text.read()))
    defined = {
        fields[2].split("@")[0]
        for fields in (line.split() for line in run("nm", "-D", "--defined-only", library).splitlines())
        if fields[1] != "A"
    }
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", library)))
    faults = []
    if defined != declared:
        faults.append(f"shown but not in cairn.h: {defined - declared}; in cairn.h but not shown: {declared - defined}")
    if needed - NEEDED:
        faults.append(f"needs {needed - NEEDED}")
    versions = sorted({tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", run("readelf", "-V", library))})
    bound = max(GLIBC, tuple(map(int, platform.libc_ver()[1].split("."))))
    if versions[-1] > bound:
        faults.append(f"needs a newer glibc than {'.'.join(map(str, bound))}")
    print("needs glibc", ".".join(map(str, versions[-1])), "and", ", ".join(sorted(needed)))
    for fault in faults:
        print(f"{library}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
