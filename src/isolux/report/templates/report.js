"use strict";
/* Sorts, filters and saves tables. They are sorted by their headings. Cells may carry data-v, a number; empty ones stay last. */
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

  /* A table is searched by words in any order, and saved as CSV: what is shown, as it is shown. */
  function plain(cell) {
    var text = "";
    cell.childNodes.forEach(function (node) {
      if (node.nodeName === "SMALL" && text) { text += " "; }
      text += node.textContent;
    });
    text = text.replace(/[\u00a0\s]+/g, " ").trim();
    /* Of a number alone: a spreadsheet reads "-3.1 to 4" as a formula, and a true minus as text. */
    return text === "\u2013" ? "" : text.replace(/^\u2212(?=[\d.,]+$)/, "-");
  }
  function csvCell(text) {
    /* A spreadsheet would run what begins so; a number may begin with its sign. */
    var safe = /^[=+\-@\t\r]/.test(text) && !/^[+\-]?[\d.,]+$/.test(text) ? "'" + text : text;
    return /[",\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
  }
  function csv(table) {
    var rows = Array.prototype.filter.call(table.rows, function (row) { return !row.hidden; });
    return rows.map(function (row) {
      var cells = [];
      Array.prototype.forEach.call(row.cells, function (cell) {
        if (cell.className === "strip") { return; }
        cells.push(csvCell(plain(cell)));
        for (var i = 1; i < cell.colSpan; i++) { cells.push(""); }
      });
      return cells.join(",");
    }).join("\r\n") + "\r\n";
  }
  function named(table) {
    var caption = table.caption ? table.caption.textContent : "table";
    return caption.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "table";
  }
  function save(table) {
    var link = document.createElement("a");
    link.download = table.dataset.name + ".csv";
    link.href = URL.createObjectURL(new Blob(["\ufeff" + csv(table)], { type: "text/csv" }));
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }
  function filter(table, words) {
    var shown = 0;
    var rows = table.tBodies[0].rows;
    Array.prototype.forEach.call(rows, function (row) {
      var text = row.textContent.toLowerCase();
      row.hidden = !words.every(function (word) { return text.indexOf(word) >= 0; });
      shown += row.hidden ? 0 : 1;
    });
    announce.textContent = shown + " of " + rows.length + " rows";
  }
  document.querySelectorAll("main table").forEach(function (table, i) {
    table.dataset.name = named(table);
    var tools = document.createElement("span");
    tools.className = "tools";
    if (table.tBodies[0] && table.tBodies[0].rows.length > 8) {
      var box = document.createElement("input");
      box.type = "search";
      box.placeholder = "filter rows";
      box.setAttribute("aria-label", "Filter the rows of table " + (i + 1));
      box.addEventListener("input", function () {
        filter(table, box.value.toLowerCase().split(/\s+/).filter(Boolean));
      });
      tools.append(box);
    }
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = "Download CSV";
    button.setAttribute("aria-label", "Download CSV of table " + (i + 1));
    button.addEventListener("click", function () { save(table); });
    tools.append(button);
    (table.caption || table.createCaption()).prepend(tools);
  });

  /* A reader chooses the group that others are compared with; each row holds its own pairs. */
  function compareWith(table, name) {
    var chosen = null;
    Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
      if (row.dataset.group === name) { chosen = row; }
    });
    table.closest("section").querySelectorAll(".of").forEach(function (word) { word.textContent = chosen ? name : "overall"; });
    Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
      var own = row.pairs[chosen ? name : ""] || [row === chosen ? "" : "\u2013", "", "", null];
      [5, 6, 7].forEach(function (at, i) { row.cells[at].textContent = own[i]; });
      row.cells[5].setAttribute("data-v", own[3] === null ? "" : own[3]);
    });
    var dot = chosen && chosen.querySelector("circle");
    table.querySelectorAll("line.base").forEach(function (line) {
      var at = dot ? dot.getAttribute("cx") : table.dataset.overall;
      line.setAttribute("x1", at);
      line.setAttribute("x2", at);
    });
    announce.textContent = "Compared with " + (chosen ? name : "overall");
  }
  document.querySelectorAll("table.strips").forEach(function (table) {
    var select = document.createElement("select");
    select.add(new Option("overall", ""));
    Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
      row.pairs = JSON.parse(row.dataset.pairs);
      row.pairs[""] = [5, 6, 7].map(function (at) { return row.cells[at].textContent; });
      row.pairs[""].push(row.cells[5].getAttribute("data-v") || null);
      if (Object.keys(row.pairs).length > 1) { select.add(new Option(row.dataset.group)); }
    });
    select.addEventListener("change", function () { compareWith(table, select.value); });
    var label = document.createElement("label");
    label.append("Compare with ", select);
    table.caption.querySelector(".tools").prepend(label);
  });

  /* A link into a folded part opens it. What is folded is not printed. */
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
  var place = document.querySelector("nav") || document.querySelector("footer");
  if (document.querySelector("details") && place) {
    var unfoldAll = document.createElement("button");
    unfoldAll.type = "button";
    unfoldAll.className = "unfold";
    unfoldAll.textContent = "Unfold everything, also for print";
    unfoldAll.addEventListener("click", function () {
      document.querySelectorAll("details").forEach(function (fold) { fold.open = true; });
    });
    place.append(unfoldAll);
  }
})();
