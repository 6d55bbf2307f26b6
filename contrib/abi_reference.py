#!/usr/bin/env python3
"""Prints docs/reference/cairn.h.md: the comments and declarations of the public header as a page.

    contrib/abi_reference.py [ROOT]
"""
import pathlib
import re
import sys

HEADER = "runtime/include/cairn/cairn.h"

# A comment that begins a line, and what is declared under it up to the next blank line outside braces.
COMMENT = re.compile(r"^/\*(.*?)\*/\n", re.MULTILINE | re.DOTALL)


def prose(comment):
    """A comment's text without its frame; code in it stays indented, which Markdown shows as code."""
    lines = [re.sub(r"^ \* ?", "", line).rstrip() for line in comment.splitlines()]
    return "\n".join(lines).strip()


def declaration(text):
    """What stands under a comment: all up to a blank line that is not inside braces."""
    depth, lines = 0, []
    for line in text.splitlines():
        if not line and depth == 0:
            break
        depth += line.count("{") - line.count("}")
        lines.append(line.replace("CAIRN_API ", ""))
    return "\n".join(lines)


def title(code):
    """The names that a declaration declares."""
    functions = re.findall(r"\b(cairn_\w+)\(", code)
    if functions:
        return ", ".join(f"`{name}`" for name in functions)
    type_name = re.search(r"^} (\w+);", code, re.MULTILINE)
    if type_name:
        return f"`{type_name[1]}`"
    constants = re.findall(r"\b(CAIRN_[A-Z]\w*)\b", code)
    return f"`{constants[0]}` …" if constants else None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    text = (root / HEADER).read_text()
    blocks = list(COMMENT.finditer(text))
    intro = re.sub(r"^cairn\.h: ", "", prose(blocks[0][1]))
    print("# cairn.h\n")
    print(f"For people who write programs. Made by `contrib/abi_reference.py` from [the header](../../{HEADER}), which is the manual.\n")
    print(intro[0].upper() + intro[1:])
    described = 0
    rest = text[blocks[0].end():].lstrip("\n")
    for part in re.split(r"\n\n(?=/\*|enum|typedef|CAIRN_API|#define CAIRN_MAX)", rest):
        match = COMMENT.match(part)
        code = declaration(part[match.end():] if match else part)
        name = title(code)
        if name is None or code.startswith("#ifndef") or "#if defined" in code:
            continue
        described += 1
        print(f"\n## {name}\n")
        if match:
            print(prose(match[1]) + "\n")
        print(f"```c\n{code}\n```")
    if described == 0:
        sys.exit(f"abi_reference: nothing is declared in {HEADER}")


if __name__ == "__main__":
    main()
