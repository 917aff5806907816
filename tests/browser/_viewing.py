"""Pages of the viewer, opened in Chromium, and what tests ask of them again and again."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from isolux.viewer import DisplayedRun, build_page_contents, build_standalone_page
from tests.report import _runs as runs
from tests.viewer._node import viewer_folder
from tests.viewer._runs import audited, crowd, many_groups

DIGITS = (0.1225, 0.1235, 0.125, 0.0005, 0.00004, 1.0, 0.9995, 0.29, 0.5, 2e-9, 0.0625, 0.3075)
"""Values that are hard to round: ties (12.25 is one in binary too), tiny shares, the ends."""


def digits_run():
    """Make a run whose groups have those values."""
    tables = runs.Tables()
    runs.add_everyone(tables, runs.line("accuracy"), 2000, 0.5)
    rates = {(f"group {i}",): (400, value) for i, value in enumerate(DIGITS)}
    runs.add_attribute(tables, runs.line("accuracy"), "race", rates, everyone=0.5)
    return runs.run_of(tables)


def printed_run():
    """Make a run that followed a paper's protocol, with a table of the paper."""
    tables = {"Table 1: <b>recall</b>": {
        "columns": ["group", "recall", "n"], "rows": [["A", 75.9421, 12], ["B", None, 3]],
    }}  # fmt: skip
    said = {
        "name": "paper:main", "title": "A paper", "tables": tables,
            "absent": {"Table 2": "no one was found"}, "disagreements": ["It says two things."],
    }  # fmt: skip
    return replace(audited(), record={**audited().record, "protocol": said})


MAKERS = {
    "printed": lambda: [DisplayedRun(printed_run(), "a")],
    "digits": lambda: [DisplayedRun(digits_run(), "a")],
    "audit": lambda: [DisplayedRun(audited(), "a")],
    "people": lambda: [DisplayedRun(audited(), "a")],
    "crowd": lambda: [DisplayedRun(crowd(), "a")],
    "two": lambda: [DisplayedRun(audited(0), "may"), DisplayedRun(audited(1), "june")],
    "thousand": lambda: [DisplayedRun(many_groups(), "a")],
    "hostile": lambda: [DisplayedRun(runs.hostile_run(), "a")],
    "full": lambda: [
        DisplayedRun(runs.full_run(warnings=["Half of the people are missing."]), "a")
    ],
    "comparison": lambda: [DisplayedRun(runs.comparison_run(), "a")],
}


def written(folder, name):
    """Write a page of one kind."""
    people = name in ("people", "crowd", "printed")
    figures = name in ("full", "comparison", "hostile")
    held = build_page_contents(MAKERS[name](), people=people, figures=figures)
    path = folder / f"{name}.html"
    path.write_text(build_standalone_page(held), encoding="utf-8")
    return path


def hashed(**state: str) -> str:
    """Make the address that shows this state."""
    return "#" + urlencode(state) if state else ""


def violations(page, *rules: str) -> list[str]:
    """Ask axe-core what is wrong with a page for people who see, hear or move otherwise."""
    if not page.evaluate("'axe' in window"):
        axe = viewer_folder() / "node_modules" / "axe-core" / "axe.min.js"
        page.evaluate(axe.read_text(encoding="utf-8"))
    return page.evaluate(
        """async rules => {
          const only = rules.length ? {runOnly: rules} : {};
          const found = await axe.run(document, {resultTypes: ['violations'], ...only});
          return found.violations.map(v => v.id + ': '
            + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(' | ')); }""",
        list(rules),
    )


SETTLED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"

TIMED = """async (act) => {
  const before = performance.now();
  act();
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - before;
}"""

CUT = """() => [...document.querySelectorAll('figure svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(t => {
    const r = t.getBoundingClientRect();
    return r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1;
  }).map(t => t.textContent);
})"""
"""The texts of figures that reach out of their figure."""

DESK, PHONE = (1280, 900), (390, 844)
TALL = (1280, 2400)
"""As high as all rows of a small table in any font: only rows in view are drawn."""


def shown(page, **state):
    """Show another state of the page that is open."""
    page.evaluate("hash => { location.hash = hash; }", hashed(**state))
    page.evaluate(SETTLED)
    page.wait_for_selector("main .waiting", state="detached")


def resized(page, size):
    """Make the window as large as that."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate(SETTLED)


def names(page):
    """Read the names of the rows that are drawn."""
    return page.locator(".body .row .name").all_inner_texts()


def numbers(page, column):
    """Read a column of the rows that are drawn."""
    found = page.locator(f".body .row .cell.{column} [data-v]").evaluate_all(
        "all => all.map(one => one.dataset.v)"
    )
    return [float(text) if text else None for text in found]


def silent(page, watch):
    """Tell whether a page asked for nothing, said nothing and opened nothing."""
    own = page.url.partition("#")[0]
    asked = [url for url in watch.requests if url.partition("#")[0] != own and url != "data:,"]
    return not (watch.messages or watch.dialogs or asked)
