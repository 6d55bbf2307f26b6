#!/usr/bin/env python3
"""Checks that the parts of Cairn include each other only in the direction that the design allows.

    contrib/check_includes.py [ROOT]

Prints each include that breaks a rule as FILE:LINE: REASON and exits 1 if there is one.
"""
import pathlib
import re
import sys

PUBLIC_ABI = "runtime/include/cairn/"

# Which files of the repository a part may include. A rule that ends in "/" means everything below.
ALLOWED = {
    "planner": ["planner/"],
    "runtime": ["planner/", "runtime/", "hooks/preload/shim.h"],  # shim.h: the C table that both sides share
    "plugin": ["plugin/", "runtime/settings.def", "runtime/settings_value.h", "runtime/site.h"],
    "hooks": ["hooks/", PUBLIC_ABI],
    "contrib": ["contrib/", "planner/", "runtime/", "hooks/", "plugin/", "tests/"],
    "tests": ["contrib/", "planner/", "runtime/", "hooks/", "plugin/", "tests/"],
}

# The planner is pure: of the standard library, nothing that does I/O, runs threads or reads clocks.
IMPURE = {"atomic", "chrono", "condition_variable", "cstdio", "ctime", "filesystem", "fstream", "future", "iostream",
          "mutex", "shared_mutex", "thread"}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def target(root, source, name):
    """The file in the repository that an include names, relative to the root, or None for a file from elsewhere."""
    beside = source.parent / name
    if beside.exists():
        return beside.resolve().relative_to(root).as_posix()
    if name.startswith("cairn/"):
        return "runtime/include/" + name
    return name if name.split("/")[0] in ALLOWED else None


def fault(root, part, source, bracket, name):
    """Why this include is not allowed, or None."""
    included = target(root, source, name)
    if included is None:
        if part == "planner" and (bracket == '"' or "/" in name or name.endswith(".h")):
            return f"planner uses only the standard library, not {name}"
        if part == "planner" and name in IMPURE:
            return f"planner does no I/O, threads or clocks: not <{name}>"
        return None
    if any(included == rule or rule.endswith("/") and included.startswith(rule) for rule in ALLOWED[part]):
        return None
    return f"{part} may include only {', '.join(ALLOWED[part])}, not {included}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    faults = 0
    files = 0
    for part in ALLOWED:
        for source in sorted((root / part).rglob("*")):
            if source.suffix not in {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".def", ".in"}:
                continue
            files += 1
            for number, line in enumerate(source.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                reason = match and fault(root, part, source, *match.groups())
                if reason:
                    print(f"{source.relative_to(root)}:{number}: {reason}")
                    faults += 1
    if files == 0:
        print(f"check_includes: no sources below {root}", file=sys.stderr)
        return 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
