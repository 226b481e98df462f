// Live updates, keys and comments on lines. Everything here also works without it: pages are complete, orders are plain forms.
(function () {
  "use strict";
  var one = function (what, inside) { return (inside || document).querySelector(what); };
  var all = function (what, inside) { return Array.from((inside || document).querySelectorAll(what)); };

  // Regions are replaced when their content changed. One that has the focus waits until it has not.
  var busy = false, again = false;
  function put(fresh) {
    document.title = fresh.title;
    all("[data-region]").forEach(function (old) {
      var region = fresh.querySelector('[data-region="' + old.dataset.region + '"]');
      if (!region || region.innerHTML === old.innerHTML) return;
      if (old.contains(document.activeElement)) { again = true; return; }
      old.replaceChildren.apply(old, Array.from(document.importNode(region, true).childNodes));
      if (old.dataset.region === "needs" || old.dataset.region === "list") say(old);
    });
  }
  function say(region) { region.classList.remove("flash"); void region.offsetWidth; region.classList.add("flash"); }
  function refresh() {
    if (busy || document.hidden) { again = true; return; }
    busy = true; again = false;
    fetch(location.href, { headers: { Accept: "text/html" } })
      .then(function (answer) { if (!answer.ok) throw new Error(answer.status); return answer.text(); })
      .then(function (html) { put(new DOMParser().parseFromString(html, "text/html")); })
      .catch(function () { again = true; })
      .finally(function () { busy = false; if (again && !document.hidden) setTimeout(refresh, 1000); });
  }

  document.addEventListener("visibilitychange", function () { if (!document.hidden && again) refresh(); });
  document.addEventListener("focusout", function () { if (again) setTimeout(refresh, 0); });

  // The stream says that something changed. If it is silent, the page says so.
  var label = one("[data-live]"), heard = 0, source = null, shownLive = true;
  function live(is) {
    if (is === shownLive || !label) return;
    shownLive = is;
    label.className = "st " + (is ? "ok" : "off");
    one("use", label).setAttribute("href", is ? "#s-ok" : "#s-off");
    one("b", label).textContent = is ? "Live" : "Not live";
  }
  function hear() {
    heard = Date.now(); live(true);
    var clock = one("[data-now]");
    if (clock) { var now = new Date(); clock.dateTime = now.toISOString(); clock.textContent = now.toISOString().slice(11, 19); }
  }
  function listen() {
    if (source) source.close();
    source = new EventSource("/live");
    source.addEventListener("change", function () { hear(); refresh(); });
    source.addEventListener("beat", hear);
  }
  if (label && window.EventSource) {
    heard = Date.now();
    listen();
    setInterval(function () {
      var silent = Date.now() - heard;
      if (silent > 10000) live(false);
      if (source.readyState === 2) listen();
    }, 1000);
    // Ages grow although nothing happens.
    setInterval(function () { if (!document.hidden) refresh(); }, 60000);
  }

  // Comments on lines: a click on a number, or `c` on the current line.
  var current = null;
  function choose(row) {
    if (current) current.classList.remove("sel");
    current = row;
    if (row) { row.classList.add("sel"); row.scrollIntoView({ block: "nearest" }); }
  }
  function comment(row) {
    if (!row || !one("#decide")) return;
    var next = row.nextElementSibling;
    if (next && next.classList.contains("mine")) { one("textarea", next).focus(); return; }
    var file = row.closest("table").dataset.file, line = row.dataset.line;
    if (!one('.plain-comment', row.closest("details"))) return;
    var made = document.createElement("tr"), cell = document.createElement("td"), box = document.createElement("div");
    made.className = "cm mine"; cell.colSpan = 3; box.className = "cmt run";
    [["line", line], ["file", file]].forEach(function (pair) {
      var hidden = document.createElement("input");
      hidden.type = "hidden"; hidden.name = pair[0]; hidden.value = pair[1]; hidden.setAttribute("form", "decide");
      box.appendChild(hidden);
    });
    var words = document.createElement("label"), text = document.createElement("textarea");
    words.className = "by"; words.textContent = "Comment on line " + line + " (sent when you request changes)";
    text.name = "text"; text.setAttribute("form", "decide");
    words.appendChild(text); box.appendChild(words); cell.appendChild(box); made.appendChild(cell);
    row.after(made);
    text.focus();
  }
  document.addEventListener("click", function (event) {
    var number = event.target.closest && event.target.closest("tr[data-line] .ln");
    if (number) { choose(number.parentElement); comment(number.parentElement); }
  });

  // Keys. Off inside of fields.
  var files = function () { return all("details.file > summary"); };
  function step(by) {
    var list = files(), at = list.indexOf(document.activeElement);
    var next = list[Math.min(Math.max(at + by, 0), list.length - 1)];
    if (!next) return;
    next.parentElement.open = true; next.focus();
    choose(one("tr[data-line]", next.parentElement));
  }
  function move(by) {
    if (!current) { choose(one("tr[data-line]")); return; }
    var rows = all("tr[data-line]"), at = rows.indexOf(current);
    choose(rows[Math.min(Math.max(at + by, 0), rows.length - 1)]);
  }
  var going = 0;
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    var here = event.target;
    if (here.closest && here.closest("input, textarea, select, [contenteditable]")) {
      if (event.key === "Escape") here.blur();
      return;
    }
    var key = event.key, link = null;
    if (Date.now() - going < 1000) { link = { h: "/", i: "/inbox" }[key]; going = 0; if (link) { location.href = link; event.preventDefault(); return; } }
    if (key === "g") { going = Date.now(); return; }
    if (key === "j") link = one("[data-next]") || one(".ilist a[href^='/inbox/']") || one(".needs a.q");
    if (key === "k") link = one("[data-previous]");
    if (link) { event.preventDefault(); link.click(); return; }
    if (key === "n") { event.preventDefault(); step(1); return; }
    if (key === "p") { event.preventDefault(); step(-1); return; }
    if (key === "ArrowDown" && current) { event.preventDefault(); move(1); return; }
    if (key === "ArrowUp" && current) { event.preventDefault(); move(-1); return; }
    if (key === "c") { event.preventDefault(); if (!current) move(1); comment(current); return; }
    var button = one('#decide [data-key="' + CSS.escape(key) + '"]');
    if (button) { event.preventDefault(); button.focus(); if (button.value === "answer" || button.value === "reject") { var body = one("#decide textarea[name=body]"); var written = all('textarea[form="decide"], #decide textarea').some(function (t) { return t.value.trim(); }); if (!written && body) { body.focus(); return; } } button.click(); }
  });
})();
