"""The viewer as people meet it: by mouse and keyboard, on a phone, in the dark, offline."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest

from isolux.report.wording import interval, value_text, with_unit
from isolux.viewer import Contents, Shown, bundle, contents_of
from tests.browser._viewing import CUT, DIGITS, SETTLED, hashed, violations, written
from tests.report import _runs as runs
from tests.viewer._runs import audited, people

pytestmark = pytest.mark.browser

VIEWS = "groups", "findings", "about", "compare", "people", "figures"
DESK, PHONE = (1280, 900), (390, 844)
TALL = (1280, 2400)
"""As high as all rows of a small table in any font: only rows in view are drawn."""


@pytest.fixture(scope="session")
def page_of(tmp_path_factory):
    """Write a kind of page when it is first asked for."""
    folder = tmp_path_factory.mktemp("viewer")
    return cache(lambda name: written(folder, name))


@pytest.fixture
def look(tab, page_of):
    """Open a page in a state: ``(page, watch)``."""

    def opened(name, size=DESK, *, dark=False, **state):
        address = page_of(name).as_uri() + hashed(**state)
        page, watch = tab.open(address, *size, dark=dark)
        page.wait_for_selector("main")
        return page, watch

    return opened


def shown(page, **state):
    """Show another state of the page that is open."""
    page.evaluate("hash => { location.hash = hash; }", hashed(**state))
    page.evaluate(SETTLED)
    page.wait_for_selector("main .waiting", state="detached")


def resized(page, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate(SETTLED)


def names(page):
    return page.locator(".body .row .name").all_inner_texts()


def numbers(page, column):
    found = page.locator(f".body .row .cell.{column} [data-v]").evaluate_all(
        "all => all.map(one => one.dataset.v)"
    )
    return [float(text) if text else None for text in found]


def silent(page, watch):
    own = page.url.partition("#")[0]
    asked = [url for url in watch.requests if url.partition("#")[0] != own and url != "data:,"]
    return not (watch.messages or watch.dialogs or asked)


@pytest.mark.parametrize("name", ["people", "two", "hostile", "full", "comparison", "thousand"])
def test_it_is_silent_and_fits(look, name):
    page, watch = look(name)
    for size in (DESK, PHONE):
        resized(page, size)
        for view in VIEWS:
            shown(page, view=view)
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], (size, view)
    assert silent(page, watch), watch


READ = """([group, title]) => {
  for (const row of document.querySelectorAll('.row:not(.head .row)')) {
    const name = row.querySelector('.name');
    if (!name || name.title !== group) continue;
    const value = row.querySelector('.cell.value [data-v]');
    const small = row.querySelector('.cell.value small');
    const cell = (one) => row.querySelector(`.cell.${one} [data-v]`);
    return {value: value.dataset.v, text: value.textContent, low: small.dataset.low,
            high: small.dataset.high, interval: small.textContent, n: cell('n').dataset.v,
            difference: cell('difference').dataset.v, status: row.querySelector('.status').title};
  }
  return null; }"""


def test_a_hundred_random_cells_are_the_runs_own_digit_for_digit(look):
    table = audited().group_metrics
    told_of = audited().disparities.filter(kind="difference_to_overall")
    against = {(d["attribute"], d["group_a"]): d for d in told_of.iter_rows(named=True)}
    page, _ = look("audit", TALL)
    drawn = np.random.default_rng(0).integers(table.height, size=100)
    last = None
    for row in table[drawn].sort("attribute").iter_rows(named=True):
        if row["attribute"] != last:
            shown(page, by=row["attribute"] or "light")
            last = row["attribute"]
        found = page.evaluate(READ, [row["group"], row["attribute"]])
        assert int(found["n"]) == row["n_units"]
        if row["value"] is None:
            assert (found["value"], found["text"]) == ("", "–")
            assert row["reason"] in found["status"]
            continue
        assert [float(found[k]) for k in ("value", "low", "high")] == [
            row[k] for k in ("value", "low", "high")
        ]
        assert found["text"] == value_text(row["value"])
        assert found["interval"] == interval(row["low"], row["high"])
        told = against.get((row["attribute"], row["group"]))
        assert found["difference"] == "" or float(found["difference"]) == told["value"]


def test_numbers_are_rounded_as_the_report_rounds_them(look):
    page, _ = look("digits", by="race")
    shown = page.locator(".body .cell.value .big").all_inner_texts()
    assert shown == [value_text(value) for value in DIGITS]


def test_sorting_by_value_puts_groups_without_one_last_both_ways(look):
    page, _ = look("full", TALL, by="race*gender")
    heading = page.get_by_role("columnheader", name="Accuracy")
    assert heading.get_attribute("aria-sort") == "none"
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    *values, last = numbers(page, "value")
    assert last is None
    assert values == sorted(values)
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    *values, last = numbers(page, "value")
    assert last is None
    assert values == sorted(values, reverse=True)


def test_search_and_filters_and_what_they_say(look):
    page, _ = look("full", TALL, by="race*gender")
    page.get_by_label("Search groups").fill("female bl")
    assert names(page) == ["Black × Female"]
    assert page.get_by_role("status").inner_text() == "1 of 14 groups"
    page.get_by_label("Search groups").fill("nothing of the kind")
    page.get_by_role("button", name="Show all groups").click()
    assert len(names(page)) == 14
    page.get_by_role("combobox", name="Show").select_option("unjudged")
    assert names(page) == ["Middle Eastern × Female"]
    assert "fewer than 50 units" in page.locator(".body .status").inner_text()
    page.get_by_role("combobox", name="Show").select_option("differ")
    assert "Black × Female" in names(page)


def test_an_address_shows_what_was_seen(look):
    page, _ = look("full")
    page.get_by_label("Metric").select_option("recall~Female")
    page.get_by_label("Groups by").select_option("race")
    page.get_by_label("Search groups").fill("asian")
    page.get_by_role("columnheader", name="Units").get_by_role("button").click()
    page.locator(".body .name").first.click()
    seen = [names(page), page.locator(".detail").inner_text(), page.url]
    again = page.context.new_page()
    again.goto(seen[2])
    again.wait_for_selector(".detail")
    assert [names(again), again.locator(".detail").inner_text(), again.url] == seen
    again.go_back()


def test_back_closes_what_was_opened(look):
    page, _ = look("full", by="race")
    page.locator(".body .name").first.click()
    page.wait_for_selector(".detail")
    page.go_back()
    page.wait_for_selector(".detail", state="detached")


def test_a_group_tells_its_pairs_with_the_sign_turned(look):
    page, _ = look("full", by="race", group="White", of="race")
    pair = next(d for d in runs.full_run().disparities.iter_rows(named=True)
                if d["kind"] == "difference" and d["metric"] == "accuracy"
                and {d["group_a"], d["group_b"]} == {"White", "Black"})  # fmt: skip
    sign = 1 if pair["group_a"] == "White" else -1
    row = page.locator(".detail tr", has_text="Black").first.inner_text()
    assert value_text(sign * pair["value"], sign=True) in row
    low, high = sorted((sign * pair["low"], sign * pair["high"]))
    assert interval(low, high) in row


def test_a_finding_leads_to_its_groups(look):
    page, _ = look("audit", view="findings")
    first = page.locator("ol.findings a").first
    first.click()
    page.wait_for_selector(".table.groups")
    assert "by=" in page.url
    assert page.get_by_role("link", name="Groups").get_attribute("aria-current") == "page"


def test_warnings_stand_before_any_number(look):
    page, _ = look("full")
    warning = page.get_by_text("Half of the people are missing.")
    assert warning.is_visible()
    assert warning.bounding_box()["y"] < page.locator(".answer").bounding_box()["y"]


def test_the_spread_of_a_group_is_drawn_and_told(look):
    page, _ = look("audit", by="light", group="dusk", of="light")
    counted = audited().scores.join(
        audited().attributes.filter(attribute="light", value="dusk"), on="unit_id"
    )["value"]
    told = page.locator(".histogram .plot").get_attribute("aria-label")
    assert f"{int(counted.sum()):,} scored 1, {int((counted == 0).sum()):,} scored 0" in told
    page.get_by_label("Draw").select_option("spread")
    shown = page.locator(".body .row:has(.spark) .name").all_inner_texts()
    assert shown == [name for name in names(page) if name != "dawn"]
    page.locator(".body .row", has_text="dawn").click()
    assert "No spread of groups of fewer than 10" in page.locator(".detail").inner_text()


TABS = """() => [...document.querySelectorAll('nav a')]
  .map(a => new URLSearchParams(a.hash.slice(1)).get('view') ?? 'groups')"""


@pytest.mark.parametrize("name", ["people", "full", "comparison", "two"])
def test_axe_finds_nothing(look, name):
    page, _ = look(name)
    for size, dark in ((DESK, False), (PHONE, True)):
        resized(page, size)
        page.emulate_media(color_scheme="dark" if dark else "light")
        for view in page.evaluate(TABS):
            shown(page, view=view)
            assert violations(page) == [], (size, view)
            page.emulate_media(color_scheme="light" if dark else "dark")
            assert violations(page, "color-contrast") == [], (size, view)
            page.emulate_media(color_scheme="dark" if dark else "light")
        shown(page, view="groups")
        page.locator(".body .name").first.click()
        page.wait_for_selector(".detail")
        assert violations(page) == [], size


def test_the_keyboard_alone_can_do_it_all(look):
    page, watch = look("thousand")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the tables"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    focused = "document.activeElement.title || document.activeElement.textContent"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('name')"):
            break
    assert page.evaluate(focused) == "region 0000"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "region 0002"
    page.keyboard.press("End")
    assert page.evaluate(focused) == "region 0999"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector(".detail")
    assert page.evaluate(focused) == "region 0998"
    assert page.evaluate("document.activeElement.tagName") == "H2"
    page.keyboard.press("Escape")
    page.wait_for_selector(".detail", state="detached")
    page.wait_for_function("() => document.activeElement.classList.contains('name')")
    assert page.evaluate(focused) == "region 0998"
    assert silent(page, watch)


CLICK = """async (selector) => {
  const button = document.querySelector(selector);
  const before = performance.now();
  button.click();
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - before; }"""
TYPE = """async (text) => {
  const box = document.querySelector('input[type=search]');
  const before = performance.now();
  box.value = text;
  box.dispatchEvent(new Event('input', {bubbles: true}));
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - before; }"""


def fastest(act):
    """Give the fastest of some times: a machine that others share holds one up now and then."""
    took = [act()]
    while min(took) >= 100 and len(took) < 12:
        took.append(act())
    return min(took)


def test_a_thousand_groups_sort_and_filter_within_a_tenth_of_a_second(look):
    page, _ = look("thousand")
    assert page.get_by_role("status").inner_text() == "1,000 groups"
    assert page.locator(".body .row").count() < 60
    for column in ("group", "n", "value", "difference"):
        took = fastest(lambda column=column: page.evaluate(CLICK, f".head .{column} button"))
        assert took < 100, (column, took)
    for text in ("9", "region 01", ""):
        took = fastest(lambda text=text: [page.evaluate(TYPE, one) for one in ("7", text)][-1])
        assert took < 100, (text, took)


def test_rows_far_below_are_drawn_when_they_are_reached(look):
    page, _ = look("thousand")
    page.evaluate("window.scrollTo(0, document.querySelector('.body').offsetHeight * 0.7)")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.body .name')].some(n => n.title > 'region 0690')"
    )
    assert page.locator(".body .row").count() < 60


def test_rows_that_begin_below_a_phones_window_are_drawn_when_they_are_reached(look):
    page, _ = look("people", PHONE, view="people")
    page.wait_for_selector(".facets")
    page.evaluate(SETTLED)
    assert page.locator(".body").bounding_box()["y"] > PHONE[1]
    assert 0 < page.locator(".body .row").count() < 60  # of 3,000
    for share in (0.5, 1.0):
        page.evaluate(f"window.scrollTo(0, {share} * document.documentElement.scrollHeight)")
        page.wait_for_function(
            """share => [...document.querySelectorAll('.body [data-at]')]
                 .some(one => one.dataset.at > 2900 * share)""",
            arg=share,
        )
        assert page.locator(".body .row").count() < 60


def test_hostile_names_are_read_not_run(look):
    page, watch = look("hostile")
    assert "<script>alert(1)</script>" in names(page)
    assert page.locator("main img, main script").count() == 0
    page.locator(".body .name").first.click()
    page.wait_for_selector(".detail")
    for view in ("findings", "about", "figures"):
        shown(page, view=view)
    assert page.title().startswith(f"Audit of {runs.HOSTILE[0]}")
    assert silent(page, watch), watch


NONSENSE = [
    {"metric": "<script>"}, {"by": "x" * 500}, {"group": "?", "of": "?"}, {"view": "<img>"},
    {"sort": "-nothing"}, {"model": "none"},
]  # fmt: skip


def test_an_address_that_means_nothing_shows_the_first_there_is(look):
    page, watch = look("full", **NONSENSE[0])
    for state in NONSENSE:
        shown(page, **state)
        assert len(names(page)) > 1, state
    assert silent(page, watch)


def test_the_policy_stops_a_script_and_a_request_that_got_in(look):
    page, watch = look("audit")
    page.evaluate(
        """() => { const s = document.createElement('script'); s.textContent = 'alert(2)';
                   document.body.append(s); }"""
    )
    page.wait_for_timeout(100)
    assert watch.dialogs == []
    with pytest.raises(Exception, match=r"Failed to fetch|Content Security Policy"):
        page.evaluate("fetch('https://example.org/')")


def test_a_page_whose_tables_are_damaged_says_so(look, page_of, tmp_path):
    page, _ = look("audit")
    text = page_of("audit").read_text(encoding="utf-8")
    damaged = tmp_path / "damaged.html"
    at = text.index('id="table-groups">') + 400
    damaged.write_text(text[:at] + "AAAA" * 50 + text[at + 200 :], encoding="utf-8")
    page.goto(damaged.as_uri())
    page.wait_for_selector("[role=alert]")
    assert "cannot be read" in page.locator("[role=alert]").inner_text()


def facet(page, title):
    """Read an attribute's groups, their counts and their means, as the page shows them."""
    rows = page.get_by_role("group", name=title, exact=True).locator("li button")
    parts = [[row.locator(f".{part}").inner_text() for part in ("label", "count", "mean")]
             for row in rows.all()]  # fmt: skip
    return {label: (n, mean) for label, n, mean in parts}


def test_choosing_by_several_attributes_counts_as_polars_does(look):
    page, _ = look("people", view="people")
    page.wait_for_selector(".facets")
    for name in ("dusk", "night", "small"):
        page.locator(".facet .label", has_text=name).click()
    frame = people()
    light, size = pl.col("light").is_in(["dusk", "night"]), pl.col("size") == "small"
    chosen = frame.filter(light, size)
    said = page.get_by_role("status").inner_text()
    assert said.startswith(f"{chosen.height:,} units of 3,000 chosen")
    assert with_unit(chosen["value"].mean()) in said
    assert "Descriptive." in page.locator(".selection").inner_text()
    # An attribute's own counts leave out its own choice, so that one sees what else there is.
    for title, rows in (
        ("light", frame.filter(size)),
        ("size", frame.filter(light)),
        ("tone", chosen),
    ):
        shown = facet(page, title)
        scored = rows.drop_nulls("value")
        for (group,), part in scored.group_by(title):
            assert shown[group] == (f"{part.height:,}", with_unit(part["value"].mean()))
    assert "pick=light%3Ddusk" in page.url
    page.get_by_role("button", name="Choose everyone again").click()
    assert page.get_by_role("status").inner_text().startswith("3,000 units of 3,000")


def test_from_a_group_to_its_people_and_to_one_of_them(look):
    page, _ = look("people", by="light*tone", group="dusk × 4-6", of="light*tone")
    page.get_by_role("link", name="Its people, one by one").click()
    page.wait_for_selector(".facets")
    cell = people().filter(light="dusk", tone="4-6")
    assert page.get_by_role("status").inner_text().startswith(f"{cell.height:,} units")
    page.locator(".body .name").first.click()
    told = page.locator(".detail").inner_text()
    row = people().filter(unit_id=page.locator(".detail h2").inner_text())
    assert row["tone"][0] == "4-6"
    assert (with_unit(row["value"][0]) if row["value"][0] is not None else "no score") in told
    again = page.context.new_page()
    again.goto(page.url)
    again.wait_for_selector(".detail")
    assert again.locator(".detail").inner_text() == told


def test_a_page_without_people_has_no_way_to_them(look):
    page, _ = look("audit", view="people", pick="light=dusk")
    assert page.get_by_role("link", name="People").count() == 0
    assert page.locator(".table.groups").count() == 1
    assert (
        "no score of a single person" in look("audit", view="about")[0].locator("main").inner_text()
    )


def test_fifty_thousand_people_are_open_in_two_seconds(look):
    page, watch = look("crowd")
    took = page.evaluate(
        """() => { const [own] = performance.getEntriesByType('navigation');
                   return performance.now() - own.startTime; }"""
    )
    assert took < 2000
    page.evaluate("location.hash = '#view=people'")
    page.wait_for_selector(".facets")
    picks = [
        page.evaluate(CLICK, f".facet:nth-child({i}) li:nth-child(2) button") for i in (1, 2, 3)
    ]
    assert min(picks) < 300, picks
    assert silent(page, watch)


def test_two_models_side_by_side_say_who_gained_and_what_is_tested(look):
    page, _ = look("comparison", view="compare", by="race")
    table = runs.comparison_run()
    row = page.locator(".body .row", has_text="Indian").first
    a, b = (table.group_metrics.filter(model=model, metric="accuracy", group="Indian")["value"][0]
            for model in ("erm", "arl"))  # fmt: skip
    assert [float(text) for text in row.locator("[data-v]").evaluate_all(
        "all => all.slice(0, 2).map(one => one.dataset.v)")] == [a, b]  # fmt: skip
    tested = table.disparities.filter(metric="accuracy", group_a="Indian")
    change = row.locator(".cell.change").inner_text()
    assert value_text(tested["value"][0], sign=True) in change
    assert interval(tested["low"][0], tested["high"][0]) in change
    page.get_by_label("From").select_option("arl")  # the other way round
    turned = (
        page.locator(".body .row", has_text="Indian").first.locator(".cell.change").inner_text()
    )
    assert value_text(-tested["value"][0], sign=True) in turned


def test_two_runs_side_by_side_are_plainly_not_tested(look):
    page, _ = look("two", view="compare", by="light")
    assert "Changes are descriptive here" in page.locator(".lead").inner_text()
    changes = page.locator(".body .cell.change").all_inner_texts()
    assert all("not tested" in text or text.strip() == "–" for text in changes), changes


def test_the_tables_of_a_paper_stand_about_the_run(look):
    page, watch = look("printed", view="about")
    table = page.locator(".printed table")
    assert table.locator("caption").inner_text() == "Table 1: <b>recall</b>"
    assert table.locator("td").all_inner_texts() == ["A", "75.9", "12", "B", "–", "3"]
    told = page.locator(".about").inner_text()
    assert "Table 2: not printed, as no one was found." in told
    assert "It says two things." in told
    assert violations(page) == []
    assert silent(page, watch)


def test_a_name_of_500_letters_leaves_room_for_the_way_out(look):
    page, _ = look("hostile")
    page.evaluate("""() => {
      const cut = document.querySelector('.body .row .name'); cut.closest('.row').click(); }""")
    title = page.locator("#detail-title bdi")
    title.evaluate("e => { e.textContent = 'L'.repeat(120); }")  # as long as a title may be
    close = page.locator(".detail .close").bounding_box()
    assert close["height"] < 60
    assert page.locator("#detail-title").bounding_box()["height"] < 250


def test_figures_are_the_reports_with_words_for_who_cannot_see_them(look):
    page, watch = look("full", view="figures", by="race*gender")
    figure = page.get_by_role("img", name="Accuracy by perceived race × perceived gender")
    assert figure.locator("svg text").all_text_contents().count("n = 31") == 1
    assert "Darker is lower, hence worse." in page.locator("figcaption").first.inner_text()
    for size in (DESK, PHONE):
        resized(page, size)
        assert page.evaluate(CUT) == []
    page.get_by_label("Groups by").select_option("")
    n = page.locator("figure").count()
    assert n > 4
    assert page.get_by_role("status").inner_text() == f"{n} figures, as the report draws them"
    assert silent(page, watch)


def test_a_drawing_that_holds_more_than_shapes_and_words_is_not_shown(look, tmp_path):
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><g onclick="alert(3)"><text>x</text></g></svg>'
    held = contents_of([Shown(runs.full_run(), "a")], figures=True)
    table = held.tables["figures"].with_columns(svg=pl.lit(svg))
    path = tmp_path / "hostile.html"
    path.write_text(bundle(Contents(held.manifest, {**held.tables, "figures": table})), "utf-8")
    page, watch = look("full")
    page.goto(path.as_uri() + hashed(view="figures"))
    page.wait_for_selector("figure")
    assert page.locator("figure svg").count() == 0
    assert page.locator("figure .scroll").first.inner_text() == "This drawing cannot be read."
    assert watch.dialogs == []
