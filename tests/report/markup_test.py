"""markup_test.py ANYDML: the report is well-formed and self-contained, and its contents are right."""

import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import make_report

ANYDML = sys.argv[1]


def name(element):
    return element.tag.rsplit("}", 1)[-1]


class MarkupTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.page = make_report.make_report(ANYDML, pathlib.Path(folder))
        # The page is parsed as XML, which finds every tag that is not closed.
        cls.root = xml.etree.ElementTree.fromstring(cls.page[cls.page.index("<html"):])

    def elements(self, tag, within=None):
        return [e for e in (self.root if within is None else within).iter() if name(e) == tag]

    def test_needs_nothing_else(self):
        self.assertEqual(make_report.external_references(self.page), [])
        self.assertEqual(self.elements("script") + self.elements("img") + self.elements("iframe"), [])

    def test_fits_phones_and_both_colour_schemes(self):
        metas = {e.get("name"): e.get("content") for e in self.elements("meta")}
        self.assertEqual(metas["viewport"], "width=device-width, initial-scale=1")
        self.assertIn("prefers-color-scheme: dark", self.page)

    def test_charts_have_texts(self):
        self.assertEqual(len(self.elements("figure")), make_report.FIGURES)
        panels = [e for figure in self.elements("figure") for e in figure.iter() if e.get("class") == "panel"]
        self.assertEqual(len(panels), sum(panels for panels, _, _ in make_report.EXPECTED))
        identifiers = [e.get("id") for e in self.root.iter() if e.get("id")]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        for svg in panels:
            self.assertEqual(svg.get("role"), "img")
            texts = {e.get("id"): "".join(e.itertext()) for e in svg.iter() if e.get("id")}
            for identifier in svg.get("aria-labelledby").split():
                self.assertTrue(texts[identifier].strip())
            axes = ["".join(e.itertext()) for e in svg.iter() if e.get("class") == "axis"]
            self.assertEqual(axes, ["N, a size of the first input", "time"])

    def test_every_k_in_one_panel(self):
        labels = ["".join(e.itertext()) for e in self.root.iter() if e.get("class") == "label"]
        for k in (*make_report.KS, 1, 10, 100):
            self.assertIn(f"K = {k}", labels)

    def test_says_how_it_was_measured(self):
        facts = dict(zip(("".join(e.itertext()) for e in self.elements("dt")),
                         ("".join(e.itertext()) for e in self.elements("dd"))))
        self.assertTrue(facts["Command"].startswith("anydml bench TOP_K1 'InputTensor=random:1x{64,640,6400}' Axis=1"))
        self.assertTrue(facts["Threads"])
        texts = ["".join(e.itertext()) for e in self.elements("p")]
        self.assertEqual(sum(make_report.MACHINE in text for text in texts), len(make_report.THREADS))
        self.assertEqual(sum("./dev bench --group topk" in text for text in texts), len(make_report.THREADS))
        rows = [["".join(cell.itertext()) for cell in self.elements("td", row)] for row in self.elements("tr")]
        ours = [row for row in rows if row and row[0] == "topk-1x1000-k10" and row[1] == "AnyDML"]
        self.assertEqual([row[3:5] + row[7:] for row in ours],
                         [["1.1 µs – 12 µs", "25", "cpu.scan"]] * len(make_report.THREADS))
        self.assertTrue(all(row[2].endswith(" t") for row in rows if row and row[1] == "torch"))

    def test_a_table_says_that_it_scrolls(self):
        hints = [e for e in self.elements("p") if e.get("class") == "hint"]
        self.assertEqual(len(hints), len(self.elements("table")))

    def test_tables_have_every_number(self):
        rows = [len(self.elements("tr", table)) - 1 for table in self.elements("table")]
        # The distances' points are the times; floors are a column.
        self.assertEqual(rows, [distances for _, _, distances in make_report.EXPECTED])

    def test_names_are_text(self):
        self.assertIn(make_report.HOSTILE, ["".join(cell.itertext()) for cell in self.elements("td")])


unittest.main(argv=sys.argv[:1])
