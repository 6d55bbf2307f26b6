#!/usr/bin/env python3
"""Checks that what the documentation names is there.

    contrib/check_docs.py [ROOT]

Prints each fault as FILE:LINE: REASON and exits 1 if there is one. Checked are: relative links and their anchors, options (--checkpoint…),
variables and constants (CAIRN_…), subcommands (`cairn …`), C samples, docs/reference/cairn.h.md, and that each function of cairn.h has a comment.
"""
import pathlib
import re
import subprocess
import sys

FENCE = re.compile(r"^ *```(.*)$")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
OPTION = re.compile(r"--checkpoint(?:-[a-z]+)*")
CONSTANT = re.compile(r"\b(?:SLURM_)?CAIRN_[A-Z0-9]+(?:_[A-Z0-9]+)*\b(?![_<…*])")
FUNCTION = re.compile(r"^CAIRN_API [^(;]*\b(cairn_\w+)\(", re.MULTILINE)
SUBCOMMAND = re.compile(r"`cairn ([a-z]+)")
SOURCES = ("contrib", "hooks", "planner", "plugin", "runtime", "tests")


def pages(root):
    return [p for p in [root / "README.md", root / "NEWS.md", *sorted((root / "docs").rglob("*.md"))] if p.exists()]


def anchors(page):
    """GitHub's names of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def known_constants(root):
    """Every CAIRN_… that the sources have; settings.def and what is made of it first of all."""
    known = set()
    for part in SOURCES:
        for path in (root / part).rglob("*"):
            if path.is_file() and path.name != "check_docs_test.py":
                known |= set(CONSTANT.findall(path.read_text(errors="ignore")))
    settings = set(re.findall(r'"(CAIRN_\w+)"', (root / "runtime/settings.def").read_text()))
    return known | {f"SLURM_{name}" for name in settings} | {f"CAIRN_PLUGIN_{name}" for name in settings}


def samples(root):
    """The programs that C samples may quote."""
    paths = [*sorted((root / "contrib/examples").rglob("*.c")), root / "runtime/include/cairn/cairn.h"]
    return [[line.strip().replace("CAIRN_API ", "") for line in path.read_text().splitlines()] for path in paths]


def quotes(block, program):
    """Whether the block's lines stand together in the program, but for indentation; a line `…` stands for any others."""
    runs = [[]]
    for line in block:
        if line.strip() == "…":
            runs.append([])
        else:
            runs[-1].append(line.strip())
    position = 0
    for run in runs:
        starts = range(position, len(program) - len(run) + 1)
        found = next((i for i in starts if program[i:i + len(run)] == run), None)
        if found is None:
            return False
        position = found + len(run)
    return True


def undocumented(header):
    """(line, name) of the header's functions above which no comment stands, or that stand in no paragraph with one."""
    text = header.read_text()
    for paragraph in re.finditer(r"\S(?:.|\n(?!\n))*", text):
        if not paragraph[0].startswith("/*"):
            for function in FUNCTION.finditer(paragraph[0]):
                yield text.count("\n", 0, paragraph.start() + function.start()) + 1, function[1]


def check(root):
    """(page or header, line, reason) of each fault."""
    options = {"--" + name for name in re.findall(r'^CAIRN_SETTING\(\w+, "([^"]+)"', (root / "runtime/settings.def").read_text(),
                                                  re.MULTILINE)}
    constants = known_constants(root)
    subcommands = set(re.findall(r"^## `cairn ([a-z]+)", (root / "docs/reference/cairn.md").read_text(), re.MULTILINE))
    programs = samples(root)
    for page in pages(root):
        language, block = None, []
        for number, line in enumerate(page.read_text().splitlines(), 1):
            fence = FENCE.match(line)
            if fence and language is None:
                language, block = fence[1].strip(), []
            elif fence:
                if language == "c" and not any(quotes(block, program) for program in programs):
                    yield page, number, "this C sample stands in no example and not in cairn.h"
                language = None
            elif language is not None:
                block.append(line)
            for name in OPTION.findall(line):
                if name not in options:
                    yield page, number, f"there is no option {name}"
            for name in CONSTANT.findall(line):
                if name not in constants:
                    yield page, number, f"there is no {name}"
            for name in SUBCOMMAND.findall(line):
                if name not in subcommands:
                    yield page, number, f"there is no `cairn {name}`"
            for link in LINK.findall(line) if language is None else []:
                if re.match(r"[a-z]+:", link):
                    continue
                target, _, anchor = link.partition("#")
                there = (page.parent / target).resolve() if target else page
                if not there.exists():
                    yield page, number, f"{link} is not there"
                elif anchor and anchor not in anchors(there):
                    yield page, number, f"{link}: no such heading"
    header = root / "runtime/include/cairn/cairn.h"
    for number, name in undocumented(header):
        yield header, number, f"{name} has no comment"
    made = subprocess.run([sys.executable, root / "contrib/abi_reference.py", root], capture_output=True, text=True, check=True).stdout
    if (root / "docs/reference/cairn.h.md").read_text() != made:
        yield root / "docs/reference/cairn.h.md", 1, "out of date: contrib/abi_reference.py > docs/reference/cairn.h.md"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    if not (root / "README.md").exists():
        sys.exit(f"check_docs: {root} has no README.md")
    faults = list(check(root))
    for page, number, reason in faults:
        print(f"{page.relative_to(root)}:{number}: {reason}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
