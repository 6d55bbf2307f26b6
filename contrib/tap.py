#!/usr/bin/env python3
"""tap.py ctest|unittest|bats FILE: what a run of tests gave, in one form for all: on stdout, a line for each test

    ok NAME
    ok NAME # skip
    not ok NAME

and below those that failed the last lines that they printed, indented. FILE is ctest's JUnit file, or the output of a verbose unittest, or of bats.
"""
import re
import sys
import xml.etree.ElementTree


def ctest(path):
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        if case.get("status") == "run":
            yield "ok", case.get("name"), ""
        elif case.get("status") == "disabled" or (skipped is not None and skipped.get("message", "").startswith("SKIP_")):
            yield "skip", case.get("name"), ""
        else:  # failed, or there was nothing to run
            yield "not ok", case.get("name"), case.findtext("system-out") or case.get("status")


def unittest(path):
    """Programs print between a test's name and its verdict, so verdicts are taken from the summary, which names those that failed."""
    text = open(path, errors="replace").read()
    body, *summary = re.split(r"^={70}\n", text, flags=re.M)
    failed = {}
    for said in summary:
        test, case = re.match(r"\w+: (\w+) \(__main__\.(\w+)", said).groups()
        failed[f"{case}.{test}"] = failed.get(f"{case}.{test}", "") + said
    ran = re.split(r"^(test\w+) \(__main__\.(\w+)", body, flags=re.M)[1:]
    for test, case, said in zip(ran[::3], ran[1::3], ran[2::3]):
        name = f"{case}.{test}"
        if name not in failed:
            yield "skip" if re.search(r"\.\.\. skipped ", said) else "ok", name, ""
    for name, said in failed.items():
        yield "not ok", name, said


def bats(path):
    """It numbers the tests and adds how long they took or that they took too long; what they said begins with #."""
    verdict = name = None
    said = []
    for line in open(path, errors="replace"):
        found = re.match(r"(not ok|ok) \d+ (.*?)(?: in \d+ms)?( # skip.*| # timeout.*)?$", line)
        if found:
            if name:
                yield verdict, name, "".join(said)
            verdict, name, remark = found.groups()
            if remark and "skip" in remark:
                verdict = "skip"
            said = []
        else:
            said.append(line)
    if name:
        yield verdict, name, "".join(said)


for verdict, name, said in {"ctest": ctest, "unittest": unittest, "bats": bats}[sys.argv[1]](sys.argv[2]):
    print("ok" if verdict == "skip" else verdict, name + (" # skip" if verdict == "skip" else ""))
    if verdict == "not ok":
        for line in said.splitlines()[-100:]:
            print("   ", line)
