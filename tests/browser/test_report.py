"""The report as people meet it: in a browser, on a desk and on a phone, on paper, by keyboard."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from isolux.statements.numbers import format_interval
from tests.browser._viewing import CUT, violations
from tests.browser.conftest import watched
from tests.report import _runs as runs

pytestmark = pytest.mark.browser

PAGES = ["full", "hostile", "injected", "small", "classes", "detector", "comparison", "facet",
         "fhibe"]  # fmt: skip
DESK, PHONE = 1280, 390
GROUPS = "#attribute-1 table.groups"


def column(table, n):
    return table.locator(f"tbody tr > :nth-child({n})").all_inner_texts()


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")


def resized(page, width, height=900):
    page.set_viewport_size({"width": width, "height": height})


OVERLAP = """() => {
  const box = e => { if (e instanceof SVGElement) return e.getBoundingClientRect();
                     const r = document.createRange(); r.selectNodeContents(e);
                     return r.getBoundingClientRect(); };
  const met = [];
  const compare = (all) => { for (let i = 0; i < all.length; i++)
    for (let j = i + 1; j < all.length; j++) {
      if (all[i].contains(all[j])) continue;  // a heading of what its own line folds
      const a = box(all[i]), b = box(all[j]);
      if (!a.width || !b.width) continue;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1.5 && high > 1.5)
        met.push(all[i].textContent.trim().slice(0, 40) + ' | '
                 + all[j].textContent.trim().slice(0, 40));
    } };
  document.querySelectorAll('thead').forEach(t => compare([...t.querySelectorAll('th')]));
  document.querySelectorAll('figure svg').forEach(s => compare([...s.querySelectorAll('text')]));
  compare([...document.querySelectorAll('h1,h2,h3,summary,caption,dt')]
    .filter(e => !e.classList.contains('unseen') && !e.querySelector('.unseen')));
  return met; }"""

SMALLEST = """() => Math.min(99, ...[...document.querySelectorAll('figure text')]
  .filter(t => t.getBoundingClientRect().width)
  .map(t => [parseFloat(t.getAttribute('font-size')), t.getScreenCTM()])
  .map(([size, turned]) => size * Math.hypot(turned.a, turned.b)))"""


def fits(page, width):
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"the page is {wide} px wide on a screen of {width}"


@pytest.mark.parametrize("name", PAGES)
def test_it_is_silent_and_fits_every_screen(open_report, name):
    page, watch = open_report(name, DESK)
    fits(page, DESK)
    resized(page, PHONE)
    fits(page, PHONE)
    unfold(page)
    for width in (PHONE, DESK):
        resized(page, width)
        fits(page, width)
        assert page.evaluate(OVERLAP) == []
        assert page.evaluate(CUT) == []
        if width == PHONE:
            assert page.evaluate(SMALLEST) >= 8  # px of a figure's text
    assert watch.quiet(page), watch


def test_sorting_by_number_puts_missing_values_last_both_ways(open_report):
    page, watch = open_report("full")
    unfold(page)
    table = page.locator("#attribute-4 table.groups").first
    heading = table.locator("thead th").nth(3)
    assert heading.inner_text().startswith("Accuracy")
    assert heading.get_attribute("aria-sort") == "none"
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    *values, last = column(table, 4)
    assert last == "–"
    assert [float(v) for v in values] == sorted(float(v) for v in values)
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    *values, last = column(table, 4)
    assert last == "–"
    assert [float(v) for v in values] == sorted((float(v) for v in values), reverse=True)
    assert "descending" in page.locator("#announce").inner_text()
    assert watch.quiet(page)


def test_people_by_size_sort_by_share_with_everyone_below(open_report):
    page, watch = open_report("detector")
    unfold(page)
    table = page.locator("#attribute-1 table.strata").first
    heading = table.locator("thead tr").nth(1).locator("th").nth(2)
    heading.get_by_role("button").click()
    values = [float(text.split()[0]) for text in column(table, 3)]
    assert values == sorted(values)
    assert len(values) == 7
    assert table.locator("tr").last.inner_text().startswith("overall")
    assert watch.quiet(page)


def test_sorting_by_name_and_by_keyboard(open_report):
    page, _ = open_report("full")
    unfold(page)
    table = page.locator("#attribute-2 table.groups").first
    heading = table.locator("thead th").first
    heading.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    # Numbers inside names count as numbers: 3-9 before 10-19.
    assert column(table, 1)[:3] == ["0-2", "3-9", "10-19"]
    page.keyboard.press("Space")
    assert column(table, 1)[0] == "more than 70"
    table.locator("thead th").nth(1).get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "none"


def test_everyone_stays_below_whatever_is_sorted(open_report):
    page, _ = open_report("full")
    unfold(page)
    table = page.locator(GROUPS).first
    table.locator("thead th").nth(1).get_by_role("button").click()
    assert table.locator("tr").last.inner_text().startswith("overall")


def test_hostile_names_are_read_not_run(open_report):
    page, watch = open_report("hostile")
    unfold(page)
    table = page.locator(GROUPS).first
    shown = column(table, 1)
    assert "<script>alert(1)</script>" in shown
    assert '"><img src=x onerror=alert(1)>' in shown
    assert "{{7*7}}" in shown
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1
    assert watch.dialogs == []
    assert page.title() == f"Audit of {runs.HOSTILE[0]} on {runs.HOSTILE[1]}"


def test_the_policy_stops_a_script_that_got_in(open_report):
    page, watch = open_report("full")
    page.evaluate(
        """() => {
          const s = document.createElement('script'); s.textContent = 'alert(2)';
          document.body.append(s);
          const i = document.createElement('img'); i.src = 'https://example.org/x.png';
          document.body.append(i);
        }"""
    )
    page.wait_for_timeout(100)
    assert watch.dialogs == []
    assert any("Content Security Policy" in message for message in watch.messages)
    with pytest.raises(Exception, match=r"Failed to fetch|Content Security Policy"):
        page.evaluate("fetch('https://example.org/')")


@pytest.mark.parametrize("name", ["full", "injected", "classes", "detector", "comparison", "facet",
                                  "fhibe"])  # fmt: skip
def test_a_report_is_read_on_eight_screens(open_report, name):
    page, _ = open_report(name, 1440, 900)
    tall = page.evaluate("document.documentElement.scrollHeight")
    assert tall <= 8 * 900, f"{tall / 900:.1f} screens"
    first = page.locator(".answer").bounding_box()
    assert first["y"] + first["height"] < 900
    if name in {"facet", "fhibe"}:
        folded = page.locator("details table tbody tr").count()
        assert folded > 100  # nothing is left out: it is folded


def test_of_many_attributes_those_that_differ_are_open_and_a_link_opens_the_others(open_report):
    page, _ = open_report("fhibe", 1440, 900)
    assert page.locator("section.folded").count() == 31 - 2
    opened = page.locator("section[id^=attribute]:not(.folded) h2").all_inner_texts()
    assert "By attribute 11" in opened  # it differs
    last = page.locator("#attribute-31")
    assert last.is_hidden()  # with 22 others behind one line
    assert last.locator("table.strips").is_hidden()
    page.locator("nav a[href='#attribute-31']").click()
    page.wait_for_function("document.querySelector('#attribute-31 > details').open")
    assert last.locator("table.strips").is_visible()
    assert page.locator(".verdicts").first.locator("tbody tr").count() == 8


def test_on_a_phone_the_first_heading_stays_with_its_column(open_report):
    page, _ = open_report("full", PHONE)
    table = page.locator(GROUPS).first
    table.evaluate("t => { t.closest('.scroll').scrollLeft = 200; }")
    heading, name = (
        table.locator(f"{part} tr > :first-child").first.bounding_box()["x"]
        for part in ("thead", "tbody")
    )
    assert heading == name


def test_it_prints_what_is_open_and_all_of_it_if_asked(open_report):
    page, watch = open_report("full")
    assert sheets(page) <= 6
    page.get_by_role("button", name="Unfold everything").click()
    assert page.locator("details:not([open])").count() == 0
    assert sheets(page) > 6
    assert watch.quiet(page)


def sheets(page) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))


def test_the_first_screen_names_the_groups_of_the_leading_attribute_worst_first(open_report):
    page, _ = open_report("full", DESK, 900)
    table = page.locator("table.strips").first
    last = table.locator("tbody tr").last.bounding_box()
    assert last["y"] + last["height"] <= 900
    values = [float(text) for text in column(table, 4) if text != "–"]
    assert values == sorted(values)
    assert len(values) == 13
    assert table.locator("tbody tr:first-child").inner_text().split()[-1] == "worse"
    assert table.locator("svg.strip circle").count() == 13


def test_a_reader_chooses_the_group_that_others_are_compared_with(open_report):
    page, watch = open_report("full")
    table = page.locator("table.strips").first
    cells = (5, 6, 7, 8)
    before = [column(table, n) for n in (6, 7, 8)]
    table.get_by_label("Compare with").select_option("White × Male")
    head = table.locator("thead").inner_text()
    assert "Against White × Male" in " ".join(head.split())
    assert "Better or worse than White × Male" in " ".join(head.split()), "marks compare with it"
    legend = page.locator("#answer p.note", has_text="~: ").inner_text()
    assert "~: no difference to White × Male shown (adjusted p above 0.05)" in legend
    pairs = runs.full_run().disparities.filter(
        kind="difference", metric="accuracy", attribute="race*gender"
    )
    names = [name.removesuffix("1") for name in column(table, 1)]  # a footnote's mark
    found = dict(zip(names, zip(*(column(table, n) for n in cells), strict=True), strict=True))
    for row in pairs.iter_rows(named=True):
        sides = (row["group_a"], row["group_b"])
        if "White × Male" not in sides:
            continue
        (other,) = set(sides) - {"White × Male"}
        sign = 1 if other == sides[0] else -1
        low, high = sorted((sign * row["low"], sign * row["high"]))
        _, gap, ends, mark = found[other]
        assert float(gap.replace("−", "-")) == pytest.approx(100 * sign * row["value"], abs=0.051)
        assert ends == format_interval(low, high)
        assert (mark == "~") == (row["p_adjusted"] > 0.05)
    assert found["White × Male"][1:] == ("", "", "")
    table.get_by_label("Compare with").select_option("overall")
    assert [column(table, n) for n in (6, 7, 8)] == before
    assert watch.quiet(page)


BROKEN = """() => {
  const parts = (cell) => {
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
    while (walk.nextNode())
     for (const word of walk.currentNode.data.matchAll(/[^\\s\u00a0/-]+[/-]?/g)) {
      const r = document.createRange();
      r.setStart(walk.currentNode, word.index);
      r.setEnd(walk.currentNode, word.index + word[0].length);
      found.push([word[0], [...r.getClientRects()].filter(box => box.width)]);
    }
    return found; };
  const bad = [];
  for (const row of document.querySelectorAll('tr')) {
    const words = [...row.cells].map(parts);
    words.forEach((all, i) => {
      for (const [word, boxes] of all) {
        const whole = row.parentNode.tagName === 'THEAD' ? /^\\p{L}+-?$/u : /^[−+<\\d.,]+$/;
        if (whole.test(word) && new Set(boxes.map(b => Math.round(b.top))).size > 1) bad.push(word);
      }
      const right = Math.max(...all.flatMap(([, boxes]) => boxes.map(b => b.right)));
      const left = Math.min(...(words[i + 1] ?? []).flatMap(([, boxes]) => boxes.map(b => b.left)));
      if (right + 3 > left) bad.push(all.map(([w]) => w).join(' ') + ' | ' + words[i + 1][0][0]);
    });
  }
  return [...new Set(bad)]; }"""
"""Words of headings and numbers that are broken, and cells whose texts run together."""


@pytest.mark.parametrize("name", ["full", "classes", "detector", "fhibe"])
def test_no_heading_breaks_inside_a_word_and_no_numbers_run_together(open_report, name):
    page, _ = open_report(name, DESK)
    unfold(page)
    assert page.evaluate(BROKEN) == []
    resized(page, PHONE)
    assert page.evaluate(BROKEN) == []
    resized(page, 680)  # A4 less its margins, in CSS pixels
    page.emulate_media(media="print")
    assert page.evaluate(BROKEN) == []


def test_on_paper_nothing_is_cut_off_at_the_right(open_report):
    page, _ = open_report("full", width=680)  # A4 less its margins, in CSS pixels
    page.emulate_media(media="print")
    unfold(page)
    cut = page.evaluate(
        """() => [...document.querySelectorAll('table, figure svg')]
          .filter(e => e.getBoundingClientRect().right > 681)
          .map(e => e.textContent.trim().slice(0, 60) + e.getBoundingClientRect().right)"""
    )
    assert cut == []


def test_it_reads_without_scripts(chromium, report_of):
    page = chromium.new_page(java_script_enabled=False)
    watch = watched(page)
    page.goto(report_of("full").as_uri())
    assert page.locator("h2").first.is_visible()
    assert page.locator("svg.strip circle").first.is_visible()
    assert page.locator("select").count() == 0
    assert watch.quiet(page)
    page.context.close()


def test_a_screen_reader_meets_names_for_figures_and_tables(open_report):
    page, _ = open_report("full")
    crossed = "perceived race × perceived gender presentation"
    assert page.get_by_role("img", name=f"Accuracy by {crossed}, 13 groups.").count() == 1
    assert page.get_by_role("region", name=f"Accuracy by {crossed}, drawn").count() == 1
    unfold(page)
    assert page.get_by_role("region", name="Accuracy by perceived race", exact=True).count() == 1
    assert page.get_by_role("columnheader", name="Adjusted p").count() > 1
    assert page.get_by_role("rowheader", name="Middle Eastern", exact=True).count() >= 1


def test_keyboard_reaches_the_answer_past_the_head(open_report):
    page, _ = open_report("full")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_link_into_a_fold_opens_it(open_report):
    page, _ = open_report("full")
    page.evaluate(
        "document.querySelector('#attribute-1 details table').id = 'deep'; location.hash = 'deep'"
    )
    page.wait_for_function("document.getElementById('deep').closest('details').open")


def test_a_long_table_is_filtered_by_words_in_any_order(open_report):
    page, watch = open_report("full")
    unfold(page)
    table = page.locator("#attribute-4 table.groups").first
    box = table.locator(".tools input")
    box.fill("female bl")
    shown = table.locator("tbody tr:not([hidden]) > :first-child").all_inner_texts()
    assert shown == ["Black × Female"]
    assert page.locator("#announce").inner_text() == "1 of 14 rows"
    assert table.locator("tfoot tr").is_visible()
    box.fill("")
    assert table.locator("tbody tr:not([hidden])").count() == 14
    assert watch.quiet(page)


def saved(page, table):
    with page.expect_download() as download:
        table.get_by_role("button", name="Download CSV").click()
    with Path(download.value.path()).open(encoding="utf-8-sig", newline="") as file:
        return download.value.suggested_filename, list(csv.reader(file))


def test_a_table_is_saved_as_it_is_shown(open_report):
    page, watch = open_report("full")
    unfold(page)
    table = page.locator("#attribute-4 table.groups").first
    table.locator(".tools input").fill("black")
    name, (head, *rows) = saved(page, table)
    assert name.startswith("accuracy")
    assert name.endswith(".csv")
    assert [cell.rstrip(" ↕") for cell in head[:3]] == ["Group", "Units", "Clusters"]
    assert [row[0] for row in rows] == ["Black × Female", "Black × Male", "overall"]
    value = runs.full_run().group_metrics.filter(metric="accuracy", group="Black × Female")["value"]
    assert float(rows[0][3]) == pytest.approx(100 * value[0], abs=0.05)
    assert any(
        cell.startswith("-") and float(cell) < 0 for cell in rows[0] if " " not in cell
    )  # a sign is no formula
    ranges = [cell for row in rows for cell in row if " to " in cell]
    assert any(cell.startswith("\u2212") for cell in ranges)  # a true minus: no formula either
    assert not any(cell.startswith("'") for cell in ranges)
    assert watch.quiet(page)


def test_what_a_spreadsheet_would_run_is_saved_as_text(open_report):
    page, _ = open_report("hostile")
    unfold(page)
    table = page.locator(GROUPS).first
    table.locator("tbody th bdi").first.evaluate(
        "e => { e.textContent = '=1+cmd|\\'/c calc\\'!A1'; }"
    )
    table.locator("tbody th bdi").nth(1).evaluate("e => { e.textContent = '@SUM(A1), \"x\"'; }")
    _, (_, first, second, *_) = saved(page, table)
    assert first[0] == "'=1+cmd|'/c calc'!A1"
    assert second[0] == '\'@SUM(A1), "x"'


def test_each_finding_leads_to_the_place_that_shows_it(open_report):
    page, _ = open_report("found")
    links = page.locator("ol.findings li a.to")
    assert links.count() > 2
    for href in links.evaluate_all("all => all.map(a => a.getAttribute('href'))"):
        assert page.locator(href).count() == 1, href
    links.first.click()
    target = page.url.partition("#")[2]
    assert page.locator(f"#{target} h2").first.is_visible()


TRIMMED = """() => { const seen = new Set();
  for (const row of document.querySelectorAll('tbody tr:not(:first-child)')) {
    const like = [...row.querySelectorAll('*')].map(e => e.tagName + '.' + e.className).join();
    if (seen.has(like)) row.remove(); else seen.add(like);
  } }"""
"""Of rows that differ in nothing but their texts and numbers, one is asked about."""


@pytest.mark.parametrize("name", ["full", "detector", "comparison"])
def test_axe_finds_nothing(open_report, name):
    page, _ = open_report(name, DESK)
    unfold(page)
    page.evaluate(TRIMMED)
    for width, scheme in ((DESK, "light"), (DESK, "dark"), (PHONE, "dark")):
        resized(page, width)
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == [], (width, scheme)


def test_in_the_dark_the_page_is_dark_and_paper_stays_white(open_report):
    page, _ = open_report("full", dark=True)
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(20, 24, 27)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
