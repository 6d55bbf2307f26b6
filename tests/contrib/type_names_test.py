"""No two headers or sources define types of one name in one namespace: at link time one of them would stand for both, silently."""
import collections
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMESPACE = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*\{")
TYPE = re.compile(r"(?:struct|class|enum class|union)\s+(\w+)(?:\s+final)?\s*(?::(?!:)[^;]*)?\{")


def types(path):
    """(name, line) of the types at the outermost level of the file's named namespaces."""
    namespaces = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if namespace := NAMESPACE.match(line):
            namespaces.append(namespace[1])
        elif line.startswith("}  // namespace"):
            namespaces.pop()
        elif (found := TYPE.match(line)) and "" not in namespaces:
            yield "::".join([*namespaces, found[1]]), number


class TypeNamesTest(unittest.TestCase):
    def test_each_names_one_type(self):
        places = collections.defaultdict(list)
        for folder in ("planner", "runtime", "hooks"):
            for path in sorted((ROOT / folder).rglob("*")):
                if path.suffix in (".h", ".cc"):
                    for name, line in types(path):
                        places[name].append(f"{path.relative_to(ROOT)}:{line}")
        self.assertGreater(len(places), 200)
        self.assertEqual({name: found for name, found in places.items() if len(found) > 1}, {})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
