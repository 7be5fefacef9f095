/* What scripts/page_test.sh appends to a page before a browser opens it: looks at the page as it is laid out, and tells the
 * page around it what is wrong, or "good" and how much was looked at. */
(function () {
  "use strict";
  var wrong = [], texts = 0, sorted = 0;
  window.addEventListener("error", function (event) { wrong.push("error: " + event.message); });
  document.addEventListener("securitypolicyviolation", function (event) { wrong.push("fetches " + event.blockedURI); });

  function colour(text) {
    var parts = text.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  }

  /* WCAG 2.2, relative luminance and contrast ratio. */
  function luminance(rgb) {
    var linear = rgb.map(function (c) { c /= 255; return c <= 0.04045 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4); });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  }
  function contrast(a, b) {
    var x = luminance(a), y = luminance(b);
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  }
  function background(element) {
    for (var at = element; at; at = at.parentElement) {
      var found = colour(getComputedStyle(at).backgroundColor);
      if (found.alpha === 1) return found.rgb;
    }
    return [255, 255, 255];
  }

  function checkTexts() {
    var walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (var node = walker.nextNode(); node; node = walker.nextNode()) {
      var element = node.parentElement;
      if (!node.textContent.trim() || element.closest("script, style, title")) continue;
      if (element.getClientRects().length === 0) continue;
      var svg = element.closest("svg"), style = getComputedStyle(element);
      var ratio = contrast(colour(svg ? style.fill : style.color).rgb, background(svg || element));
      var size = svg ? parseFloat(style.fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width
                     : parseFloat(style.fontSize);
      texts++;
      if (ratio < 4.5) wrong.push("contrast " + ratio.toFixed(2) + ": " + node.textContent.trim().slice(0, 40));
      if (size < 7.5) wrong.push("letters of " + size.toFixed(1) + " pixels: " + node.textContent.trim().slice(0, 40));
    }
  }

  function checkNames() {
    document.querySelectorAll("svg, img").forEach(function (picture) {
      var title = picture.querySelector("title");
      if (picture.getAttribute("role") !== "img" || !title || !title.textContent.trim())
        wrong.push("a picture without a name");
    });
    document.querySelectorAll("a[href^='#']").forEach(function (link) {
      if (!document.getElementById(link.getAttribute("href").slice(1))) wrong.push("a link to nowhere: " + link.textContent);
    });
  }

  /* Wide things scroll in their own regions; the page as a whole does not. */
  function checkWidth() {
    var width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width) wrong.push("the page is wider than its window of " + width + " pixels");
    document.querySelectorAll("body *").forEach(function (element) {
      if (element.closest(".scroll") && !element.matches(".scroll")) return;
      var box = element.getBoundingClientRect();
      if (box.width > 0 && box.right > width + 1) wrong.push(element.tagName + " ends beyond the window");
    });
  }

  function numbers(table, column) {
    return Array.from(table.tBodies[0].rows).map(function (row) {
      var cell = row.cells[column];
      return cell.hasAttribute("data-sort") ? Number(cell.getAttribute("data-sort")) : null;
    });
  }

  function isSorted(list, sign) {
    return list.every(function (value, n) {
      if (n === 0) return true;
      if (value === null) return true; /* behind all that are known */
      return list[n - 1] !== null && sign * (value - list[n - 1]) >= 0;
    });
  }

  function checkSorting() {
    document.querySelectorAll("table.sorts").forEach(function (table) {
      Array.from(table.tHead.rows[0].cells).forEach(function (head, column) {
        var button = head.querySelector("button"), rows = table.tBodies[0].rows.length;
        if (!button) { wrong.push("no button: " + head.textContent); return; }
        if (!head.classList.contains("n")) return;
        [1, -1].forEach(function (sign) {
          button.click();
          sorted++;
          if (!isSorted(numbers(table, column), sign) || table.tBodies[0].rows.length !== rows)
            wrong.push("not sorted: " + head.textContent);
        });
        if (head.getAttribute("aria-sort") !== "descending") wrong.push("aria-sort of " + head.textContent);
      });
    });
  }

  /* A link to a point unfolds the family that it is in. */
  function checkUnfolding() {
    var link = document.querySelector("a[href^='#point-']");
    if (!link) return;
    location.hash = link.getAttribute("href");
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    var family = document.getElementById(location.hash.slice(1)).closest("details");
    if (!family.open) wrong.push("a link does not unfold what it leads to");
  }

  document.querySelectorAll("details").forEach(function (folded) { folded.open = true; });
  checkNames();
  checkWidth();
  checkTexts();
  checkSorting();
  document.querySelectorAll("details").forEach(function (folded) { folded.open = false; });
  checkUnfolding();
  setTimeout(function () {
    performance.getEntriesByType("resource").forEach(function (entry) { wrong.push("fetches " + entry.name); });
    parent.postMessage(wrong.length ? "WRONG: " + wrong.slice(0, 5).join("; ")
      : "good: " + texts + " texts, " + sorted + " sortings, " + document.querySelectorAll("svg").length + " pictures at " +
        innerWidth + " pixels, " + (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"), "*");
  }, 500);
})();
