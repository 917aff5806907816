"use strict";
/* Sorts tables by their headings. Cells may carry data-v, a number; empty ones stay last. */
(function () {
  var announce = document.getElementById("announce");

  function key(row, column) {
    var cell = row.cells[column];
    if (!cell) { return null; }
    var raw = cell.getAttribute("data-v");
    if (raw === null) { return cell.textContent.trim(); }
    return raw === "" ? null : Number(raw);
  }

  function compare(a, b, sign) {
    if (a === null || b === null) { return (a === null) - (b === null); }
    if (typeof a === "number" && typeof b === "number") { return sign * (a - b); }
    return sign * String(a).localeCompare(String(b), undefined, { numeric: true });
  }

  function sort(table, heading) {
    var column = heading.cellIndex;
    var descending = heading.getAttribute("aria-sort") === "ascending";
    var body = table.tBodies[0];
    Array.prototype.map.call(body.rows, function (row, place) {
      return { row: row, key: key(row, column), place: place };
    }).sort(function (a, b) {
      return compare(a.key, b.key, descending ? -1 : 1) || a.place - b.place;
    }).forEach(function (item) { body.appendChild(item.row); });
    Array.prototype.forEach.call(heading.parentNode.cells, function (cell) {
      if (cell.hasAttribute("aria-sort")) { cell.setAttribute("aria-sort", "none"); }
    });
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    announce.textContent = "Sorted by " + heading.textContent.trim() +
      (descending ? ", descending" : ", ascending");
  }

  document.querySelectorAll("table.sortable th[aria-sort] button").forEach(function (button) {
    button.addEventListener("click", function () {
      sort(button.closest("table"), button.closest("th"));
    });
  });

  /* A link into a folded part opens it; on paper everything is open. */
  function unfold() {
    var target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    var own = target && target.querySelector(":scope > details");
    if (own && target.classList.contains("folded")) { own.open = true; }
    for (var at = target; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") { at.open = true; }
    }
    if (target) { target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", unfold);
  unfold();
  var folded = [];
  window.addEventListener("beforeprint", function () {
    folded = Array.prototype.slice.call(document.querySelectorAll("details:not([open])"));
    folded.forEach(function (fold) { fold.open = true; });
  });
  window.addEventListener("afterprint", function () {
    folded.forEach(function (fold) { fold.open = false; });
  });
})();
