#!/usr/bin/env python3
"""The choices of choose_tidy.py in a small tree."""
import json
import os
import tempfile
import unittest

import choose_tidy


class ChooseTidyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        self.write("src/a.h", "")
        self.write("src/a.cc", '#include "src/a.h"\n')
        self.write("src/b.cc", '#include "b.h"\n')
        self.write("src/c.cc", "int c;\n")
        self.together = self.write("build/unity.cxx", "".join(f'#include "{self.root}/src/{name}.cc"\n' for name in "bc"))
        entries = [{"file": os.path.join(self.root, "src/a.cc")}, {"file": self.together}]
        self.write("build/compile_commands.json", json.dumps(entries))

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def choose(self, *changed):
        return choose_tidy.choose(self.root, os.path.join(self.root, "build"), changed)

    def test_a_source(self):
        self.assertEqual(self.choose("src/a.cc"), [os.path.join(self.root, "src/a.cc")])

    def test_what_includes_a_header(self):
        self.assertEqual(self.choose("src/a.h"), [os.path.join(self.root, "src/a.cc")])

    def test_what_is_compiled_with_others(self):
        self.assertEqual(self.choose("src/c.cc"), [self.together])
        self.assertEqual(self.choose("src/b.h"), [self.together])

    def test_nothing(self):
        self.assertEqual(self.choose("README.md", "src/other.h"), [])


if __name__ == "__main__":
    unittest.main()
