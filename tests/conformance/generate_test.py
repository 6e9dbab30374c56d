"""generate_test.py GENERATOR PACK: the generator writes the same bytes everywhere, and detects changes."""
import filecmp
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

GENERATOR, PACK = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def generate(*arguments):
    return subprocess.run([sys.executable, "-B", GENERATOR / "generate.py", *arguments], capture_output=True, text=True)


def paths(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


class GenerateTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "pack"

    def test_what_differs_is_named_and_written_again(self):
        folder = self.folder
        shutil.copytree(PACK, folder)
        (folder / "gone").mkdir()
        (folder / "gone" / "expected.json").write_text('{"models": {}, "proves": "", "basis": ""}')
        expected = folder / "tile" / "expected.json"
        expected.write_text(expected.read_text().replace("TILE", "TLE"))
        (folder / "top_k1" / "k" / "more.json").write_text("{}")
        shutil.rmtree(folder / "split")
        done = generate("--check", folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("conformance/groups.sha256 lists: gone, split, tile, top_k1/k. If that is wanted, ./dev generate",
                      done.stderr)

        done = generate(folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(paths(folder), paths(PACK))
        files = [path for path in paths(PACK) if (PACK / path).is_file()]
        self.assertEqual(filecmp.cmpfiles(folder, PACK, files, shallow=False)[1:], ([], []))
        self.assertEqual(generate("--check", folder).returncode, 0)

    def test_folders_of_others_stay_as_they_are(self):
        self.folder.mkdir()
        (self.folder / "mine.json").write_text("{}")
        done = generate(self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("it must be empty, new, or a pack", done.stderr)
        self.assertEqual(paths(self.folder), [pathlib.Path("mine.json")])

    def test_wrong_arguments_are_answered_with_the_usage(self):
        for arguments in ((), ("--check",), ("--all", "x"), ("a", "b", "c")):
            with self.subTest(arguments=arguments):
                self.assertIn("generate.py FOLDER", generate(*arguments).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
