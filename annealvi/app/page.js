"use strict";
// The page of annealvi open.  The server holds the study; this script shows it.  Texts are inserted
// as text nodes, never as HTML.
(function () {
  const byId = (id) => document.getElementById(id);
  const percent = (share) => (100 * share).toFixed(1) + "%";
  const FILES = {
    "report.html": "the report, which any browser can open without a network",
    "tables.xlsx": "all tables, for Excel or LibreOffice",
    "topics.csv": "the topics",
    "trust.csv": "how reliable each topic is, and why",
    "document_topics.csv": "the topics of each document",
    "by_group.csv": "the share of each topic in each group",
    "by_time.csv": "the share of each topic in each period",
    "topics.safetensors": "the model, for annealvi label and annealvi.load",
    "study.py": "the Python program that repeats this study; it needs documents.csv",
    "documents.csv": "the documents as they were read",
  };
  const ROLES = ["text", "title", "time", "group"];
  const USUAL = {
    text: /^(texts?|abstract|body|content|review|comment|message|description)$/i,
    title: /^(title|name|headline|subject)$/i,
    time: /^(date|created|time|year|published|timestamp)/i,
  };
  const DATE = /^[12]\d{3}([-/.]\d|$)|^\d{1,2}[-/.]\d{1,2}[-/.][12]\d{3}/;
  const UNSPACED = { zh: "Chinese", ja: "Japanese", th: "Thai" };
  const DIGITS = { year: 4, quarter: 7, month: 7, week: 10, day: 10 }; // of the end of a period
  let study = {};
  let changing = false; // whether a person changes the settings of a study that has topics
  let view = "topics";
  let first = 0; // the place of the first document of the list
  let timer;

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function say(text) {
    byId("message").textContent = text;
    byId("message").hidden = !text;
  }

  async function ask(path, options) {
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new Error("annealvi does not answer. If it was stopped, start it again with: annealvi open --folder " + (study.folder || "FOLDER"));
    }
    if (answer.ok) return answer.json();
    const text = await answer.text();
    let message = text;
    try {
      message = JSON.parse(text).error;
    } catch {}
    throw new Error(message);
  }

  // Does something, shows its error if there is one, and shows the study as it is then.
  async function act(work) {
    say("");
    document.body.setAttribute("aria-busy", "true");
    try {
      await work();
      await refresh();
    } catch (error) {
      await refresh().catch(() => {});
      say(error.message);
    }
    document.body.removeAttribute("aria-busy");
  }

  const call = (name, values) => ask("study/" + name, { method: "POST", body: JSON.stringify(values || {}) });

  const tell = (work) => work.catch((error) => say(error.message));

  async function refresh() {
    clearTimeout(timer);
    const before = study;
    study = await call("state");
    if (study.version !== before.version || study.busy !== before.busy) show();
    if (study.line !== null) showProgress();
    if (study.line !== null || study.busy) timer = setTimeout(() => tell(refresh()), 700);
  }

  // ------------------------------------------------------------------ the parts of the page

  function show() {
    const focused = document.activeElement && document.activeElement.id;
    const working = study.line !== null || study.busy;
    const part = working ? "working" : !study.documents ? "start" : !study.topics || changing ? "settings" : "results";
    const moved = byId(part).hidden;
    for (const name of ["start", "settings", "working", "results"]) byId(name).hidden = name !== part;
    byId("headline").textContent = study.name ? "Topics of " + study.name : "Find the topics of your documents";
    byId("facts").textContent =
      (study.documents ? study.documents.toLocaleString("en") + " documents · " : "") +
      "everything stays on this computer, in the folder " + study.folder;
    byId("limit").textContent = "At most " + Math.floor(study.largest / 2 ** 20) + " MB.";
    byId("file").accept = study.endings.join(",");
    if (study.problem) say(study.problem);
    if (working) byId("progress-text").textContent = "Reading the topics";
    if (working) byId("cancel").hidden = study.line === null;
    if (part === "settings") showSettings();
    if (part === "results") showResults();
    if (moved) byId(part).querySelector("h2").focus({ preventScroll: true });
    else if (focused && byId(focused)) byId(focused).focus();
    document.body.dataset.part = part;
    document.body.dataset.version = study.version;
  }

  // The last line that the fit has printed is a progress bar, or says what it does.
  function showProgress() {
    const bar = /(\d+)%\|.*?\| (\d+\/\d+) \[[\d:]+<([\d:?]+)/.exec(study.line);
    const working = (study.line || "Starting") + (study.fits ? ": fit " + (study.fits + 1) : "");
    byId("progress-text").textContent = bar ? `Finding topics: step ${bar[2]}, time left ${bar[3]}` : working;
    if (bar) byId("progress").value = bar[1];
    else byId("progress").removeAttribute("value");
  }

  function options(select, values, chosen) {
    select.replaceChildren(...values.map(([value, text]) => element("option", { value, textContent: text })));
    select.value = values.some(([value]) => value === chosen) ? chosen : values[0][0];
  }

  // ------------------------------------------------------------------ the settings

  function guess() {
    const columns = study.columns.map((name, place) => ({ name, cells: study.first.map((row) => row[place]).filter(Boolean) }));
    const mean = ({ cells }) => cells.reduce((sum, cell) => sum + cell.length, 0) / (cells.length || 1);
    const usual = (role, from) => (from.find(({ name }) => USUAL[role].test(name)) || {}).name;
    const dated = columns.filter(({ cells }) => cells.length && cells.every((cell) => DATE.test(cell)));
    const text = usual("text", columns) || columns.reduce((a, b) => (mean(b) > mean(a) ? b : a)).name;
    const others = columns.filter(({ name }) => name !== text);
    const title = usual("title", others) || "";
    const group = others.find(({ name, cells }) => {
      const different = new Set(cells).size;
      return name !== title && !dated.some((date) => date.name === name) && different > 1 && different <= Math.max(2, cells.length / 2);
    });
    return { text, title, time: usual("time", dated) || (dated[0] || {}).name || "", group: group ? group.name : "", freq: "year", language: "english", n_topics: 20 };
  }

  function showSettings() {
    const form = byId("form");
    const settings = study.next || study.settings || guess();
    byId("file-name").textContent = study.name;
    for (const role of ROLES) {
      const names = study.columns.map((name) => [name, name]);
      options(form[role], role === "text" ? names : [["", "none"], ...names], settings[role]);
    }
    const named = (name) => UNSPACED[name] || name[0].toUpperCase() + name.slice(1);
    const languages = study.languages.map((name) => [name, named(name)]).sort((a, b) => a[1].localeCompare(b[1]));
    options(form.language, [...languages, ["", "another, or several"]], settings.language);
    form.freq.value = settings.freq;
    form.auto.checked = settings.n_topics === "auto";
    if (settings.n_topics !== "auto") form.n_topics.value = settings.n_topics;
    byId("back").hidden = !study.topics;
    byId("stopped").hidden = !study.next;
    showFirst();
  }

  function showFirst() {
    const form = byId("form");
    const used = (name) => ROLES.some((role) => form[role].value === name);
    const cell = (tag) => (text, place) => element(tag, { textContent: text, className: used(study.columns[place]) ? "used" : "" });
    byId("first").tHead.replaceChildren(element("tr", {}, ...study.columns.map(cell("th"))));
    byId("first").tBodies[0].replaceChildren(...study.first.slice(0, 5).map((row) => element("tr", {}, ...row.map(cell("td")))));
    form.n_topics.disabled = form.auto.checked;
    form.freq.disabled = !form.time.value;
  }

  function settings() {
    const form = byId("form");
    const values = Object.fromEntries([...ROLES, "freq", "language"].map((name) => [name, form[name].value]));
    return { ...values, n_topics: form.auto.checked ? "auto" : Number(form.n_topics.value) };
  }

  function upload(file) {
    if (!file) return;
    if (study.topics && !confirm("The documents replace this study; its topics are lost.")) return;
    act(async () => {
      if (file.size > study.largest) throw new Error(file.name + " is larger than " + Math.floor(study.largest / 2 ** 20) + " MB.");
      byId("facts").textContent = "Reading " + file.name + " …";
      changing = false;
      await ask("upload?name=" + encodeURIComponent(file.name), { method: "POST", body: file });
    });
    byId("file").value = "";
  }

  // ------------------------------------------------------------------ the results

  function showResults() {
    for (const button of document.querySelectorAll("nav [data-view]")) {
      button.setAttribute("aria-current", String(button.dataset.view === view));
      byId("view-" + button.dataset.view).hidden = button.dataset.view !== view;
    }
    const topics = study.topics.map(({ topic, label }) => [String(topic), topic + " " + label]);
    for (const form of [byId("search"), byId("comparison")]) {
      const all = form.id === "search" ? [["", "all"]] : [];
      options(form.topic, [...all, ...topics], form.topic.value);
    }
    options(byId("search").group, [["", "all"], ...study.groups.map((name) => [name, name])], byId("search").group.value);
    byId("search").group.parentElement.hidden = !study.groups.length;
    const roles = [["group", "groups"], ["time", "periods"]].filter(([role]) => study.settings[role]);
    if (!roles.length) roles.push(["", "no column of groups or dates was chosen"]);
    options(byId("comparison").role, roles, byId("comparison").role.value);
    byId("undo").disabled = !study.edits.length;
    if (view === "topics") showTopics();
    if (view === "documents") tell(showDocuments());
    if (view === "compare") tell(showComparison());
    if (view === "downloads") showDownloads();
    if (view === "report" && byId("report").dataset.version !== String(study.version)) {
      byId("report").dataset.version = study.version;
      byId("report").src = "results/report.html?" + study.version;
    }
  }

  function showTopics() {
    const rows = study.topics.map((topic) => {
      const tick = element("input", { type: "checkbox", id: "tick-" + topic.topic, ariaLabel: "Tick topic " + topic.topic + ", " + topic.label });
      const label = element("input", { type: "text", id: "label-" + topic.topic, value: topic.label, ariaLabel: "Label of topic " + topic.topic, maxLength: 200 });
      tick.addEventListener("change", countTicked);
      label.addEventListener("change", () => edit("label", [topic.topic], label.value.trim()));
      const words = element("td", { className: "words", textContent: topic.words });
      if (topic.weak) words.append(element("p", { className: "weak", textContent: topic.weak[0].toUpperCase() + topic.weak.slice(1) + "." }));
      const number = (text) => element("td", { className: "number", textContent: text });
      return element("tr", {}, element("td", {}, tick), number(topic.topic), element("td", {}, label), number(percent(topic.share)), number(topic.documents), words);
    });
    byId("topics").tBodies[0].replaceChildren(...rows);
    countTicked();
  }

  const ticked = () => [...byId("topics").querySelectorAll(":checked")].map((tick) => Number(tick.id.slice(5)));

  function countTicked() {
    byId("merge").disabled = ticked().length < 2;
    byId("drop-topics").disabled = !ticked().length || ticked().length === study.topics.length;
  }

  const edit = (kind, topics, label) => act(() => call("edit", { version: study.version, kind, topics, label: label || "" }));

  async function showDocuments() {
    const form = byId("search");
    const topic = form.topic.value ? Number(form.topic.value) : null;
    const { n, rows } = await call("documents", { query: form.query.value, topic, group: form.group.value, start: first });
    const last = Math.min(first + rows.length, n);
    byId("number").textContent = n ? `${first + 1} to ${last} of ${n.toLocaleString("en")} documents` : "No document contains this.";
    byId("earlier").disabled = !first;
    byId("later").disabled = last >= n;
    byId("list-documents").replaceChildren(
      ...rows.map(({ number, title, text, label, share }) => {
        const button = element("button", { type: "button" }, title || text || "(empty)", element("small", { textContent: label + " · " + percent(share) }));
        button.addEventListener("click", (event) => {
          for (const other of byId("list-documents").querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
          button.setAttribute("aria-current", "true");
          byId("document").src = "documents/" + number;
          if (event.isTrusted && matchMedia("(max-width: 800px)").matches) byId("document").scrollIntoView();
        });
        return element("li", {}, button);
      })
    );
    if (rows.length) byId("list-documents").querySelector("button").click();
  }

  async function showComparison() {
    const form = byId("comparison");
    byId("shares").tBodies[0].replaceChildren();
    if (!form.role.value) return;
    const [shares, errors] = await call("compare", { role: form.role.value });
    const label = study.topics.find(({ topic }) => String(topic) === form.topic.value).label;
    const place = shares.columns.indexOf(label, 1);
    const rows = shares.index.map((name, row) => {
      const share = shares.data[row][place];
      const margin = 1.96 * errors.data[row][place]; // null, for a single document, becomes 0
      const known = errors.data[row][place] !== null;
      return { name: form.role.value === "time" ? name.slice(0, DIGITS[study.settings.freq]) : String(name), n: shares.data[row][0], share, known, low: Math.max(share - margin, 0), high: Math.min(share + margin, 1) };
    });
    const top = Math.max(...rows.map(({ high }) => high), 1e-9);
    const part = (from, to, className) => {
      const made = element("span", { className });
      made.style.left = percent(from / top);
      made.style.width = percent((to - from) / top);
      return made;
    };
    byId("shares").tBodies[0].replaceChildren(
      ...rows.map(({ name, n, share, known, low, high }) => {
        const bar = element("span", { className: "bar" }, part(0, share, "own"), part(low, high, "interval"));
        const interval = known ? percent(low).slice(0, -1) + "–" + percent(high) : "unknown";
        const number = (textContent) => element("td", { className: "number", textContent });
        const head = element("th", { scope: "row", textContent: name });
        return element("tr", {}, head, element("td", {}, bar), number(share === null ? "–" : percent(share)), number(interval), number(n.toLocaleString("en")));
      })
    );
  }

  function showDownloads() {
    byId("folder").textContent = study.folder + "/results.";
    const there = ([name]) => !(name === "by_group.csv" && !study.settings.group) && !(name === "by_time.csv" && !study.settings.time);
    byId("files").replaceChildren(
      ...Object.entries(FILES).filter(there).map(([name, text]) => element("li", {}, element("a", { href: "results/" + name, textContent: name, download: name }), ": " + text))
    );
  }

  // ------------------------------------------------------------------ what a person does

  byId("file").addEventListener("change", () => upload(byId("file").files[0]));
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault(); // else the browser would leave the page and open the file
      byId("drop").classList.toggle("over", name === "dragover");
      if (name === "drop" && !byId("start").hidden) upload(event.dataTransfer.files[0]);
    });
  }
  byId("form").addEventListener("change", showFirst);
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (study.edits.length && !confirm("New topics replace the present ones, and your changes to them are lost.")) return;
    changing = false;
    act(() => call("fit", settings()));
  });
  byId("resume").addEventListener("click", () => act(() => call("resume")));
  byId("cancel").addEventListener("click", () => act(() => call("cancel")));
  byId("back").addEventListener("click", () => ((changing = false), show()));
  byId("change").addEventListener("click", () => ((changing = true), show()));
  byId("other").addEventListener("click", () => {
    byId("settings").hidden = true;
    byId("start").hidden = false;
    byId("start").querySelector("h2").focus();
  });
  for (const button of document.querySelectorAll("nav [data-view]")) {
    button.addEventListener("click", () => {
      view = button.dataset.view;
      showResults();
      byId("view-" + view).querySelector("h2").focus({ preventScroll: true });
    });
  }
  byId("merge").addEventListener("click", () => edit("merge", ticked()));
  byId("drop-topics").addEventListener("click", () => edit("drop", ticked()));
  byId("undo").addEventListener("click", () => edit("undo", []));
  const search = () => ((first = 0), tell(showDocuments()));
  byId("search").addEventListener("submit", (event) => (event.preventDefault(), search()));
  byId("search").addEventListener("change", search);
  byId("earlier").addEventListener("click", () => ((first = Math.max(first - 25, 0)), tell(showDocuments())));
  byId("later").addEventListener("click", () => ((first += 25), tell(showDocuments())));
  byId("comparison").addEventListener("change", () => tell(showComparison()));
  byId("comparison").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("focus", () => tell(refresh()));
  tell(refresh());
})();
