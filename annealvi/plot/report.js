"use strict";
// Shows the data of the page.  Texts are inserted as text nodes, never as HTML.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 800px)");
  const touch = matchMedia("(pointer: coarse)");
  const order = data.order;
  let chosen = order[0];

  const byId = (id) => document.getElementById(id);
  const percent = (share, digits = 1) => (100 * share).toFixed(digits) + "%";
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  // ---------------------------------------------------------------- figures

  const cut = (text) => (text.length > 16 ? text.slice(0, 15) + "…" : text);

  const printed = () => document.documentElement.classList.contains("printed");

  function themed(layout) {
    const own = structuredClone(layout);
    const line = colour("line");
    Object.assign(own, {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("text"), size: 12, family: getComputedStyle(document.body).fontFamily },
      margin: own.margin || { l: 50, r: 16, t: 16, b: 40 },
      hoverlabel: { bgcolor: colour("panel"), bordercolor: line, font: { color: colour("text") }, namelength: -1 },
    });
    own.xaxis = own.xaxis || {};
    own.yaxis = own.yaxis || {};
    for (const name of Object.keys(own).filter((key) => /^[xy]axis\d*$/.test(key))) {
      const axis = own[name];
      Object.assign(axis, { gridcolor: line, linecolor: line, zerolinecolor: line, automargin: true });
      axis.fixedrange = touch.matches; // on a touch screen, a finger scrolls the page instead
      if (narrow.matches && axis.ticktext) axis.ticktext = axis.ticktext.map(cut);
    }
    if (touch.matches) own.dragmode = false;
    return own;
  }

  function paint(trace) {
    if (trace.type !== "heatmap") return trace;
    const colorscale = [[0, colour("panel")], [1, colour("accent")]];
    const colorbar = { thickness: 10, outlinewidth: 0 };
    return Object.assign({}, trace, { colorscale, colorbar, showscale: !narrow.matches, xgap: 1, ygap: 1 });
  }

  // The topic of a point: heatmaps have a topic for each row, circles and curves one topic each.
  function topicOf({ data: trace, y, customdata }) {
    if (trace.type === "heatmap") return trace.meta[y];
    return Array.isArray(customdata) ? customdata[0] : trace.meta === "circles" ? customdata : undefined;
  }

  function draw(name, figure) {
    const place = byId("figure-" + name);
    const drawn = place.classList.contains("js-plotly-plot");
    const layout = themed(figure.layout);
    // without a size, plotly keeps the size of the screen
    if (printed()) Object.assign(layout, { width: place.clientWidth, height: place.clientHeight });
    else layout.autosize = true;
    Plotly.react(place, figure.data.map(paint), layout, { responsive: true, displayModeBar: false });
    if (!drawn) {
      place.on("plotly_click", (event) => {
        const topic = topicOf(event.points[0]);
        if (topic !== undefined) choose(topic, true);
      });
    }
  }

  function drawMap() {
    const figure = data.figures.map;
    const circles = { ...figure.data[figure.data.length - 1] };
    const { x, y } = data.map;
    const { clientWidth: width, clientHeight: height } = byId("figure-map");
    const layout = {
      xaxis: { visible: false, range: around(x, width) },
      yaxis: { visible: false, range: around(y, height) },
      margin: { l: 0, r: 0, t: 0, b: 0 },
    };
    Object.assign(circles, names(pixels(x, width), pixels(y, height), width));
    draw("map", { data: [...figure.data.slice(0, -1), circles], layout: { ...figure.layout, ...layout } });
    showOnMap();
  }

  // An axis of a size in pixels, with space for circles and for the names above them.
  function around(values, size) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const room = Math.max(0.14, 44 / Math.max(size - 88, 88)) * (high - low) || 1;
    return [low - room, high + room];
  }

  function pixels(values, size) {
    const [low, high] = around(values, size);
    return values.map((value) => (size * (value - low)) / (high - low));
  }

  // Writes a name above a circle if it does not cover another name or circle.  Large topics come
  // first.  If a name does not fit, its first word is used, or a number in the circle.
  function names(x, y, width) {
    const taken = [];
    const text = data.topics.map((_, k) => String(k));
    const textposition = data.topics.map(() => "middle center");
    for (const k of order) {
      const radius = 21 * Math.sqrt(data.topics[k].share / data.topics[order[0]].share);
      const at = y[k] + radius / 0.8 + 8; // the position at which plotly writes the name
      const fits = (name) => {
        const half = halfWidth(name);
        const covers = (other) => Math.abs(x[k] - other.x) < half + other.half && Math.abs(at - other.y) < 16;
        const onCircle = (j) => j !== k && Math.abs(x[k] - x[j]) < half + 6 && Math.abs(at - y[j]) < 13;
        return x[k] >= half && x[k] <= width - half && !order.some(onCircle) && !taken.some(covers);
      };
      const label = data.topics[k].label;
      const name = [label.length > 28 ? label.slice(0, 27) + "…" : label, label.split(", ")[0].slice(0, 28)].find(fits);
      if (name === undefined) continue;
      taken.push({ x: x[k], y: at, half: halfWidth(name) });
      text[k] = plain(name);
      textposition[k] = "top center";
    }
    return { text, textposition };
  }

  const halfWidth = (text) => 3.3 * text.length + 4; // a character is about 6.6 pixels wide
  // Escapes tags, because plotly would interpret them.
  const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  function showOnMap() {
    const place = byId("figure-map");
    const last = place.data.length - 1;
    const colours = data.topics.map((_, k) => colour(k === chosen ? "accent" : "fill"));
    const opacities = data.topics.map((_, k) => (k === chosen ? 0.95 : 0.4));
    Plotly.restyle(place, { "marker.color": [colours], "marker.opacity": [opacities] }, [last]);
  }

  function drawCourse() {
    if (!data.courses) return;
    const { labels, nDocuments, shares, margins } = data.courses;
    const trace = {
      x: labels,
      y: shares[chosen],
      error_y: { array: margins[chosen], thickness: 1, width: 0 },
      customdata: nDocuments.map((n, i) => [n, margins[chosen][i] ?? NaN]),
      mode: "lines+markers",
      fill: "tozeroy",
      marker: { size: 4 },
      line: { color: colour("fill") },
      hovertemplate: "%{x}: %{y:.2%} ± %{customdata[1]:.2%} of the words, %{customdata[0]} documents<extra></extra>",
    };
    const layout = {
      xaxis: { ...data.figures.time.layout.xaxis },
      yaxis: { tickformat: ".0%", rangemode: "tozero", nticks: 4 },
      showlegend: false,
    };
    draw("course", { data: [trace], layout });
  }

  const sections = document.body.dataset.sections.split(" ").filter(Boolean);
  const near = new IntersectionObserver(drawSections, { rootMargin: "600px" });

  // Figures of many topics take long to draw, so a figure is drawn when it is scrolled into view.
  function drawSections(entries) {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      draw(target.id, data.figures[target.id]);
    }
  }

  function drawAll() {
    drawMap();
    drawCourse();
    for (const name of sections) {
      near.unobserve(byId(name));
      near.observe(byId(name));
    }
  }

  // On paper everything is drawn: in light colours, and not wider than the page.
  function beforePrint() {
    document.documentElement.classList.add("printed");
    for (const name of sections) {
      const place = byId("figure-" + name);
      place.style.zoom = Math.min(1, byId(name).clientWidth / (parseFloat(place.style.minWidth) || 1));
      near.unobserve(byId(name));
    }
    drawMap();
    drawCourse();
    for (const name of sections) draw(name, data.figures[name]);
  }

  function afterPrint() {
    document.documentElement.classList.remove("printed");
    for (const name of sections) byId("figure-" + name).style.zoom = "";
    drawAll();
  }

  function openSections() {
    for (const name of sections) {
      byId(name).hidden = false;
      const figure = data.figures[name];
      const place = byId("figure-" + name);
      if (figure.layout.height) place.style.height = figure.layout.height + "px";
      const columns = figure.data[0].type === "heatmap" && figure.layout.xaxis.ticktext.length;
      if (columns) place.style.minWidth = 200 + 20 * columns + "px";
    }
  }

  // ------------------------------------------------------------- one topic

  function relevant(topic, lambda) {
    const ranked = topic.words.map((word, i) => ({
      word: data.vocabulary[word],
      own: Math.exp(topic.logs[i]),
      all: Math.exp(data.logs[word]),
      rank: topic.logs[i] - (1 - lambda) * data.logs[word],
    }));
    return ranked.sort((a, b) => b.rank - a.rank).slice(0, data.nWords);
  }

  function times(lift) {
    return "×" + (lift < 9.95 ? lift.toFixed(1) : Math.round(lift).toLocaleString("en"));
  }

  function bar(...parts) {
    const whole = element("span", { className: "bar" });
    for (const [share, name] of parts) {
      const part = element("span", { className: name });
      part.style.width = percent(Math.min(share, 1));
      whole.append(part);
    }
    return whole;
  }

  function showWords() {
    const lambda = Number(byId("relevance").value);
    byId("relevance-value").textContent = "λ = " + lambda.toFixed(2);
    const words = relevant(data.topics[chosen], lambda);
    const most = Math.max(...words.map((word) => word.own));
    byId("words").replaceChildren(
      ...words.flatMap(({ word, own, all }) => [
        element("span", { className: "name", textContent: word, title: word }),
        bar([own / most, "own"], [all / most, "all"]),
        element("span", { className: "value", textContent: times(own / all), title: percent(own, 2) + " of the topic’s words" }),
      ])
    );
  }

  function showGroups() {
    if (!data.groups) return;
    const { labels, nDocuments, shares, margins, ofRefits } = data.groups;
    const own = shares[chosen];
    // why an interval is missing or wide
    const reason = (g) => {
      if (!ofRefits) return "";
      if (margins[chosen][g] === null) return " no interval: few refits found the topic, or there is one document";
      const between = ofRefits[chosen][g];
      return 2 * between ** 2 > margins[chosen][g] ** 2 ? " mostly between refits (± " + (100 * between).toFixed(1) + ")" : "";
    };
    const margin = (g) => (margins[chosen][g] === null ? "" : " ± " + (100 * margins[chosen][g]).toFixed(1));
    const ranked = labels.map((_, g) => g).filter((g) => own[g] !== null).sort((a, b) => own[b] - own[a]);
    const most = Math.max(...ranked.map((g) => own[g]), 1e-9);
    byId("group-bars").replaceChildren(
      ...ranked.slice(0, 15).flatMap((g) => [
        element("span", { className: "name", textContent: labels[g], title: nDocuments[g] + " documents" }),
        bar([own[g] / most, "own"]),
        element("span", { className: "value", textContent: percent(own[g]) + margin(g) + reason(g) }),
      ])
    );
  }

  function chip(topic, behind) {
    const made = element("button", { type: "button", textContent: topic + " " + data.topics[topic].label + behind });
    made.addEventListener("click", () => choose(topic, true));
    return made;
  }

  function marked(text, words) {
    const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const pattern = new RegExp("(?<![\\p{L}\\p{N}])(" + escaped.join("|") + ")(?![\\p{L}\\p{N}])", "giu");
    return text.split(pattern).map((part, i) => (i % 2 ? element("mark", { textContent: part }) : part));
  }

  function showDocuments() {
    const topic = data.topics[chosen];
    const words = relevant(topic, data.relevance).map(({ word }) => word);
    byId("document-part").hidden = !topic.documents.length;
    byId("documents").replaceChildren(
      ...topic.documents.map((number, i) => {
        const { title, text, topics } = data.documents[number];
        const start = text === undefined ? "" : text.slice(0, 90) + (text.length > 90 ? "…" : "");
        const own = topics.find(([k]) => k === chosen);
        const made = element(
          "details",
          { open: i === 0 },
          element(
            "summary",
            {},
            element("span", { className: "share", textContent: own ? percent(own[1], 0) : "" }),
            title || start || "Document " + number
          )
        );
        if (text !== undefined) made.append(element("p", { className: "text" }, ...marked(text, words)));
        const others = topics.filter(([k]) => k !== chosen);
        if (others.length) {
          made.append(element("p", { className: "chips" }, ...others.map(([k, share]) => chip(k, " · " + percent(share, 0)))));
        }
        return made;
      })
    );
  }

  function showTopic() {
    const topic = data.topics[chosen];
    byId("topic-number").textContent = "Topic " + chosen;
    byId("topic-label").textContent = topic.label;
    byId("topic-facts").textContent = percent(topic.share) + " of all words";
    byId("topic-weak").textContent = topic.weak ? topic.weak[0].toUpperCase() + topic.weak.slice(1) + "." : "";
    byId("topic-weak").hidden = !topic.weak;
    byId("near").replaceChildren(...topic.near.map((k) => chip(k, "")));
    showWords();
    showGroups();
    showDocuments();
    for (const button of byId("list").querySelectorAll("button")) {
      const current = Number(button.dataset.topic) === chosen;
      button.setAttribute("aria-current", String(current));
      if (current) inView(button);
    }
  }

  // Scrolls the list, but not the page.
  function inView(button) {
    const list = byId("list");
    const top = button.offsetTop - list.offsetTop;
    if (top < list.scrollTop || top + button.offsetHeight > list.scrollTop + list.clientHeight) {
      list.scrollTop = top - list.clientHeight / 2;
    }
  }

  function choose(topic, scroll) {
    chosen = topic;
    showTopic();
    showOnMap();
    drawCourse();
    history.replaceState(null, "", "#topic-" + topic);
    const panel = byId("topic");
    const top = panel.getBoundingClientRect().top;
    if (scroll && (top < 0 || top > innerHeight * 0.6)) panel.scrollIntoView();
  }

  // ------------------------------------------------------------- documents

  const { numbers: readable, words: vocabulary, nDocuments } = data.reading;
  const LISTED = 100;
  // Okabe and Ito's colours; topics with smaller shares in the document are grey.
  const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"];
  const unspaced = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]/;
  const spaced = (text) => text.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]+/gu, " ");
  const paintOf = (topics) => new Map(topics.map(([k], i) => [k, COLOURS[i]]));

  function stripes({ topics }) {
    const colours = paintOf(topics);
    return element(
      "span",
      { className: "bar" },
      ...topics.map(([k, share]) => {
        const part = element("span", { title: k + " " + data.topics[k].label + " · " + percent(share, 0) });
        Object.assign(part.style, { width: percent(share), background: colours.get(k) });
        return part;
      })
    );
  }

  function headline(number) {
    const { title, text } = data.documents[number];
    return title || text.slice(0, 90) || "Document " + number;
  }

  // All text that a search looks at, made once.
  const haystacks = new Map();
  function haystack(number) {
    if (!haystacks.has(number)) {
      const { title = "", text = "", topics, group = "" } = data.documents[number];
      const labels = topics.map(([k]) => data.topics[k].label);
      haystacks.set(number, [title, text, group, ...labels].join("\n").toLowerCase());
    }
    return haystacks.get(number);
  }

  function listDocuments() {
    const wanted = byId("reading-search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = readable.filter((number) => wanted.every((word) => haystack(number).includes(word)));
    const shown = hits.length > LISTED ? " The first " + LISTED + " are listed." : "";
    byId("reading-count").textContent = hits.length.toLocaleString("en") + " documents." + shown;
    byId("reading-list").replaceChildren(
      ...hits.slice(0, LISTED).map((number) => {
        const button = element("button", { type: "button" }, headline(number), stripes(data.documents[number]));
        button.addEventListener("click", () => readDocument(number, button));
        return element("li", {}, button);
      })
    );
    const first = byId("reading-list").querySelector("button");
    if (first) readDocument(hits[0], first);
    else byId("reading-document").replaceChildren();
  }

  function readDocument(number, button) {
    const { text, topics, words, group } = data.documents[number];
    const colours = paintOf(topics);
    const topicOfWord = new Map(words.map(([word, k, percent]) => [spaced(vocabulary[word]), [k, percent]]));
    const patterns = [...topicOfWord.keys()]
      .sort((a, b) => b.length - a.length)
      .map((word) => {
        const pattern = word.replaceAll(" ", "[^\\p{L}\\p{M}\\p{N}]+");
        return unspaced.test(word) ? pattern : "(?<![\\p{L}\\p{N}])" + pattern + "(?![\\p{L}\\p{M}\\p{N}])";
      });
    const pieces = patterns.length ? text.split(new RegExp("(" + patterns.join("|") + ")", "giu")) : [text];
    const painted = pieces.map((piece, i) => {
      const found = i % 2 && topicOfWord.get(spaced(piece));
      if (!found) return piece;
      const [k, share] = found;
      const made = element("mark", { textContent: piece, title: k + " " + data.topics[k].label + ": " + share + "%" });
      made.style.background = (colours.get(k) || "#999999") + Math.round(1.5 * share).toString(16).padStart(2, "0");
      return made;
    });
    for (const other of byId("reading-list").querySelectorAll("button")) {
      other.setAttribute("aria-current", String(other === button));
    }
    const keys = topics.map(([k, share]) => {
      const made = chip(k, " · " + percent(share, 0));
      made.style.borderLeft = "12px solid " + colours.get(k);
      return made;
    });
    byId("reading-document").replaceChildren(
      element("h3", { textContent: headline(number) }),
      element("p", { className: "facts", textContent: "Document " + number + (group === undefined ? "" : " · " + group) }),
      stripes(data.documents[number]),
      element("p", { className: "chips" }, ...keys),
      element("p", { className: "text" }, ...painted)
    );
  }

  function openReading() {
    if (!readable.length) return;
    const sample = readable.length < nDocuments;
    byId("reading").hidden = false;
    byId("reading-note").textContent = sample
      ? "This file contains a sample of " + readable.length.toLocaleString("en") + " of the " + nDocuments.toLocaleString("en") + " documents, evenly spaced."
      : "All documents are listed here.";
    byId("reading-search").addEventListener("input", listDocuments);
    listDocuments();
  }

  // ----------------------------------------------------------------- list

  function fillList() {
    const most = data.topics[order[0]].share || 1;
    byId("list").replaceChildren(
      ...order.map((k) => {
        const topic = data.topics[k];
        const button = element(
          "button",
          { type: "button" },
          element("span", { className: "no", textContent: k }),
          element(
            "span",
            { className: "name", title: topic.label },
            topic.label,
            ...(topic.weak ? [element("span", { className: "weak", textContent: " " + topic.weak.split(":")[0], title: topic.weak })] : [])
          ),
          element("span", { className: "share", textContent: percent(topic.share) })
        );
        button.dataset.topic = k;
        button.style.setProperty("--share", percent(topic.share / most));
        button.addEventListener("click", () => choose(k, true));
        return element("li", {}, button);
      })
    );
  }

  function search() {
    const wanted = byId("search").value.trim().toLowerCase();
    const items = [...byId("list").children];
    for (const item of items) {
      const topic = data.topics[Number(item.firstChild.dataset.topic)];
      const words = relevant(topic, data.relevance).map(({ word }) => word.toLowerCase());
      item.hidden = !(topic.label.toLowerCase().includes(wanted) || words.some((word) => word.includes(wanted)));
    }
    byId("no-match").hidden = items.some((item) => !item.hidden);
  }

  // Sorts the table of all topics by a column; a second click reverses the order.
  function sortTable(column) {
    const body = byId("rows");
    const heading = byId("headings").children[column];
    const falling = heading.getAttribute("aria-sort") !== "descending";
    for (const other of byId("headings").children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const value = (row) => row.children[column].textContent;
    const compare = (a, b) => parseFloat(value(a)) - parseFloat(value(b)) || value(a).localeCompare(value(b));
    body.append(...[...body.rows].sort((a, b) => (falling ? compare(b, a) : compare(a, b))));
  }

  function step(by) {
    const place = order.indexOf(chosen) + by;
    choose(order[(place + order.length) % order.length], false);
  }

  function fromAddress() {
    const found = /^#topic-(\d+)$/.exec(location.hash);
    if (found && Number(found[1]) < data.topics.length) choose(Number(found[1]), true);
  }

  byId("relevance").value = data.relevance;
  byId("course-part").hidden = !data.courses;
  byId("group-part").hidden = !data.groups;
  byId("relevance").addEventListener("input", showWords);
  byId("search").addEventListener("input", search);
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  [...byId("headings").children].forEach((heading, column) => {
    heading.firstChild.addEventListener("click", () => sortTable(column));
  });
  addEventListener("hashchange", fromAddress);
  addEventListener("beforeprint", beforePrint);
  addEventListener("afterprint", afterPrint);
  dark.addEventListener("change", drawAll);
  narrow.addEventListener("change", drawAll);
  openSections();
  fillList();
  drawAll();
  showTopic();
  openReading();
  fromAddress();
  document.body.dataset.ready = "true";
})();
