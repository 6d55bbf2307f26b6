#!/usr/bin/env python3
"""Makes the manual pages that others are the source of.

    contrib/man_pages.py CAIRN OUT [ROOT]

Into OUT: cairn-ls.1 and its like, of what the command CAIRN says with --help; cairn.h.3, cairn-plugstack.5 and cairn-formats.5, of the pages of docs/.
"""
import pathlib
import re
import subprocess
import sys

PAGES = {
    "cairn.h.3": ("docs/reference/cairn.h.md", "the C interface of Cairn"),
    "cairn-plugstack.5": ("docs/reference/plugstack.md", "the arguments of Cairn's line in plugstack.conf"),
    "cairn-formats.5": ("docs/design/formats.md", "every byte in a run's directory"),
}


def escape(text):
    """Plain text as roff has it."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\`").replace("^", "\\(ha").replace("~", "\\(ti")
    text = re.sub(r"[^\0-\x7f]", lambda c: f"\\[u{ord(c[0]):04X}]", text)
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def inline(text):
    """One paragraph of Markdown."""
    parts = []
    for i, part in enumerate(re.split(r"`([^`]+)`", text)):
        if i % 2:
            parts.append(f"\\fB{escape(part)}\\fR")
            continue
        part = re.sub(r"\[([^\]]*)\]\([^)\s]+\)", r"\1", part)
        pieces = re.split(r"\*\*([^*]+)\*\*|(?<!\*)\*([^*\s][^*]*)\*(?!\*)", part)
        for plain, bold, italic in zip(pieces[::3], pieces[1::3] + [None], pieces[2::3] + [None]):
            parts.append(escape(plain))
            if bold or italic:
                parts.append(f"\\f{'B' if bold else 'I'}{escape(bold or italic)}\\fR")
    return re.sub(r"^([.'])", r"\\&\1", "".join(parts))


def header(name, section, what):
    return [f'.TH "{name.upper()}" {section} "" "Cairn" "Cairn"', ".SH NAME", f"{escape(name)} \\- {escape(what)}"]


def verbatim(lines):
    return [".PP", ".nf", ".RS 4", *(escape(line) or "\\&" for line in lines), ".RE", ".fi"]


def of_markdown(text):
    """A page without its title: headings, paragraphs, lists, code and tables, whose rows become entries of the first column."""
    out, paragraph, code, columns = [], [], None, None

    def flush():
        if paragraph:
            out.extend([".PP", inline(" ".join(paragraph))])
            paragraph.clear()

    for line in text.splitlines()[1:]:
        heading, item = re.match(r"(#+) (.*)", line), re.match(r"\s*(?:[-*]|\d+\.) (.*)", line)
        if line.startswith("```"):
            flush()
            if code is not None:
                out.extend(verbatim(code))
            code = None if code is not None else []
        elif code is not None:
            code.append(line)
        elif line.startswith("    ") and not paragraph:
            if out and out[-1] == ".fi":
                out[-2:] = [escape(line[4:]), ".RE", ".fi"]
            else:
                out.extend(verbatim([line[4:]]))
        elif line.startswith("|"):
            flush()
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if columns is None:
                columns = cells
            elif not set(line) <= set("|-: "):
                out.extend([".TP", inline(cells[0]) or "\\&"])
                rest = [f"{inline(name)}: {inline(cell)}" if len(cells) > 2 and name else inline(cell) for name, cell in zip(columns[1:], cells[1:]) if cell]
                out.append("; ".join(rest) or "\\&")
        elif heading:
            flush()
            out.extend([f".{'SH' if len(heading[1]) == 2 else 'SS'} {inline(heading[2])}"])
        elif item:
            flush()
            out.append(".IP \\(bu 2")
            out.append(inline(item[1]))
        elif line.strip():
            if out and not paragraph and out[-2:-1] == [".IP \\(bu 2"] and line.startswith("  "):
                out[-1] += " " + inline(line.strip())
            else:
                paragraph.append(line.strip())
        else:
            flush()
        if not line.startswith("|"):
            columns = None
    flush()
    return out


def of_help(name, text):
    """What `cairn NAME --help` says. An entry of a list is indented by two; its text follows on its line, or on the next ones."""
    description, _, rest = text.partition("Usage: ")
    usage, _, lists = rest.partition("\n")
    lines = [line.strip() for line in description.strip().splitlines()]
    first = re.split(r"[.,:](?:\s|$)", " ".join(lines))[0]
    out = header(f"cairn-{name}", 1, first[0].lower() + first[1:])
    out += [".SH SYNOPSIS", f".B {escape(usage)}", ".SH DESCRIPTION", *(escape(line) + "\n.br" if raw.startswith("  ") else escape(line)
                                                                          for line, raw in zip(lines, description.strip().splitlines()))]
    example = False
    for line in lists.splitlines():
        if re.match(r"\w+:$", line):
            example = line == "Example:"
            out.append(f".SH {line[:-1].upper()}")
        elif example and line.strip():
            out.extend(verbatim([line.strip()]))
        elif re.match(r"  \S", line):
            entry, *said = re.split(r" {2,}", line.strip(), maxsplit=1)
            out.extend([".TP", f"\\fB{escape(entry)}\\fR", *map(escape, said)])
        elif line.strip():
            out.append(escape(line.strip()))
    return out + [".SH EXIT STATUS", "0 good; 1 something bad was found, or the request was refused or failed; 2 wrong usage.", ".SH SEE ALSO",
                  ".BR cairn (1),", ".BR cairn (7)"]


def main():
    command, out = sys.argv[1], pathlib.Path(sys.argv[2])
    root = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else pathlib.Path(__file__).resolve().parents[1]
    out.mkdir(parents=True, exist_ok=True)

    def said(*arguments):
        return subprocess.run([command, *arguments, "--help"], check=True, capture_output=True, text=True).stdout

    pages = {}
    for name in re.findall(r"^  ([a-z]+) ", said().partition("Subcommands:")[2], re.MULTILINE):
        pages[f"cairn-{name}.1"] = of_help(name, said(name))
    for page, (source, what) in PAGES.items():
        name, _, section = page.rpartition(".")
        pages[page] = header(name, section, what) + [".SH DESCRIPTION", *of_markdown((root / source).read_text()), ".SH SEE ALSO", ".BR cairn (7)"]
    for page, lines in pages.items():
        text = '.\\" Made by contrib/man_pages.py.\n' + "\n".join(lines) + "\n"
        text = re.sub(r"(?m)^(\.S[HS] .*\n)\.PP\n", r"\1", text)  # a heading begins a paragraph
        (out / page).write_text(re.sub(r"(?m)^\.br\n(?=\.S[HS])", "", text))


if __name__ == "__main__":
    main()
