#!/usr/bin/env python3
"""links_test.py FOLDER: every link in a page (*.md) of the repository to a file or to a heading has a target."""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
FOLDERS = [".", "docs/**", "bench", "conformance", "examples/**", "fuzz", "src/**", "tests/**"]


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@functools.cache
def anchors(page):
    """The link name of a heading: lower case, dashes for spaces, no other signs."""
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def main():
    pages = [page for folder in FOLDERS for page in sorted(ROOT.glob(f"{folder}/*.md"))]
    count, broken = 0, []
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                broken.append(f"{page.relative_to(ROOT)}: {link} is not there")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                broken.append(f"{page.relative_to(ROOT)}: {link}: there is no such heading")
    print(*broken, f"{count} links, {len(broken)} broken", sep="\n")
    return 1 if broken or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
