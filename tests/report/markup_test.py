"""markup_test.py ANYDML: the report is well-formed, needs nothing else, and says what it shows."""

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
        # Written so that a strict parser takes it, which finds every tag that is not closed.
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
        charts = [e for e in self.elements("figure")]
        self.assertEqual(len(charts), sum(charts for charts, _, _ in make_report.EXPECTED))
        identifiers = [e.get("id") for e in self.root.iter() if e.get("id")]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        for chart in charts:
            svg = next(e for e in chart if name(e) == "svg")
            self.assertEqual(svg.get("role"), "img")
            texts = {e.get("id"): "".join(e.itertext()) for e in svg.iter() if e.get("id")}
            for identifier in svg.get("aria-labelledby").split():
                self.assertTrue(texts[identifier].strip())

    def test_tables_have_every_number(self):
        rows = [len(self.elements("tr", table)) - 1 for table in self.elements("table")]
        # The distances' points are the times; floors are a column.
        self.assertEqual(rows, [distances for _, _, distances in make_report.EXPECTED])

    def test_names_are_text(self):
        self.assertIn(make_report.HOSTILE, ["".join(cell.itertext()) for cell in self.elements("td")])


unittest.main(argv=sys.argv[:1])
