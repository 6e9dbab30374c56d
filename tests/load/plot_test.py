"""The chart of a load test's samples: well-formed, one line per panel, every point inside it."""

import pathlib
import tempfile
import unittest
import xml.etree.ElementTree as xml

import plot

CSV = """seconds,rounds,live_objects,open_files,heap_bytes,resident_bytes
0.5,100,9,12,1048576,8388608
1.0,300,9,12,1048576,9437184
2.0,500,9,12,2097152,9437184
"""


class PlotTest(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "samples.csv"
            path.write_text(CSV)
            self.samples = plot.read(path)
        self.chart = xml.fromstring(plot.draw(self.samples))

    def lines(self):
        for line in self.chart.findall("{*}polyline"):
            yield [tuple(map(float, point.split(","))) for point in line.get("points").split()]

    def test_every_panel_has_its_samples(self):
        lines = list(self.lines())
        self.assertEqual(len(lines), len(plot.PANELS))
        for number, points in enumerate(lines):
            top = plot.TOP + number * (plot.PANEL + plot.GAP)
            self.assertEqual(len(points), 3)
            for x, y in points:
                self.assertTrue(plot.LEFT < x <= plot.WIDTH - plot.RIGHT)
                self.assertTrue(top <= y <= top + plot.PANEL)

    def test_values(self):
        self.assertEqual(plot.series(self.samples, "heap_bytes", 1 << 20), [1, 1, 2])
        self.assertEqual(plot.series(self.samples, "rounds", None), [200, 400, 200])
        flat = list(self.lines())[2]
        self.assertEqual(len({y for _, y in flat}), 1)


if __name__ == "__main__":
    unittest.main()
