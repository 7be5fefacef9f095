"use strict";
/* What is nice to have: tables that sort, points that unfold when they are followed. Without it all is there. */
(function () {
  function key(row, column) {
    var cell = row.cells[column];
    if (cell.classList.contains("n"))
      return cell.hasAttribute("data-sort") ? Number(cell.getAttribute("data-sort")) : null;
    return cell.textContent;
  }

  /* What has no number comes last, whichever way the rest goes. */
  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
    if (typeof a === "number") return sign * (a - b);
    return sign * a.localeCompare(b, "en", { numeric: true });
  }

  function sort(table, head, column) {
    var ascending = head.getAttribute("aria-sort") !== "ascending";
    var rows = Array.from(table.tBodies[0].rows);
    rows.sort(function (a, b) { return compare(key(a, column), key(b, column), ascending ? 1 : -1); });
    rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
    Array.from(table.tHead.rows[0].cells).forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  }

  document.querySelectorAll("table.sorts").forEach(function (table) {
    Array.from(table.tHead.rows[0].cells).forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () { sort(table, head, column); });
    });
  });

  function unfold() {
    var point = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    var folded = point ? point.closest("details") : null;
    if (!folded) return;
    folded.open = true;
    point.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  unfold();
})();
