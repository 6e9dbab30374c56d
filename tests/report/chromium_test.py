"""chromium_test.py ANYDML: the report in headless Chromium, on a phone and on a desk.

Exit code 77 and a sentence where there is no Chromium.
"""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import make_report

ANYDML = sys.argv[1]
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# A picture of the report in a frame of a given width, and its layout there. The report itself allows no
# scripts; the page around it may look into the frame.
WRAPPER = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe id="frame" style="border:0;width:%(width)dpx;height:900px" srcdoc="%(page)s"></iframe>
<script>
frame.onload = () => {
  const inside = frame.contentDocument, width = frame.clientWidth;
  const visible = e => { const r = e.getBoundingClientRect(); return r.width + r.height > 0; };  // a dash has no height
  const count = (e, selector) => [...e.querySelectorAll(selector)].filter(visible).length;
  // Tables may be wider: they scroll inside their box. Opened, so that they are measured.
  inside.querySelectorAll("details").forEach(d => { d.open = true; });
  const beyond = [...inside.body.querySelectorAll("*")]
      .filter(e => !e.closest(".scroll") && visible(e) && e.getBoundingClientRect().right > width + 0.5)
      .map(e => e.outerHTML.slice(0, 80));
  // Texts of a chart that the chart's edge cuts off.
  const cut = [...inside.querySelectorAll(".panel text")].filter(t => {
    const a = t.getBoundingClientRect(), b = t.closest("svg").getBoundingClientRect();
    return a.left < b.left - 0.5 || a.right > b.right + 0.5 || a.bottom > b.bottom + 0.5;
  }).map(t => t.textContent);
  // Names of lines that lie over each other or over a line.
  const crossed = [...inside.querySelectorAll(".panel .label")].filter(t => {
    const a = t.getBoundingClientRect();
    return [...t.closest("svg").querySelectorAll(".label, .point, polyline")].some(other => {
      const b = other.getBoundingClientRect();
      return other !== t && a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
    });
  }).map(t => t.textContent);
  const textSize = Math.min(...[...inside.querySelectorAll(".panel text")].map(t => {
    const svg = t.closest("svg");
    return parseFloat(frame.contentWindow.getComputedStyle(t).fontSize) * svg.getBoundingClientRect().width /
        svg.viewBox.baseVal.width;
  }));
  const result = {
    title: inside.title, width, scrollWidth: inside.documentElement.scrollWidth, beyond, cut, crossed, textSize,
    scrollers: [...inside.querySelectorAll(".scroll")].map(e => frame.contentWindow.getComputedStyle(e).overflowX),
    background: frame.contentWindow.getComputedStyle(inside.body).backgroundColor,
    columns: new Set([...inside.querySelectorAll(".panels")[0].children].map(
        e => Math.round(e.getBoundingClientRect().left))).size,
    hints: [...inside.querySelectorAll(".hint")].filter(visible).length,
    sections: [...inside.querySelectorAll("section")].map(s => [
        count(s, ".panel"), count(s, ".chart .point"), count(s, ".distances .point")]),
  };
  const out = document.createElement("pre");
  out.id = "result";
  out.textContent = JSON.stringify(result);
  document.body.replaceChildren(out);
};
</script>
"""


def run_browser(browser, folder, *arguments):
    command = [browser, "--headless", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
               "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}/profile",
               *arguments]
    if os.geteuid() == 0:
        command.insert(1, "--no-sandbox")  # Chromium requests this one
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


class ChromiumTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.page = make_report.make_report(ANYDML, cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def measure(self, width, *arguments, page=None):
        wrapper = self.folder / "wrapper.html"
        wrapper.write_text(WRAPPER % {"width": width, "page": html.escape(page or self.page)}, encoding="utf-8")
        done = run_browser(BROWSER, self.folder, f"--window-size={max(width, 600)},1000", "--virtual-time-budget=10000",
                           *arguments, "--dump-dom", wrapper.as_uri())
        found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
        self.assertTrue(found, done.stdout[-2000:] + done.stderr[-2000:])
        self.assertNotIn("CONSOLE", done.stderr)
        return json.loads(html.unescape(found.group(1)))

    def check(self, result):
        self.assertEqual(result["title"], "AnyDML benchmark")
        self.assertEqual(result["sections"], [list(counts) for counts in make_report.EXPECTED])
        self.assertEqual(result["scrollWidth"], result["width"])
        self.assertEqual(result["beyond"], [])
        self.assertEqual(result["cut"], [])
        self.assertEqual(result["crossed"], [])
        self.assertEqual(set(result["scrollers"]), {"auto"})
        self.assertGreaterEqual(result["textSize"], 10)

    def test_phone(self):
        result = self.measure(360)
        self.check(result)
        self.assertEqual(result["columns"], 1)
        self.assertEqual(result["hints"], len(make_report.EXPECTED))

    def test_desk(self):
        result = self.measure(1280)
        self.check(result)
        self.assertGreaterEqual(result["columns"], 2)

    def test_dark(self):
        light, dark = (self.measure(1280, f"--blink-settings=preferredColorScheme={scheme}") for scheme in (1, 0))
        brightness = [sum(map(int, re.findall(r"\d+", result["background"])[:3])) for result in (light, dark)]
        self.assertGreater(brightness[0], 600)
        self.assertLess(brightness[1], 200)

    def test_sees_what_is_too_wide(self):
        wide = self.page.replace("<main>", '<main><div style="width:400px">wide</div>')
        result = self.measure(360, page=wide)
        self.assertGreater(result["scrollWidth"], 360)
        self.assertNotEqual(result["beyond"], [])

    def test_screenshot(self):
        page = (self.folder / "report.html").as_uri()
        done = run_browser(BROWSER, self.folder, "--window-size=1280,1000", "--screenshot=shot.png", page)
        picture = (self.folder / "shot.png").read_bytes()
        self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(len(picture), 20000)  # an empty page has a few kilobytes
        self.assertNotIn("CONSOLE", done.stderr)


BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
if BROWSER is None:
    print("skipped: there is no Chromium on this machine (Debian: apt-get install chromium-headless-shell)")
    sys.exit(77)
unittest.main(argv=sys.argv[:1])
