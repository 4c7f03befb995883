"""How the page of `enc attention` looks and answers: its style sheet and its script, both plain."""

STYLE = """
:root { --blue:58,120,235; --red:208,70,30; --gone:#e6e9ec; --gone2:#d5dade; }
@media (prefers-color-scheme: dark) { :root { --blue:96,156,255; --red:255,128,84; --gone:#20262d;
  --gone2:#2b323a; } }
header p { margin:.2rem 0; overflow-wrap:anywhere; }
.text { border-left:3px solid var(--line); padding-left:.6rem; }
.words { color:var(--quiet); font-size:.9rem; }
.bar { display:flex; gap:.5rem; align-items:center; margin:.8rem 0 .5rem; flex-wrap:wrap; }
select, .bar button { font:inherit; color:inherit; background:var(--card); border:1px solid var(--line);
  border-radius:6px; padding:.2rem .6rem; min-height:2.2rem; }
.bar button { min-width:2.6rem; }
#grid { display:grid; gap:2px; }
#grid .label { color:var(--quiet); font-size:.75rem; display:flex; align-items:center;
  justify-content:center; }
#grid button { aspect-ratio:1; padding:0; border:1px solid var(--line); border-radius:3px; overflow:hidden;
  background:var(--back); color:var(--ink); font-size:.7rem; min-width:0; cursor:pointer; }
#grid button[aria-pressed=true] { outline:3px solid rgb(var(--blue)); outline-offset:1px; z-index:1; }
#grid button.gone { cursor:default; background:repeating-linear-gradient(45deg,var(--gone),var(--gone) 4px,
  var(--gone2) 4px,var(--gone2) 8px); }
canvas { display:block; width:100%; height:100%; image-rendering:pixelated; }
dl { display:grid; grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr)); gap:.5rem; margin:.5rem 0; }
dl div { background:var(--card); border:1px solid var(--line); border-radius:6px; padding:.4rem .6rem; }
dt { color:var(--quiet); font-size:.8rem; } dd { margin:0; font-weight:600; }
dd small { font-weight:400; color:var(--quiet); }
#tokens { display:flex; flex-wrap:wrap; gap:4px; }
#tokens button { font:inherit; color:inherit; border:1px solid transparent; border-radius:5px; cursor:pointer;
  padding:.15rem .35rem; min-height:2rem; max-width:100%; overflow-wrap:anywhere; }
#tokens button.special { font-size:.8rem; font-style:italic; }
#tokens button.second { border-bottom-color:var(--quiet); }
#tokens button[aria-pressed=true] { border:2px solid var(--ink); }
#strongest { margin:.6rem 0; padding-left:1.6rem; }
#strongest b { display:inline-block; min-width:3.4rem; }
#matrix { display:flex; gap:6px; margin-top:.8rem; }
#map { aspect-ratio:1; height:auto; width:100%; max-width:34rem; border:1px solid var(--line);
  cursor:crosshair; }
#rows { display:flex; flex-direction:column; font-size:.7rem; color:var(--quiet); max-width:8rem; }
#rows span { flex:1 1 0; min-height:0; overflow:hidden; white-space:nowrap; text-overflow:ellipsis;
  display:flex; align-items:center; justify-content:flex-end; }
#rows span.on { color:var(--ink); font-weight:600; }
@media (min-width:1100px) { main { display:grid; grid-template-columns:minmax(0,5fr) minmax(0,6fr);
  column-gap:2.5rem; align-items:start; } header, .words { grid-column:1 / -1; } }
@media (max-width:600px) { main { padding:.7rem; } #rows { display:none; } #grid button { border-width:0; }
  #grid .value { display:none; } }
"""

SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const T = data.tokens.length;
const bytes = Uint8Array.from(atob(data.weights), letter => letter.charCodeAt(0));
const numbers = new DataView(bytes.buffer);
const there = data.heads.filter(head => !head.gone);
there.forEach((head, place) => { head.place = place; });
const weight = (head, from, to) => numbers.getUint16(2 * ((head.place * T + from) * T + to), true) / 65535;
const signed = x => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(3);
const measures = {
  map: { name: "their maps", about: "Each square is a head: line = token that looks, column = where to." },
  entropy: { name: "entropy", about: "The darker, the more tokens a head looks at alike (bits).",
    show: x => x.toFixed(1) },
  distance: { name: "distance", about: "The darker, the further away a head looks (tokens).",
    show: x => x.toFixed(1) },
  special: { name: "weight on special tokens", about: "The darker, the more weight on special tokens.",
    show: x => Math.round(100 * x) + "%" },
  effect: { name: "effect on the answer", about: "Blue heads raise " + data.answer + ", red ones lower it.",
    show: x => (x < 0 ? "−" : "") + Math.abs(x).toFixed(2) },
  importance: { name: "importance", about: "The darker, the more important: " + data.importanceFrom + ".",
    show: x => x.toPrecision(2) },
};
for (const key of Object.keys(measures))
  if (key === "map" || there.some(head => head[key] !== null))
    at("measure").append(new Option(measures[key].name, key));

const strength = head => head.effect !== null ? Math.abs(head.effect) : -head.entropy;
const stronger = (best, head) => best && strength(best) >= strength(head) ? best : head;
let chosen = there.reduce(stronger, null), token = 0;

function paint(canvas, head, marked) {
  canvas.width = canvas.height = T;
  const style = getComputedStyle(document.documentElement);
  const [r, g, b] = style.getPropertyValue("--blue").split(",").map(Number);
  const context = canvas.getContext("2d"), image = context.createImageData(T, T);
  for (let from = 0; from < T; from++) for (let to = 0; to < T; to++)
    image.data.set([r, g, b, 255 * Math.sqrt(weight(head, from, to))], 4 * (from * T + to));
  context.putImageData(image, 0, 0);
  if (marked) { // the lines above and below the chosen one step back
    context.fillStyle = style.getPropertyValue("--back");
    context.globalAlpha = 0.45;
    context.fillRect(0, 0, T, token);
    context.fillRect(0, token + 1, T, T);
  }
}

function drawGrid() {
  const grid = at("grid"), key = at("measure").value, measure = measures[key];
  grid.replaceChildren();
  grid.style.gridTemplateColumns = "1.6rem repeat(" + data.width + ", minmax(0, 1fr))";
  grid.style.maxWidth = 1.6 + data.width * 4.2 + "rem";
  const label = text => {
    const made = document.createElement("span");
    made.className = "label"; made.textContent = text;
    grid.append(made);
  };
  label("");
  for (let head = 0; head < data.width; head++) label(head);
  const values = there.map(head => head[key] ?? 0);
  const most = Math.max(...values.map(Math.abs), 1e-12);
  const find = new Map(data.heads.map(head => [head.layer + ":" + head.head, head]));
  for (let layer = 0; layer < data.layers; layer++) {
    label(layer);
    for (let number = 0; number < data.width; number++) {
      const head = find.get(layer + ":" + number), cell = document.createElement("button");
      grid.append(cell);
      if (!head || head.gone) {
        cell.className = "gone"; cell.disabled = true;
        cell.title = "layer " + layer + ", head " + number + ": pruned" +
          (head && head.importance !== null ? ", importance " + head.importance.toPrecision(2) : "");
        cell.setAttribute("aria-label", cell.title);
        continue;
      }
      cell.title = "layer " + layer + ", head " + number;
      cell.setAttribute("aria-label", cell.title);
      cell.setAttribute("aria-pressed", head === chosen);
      cell.onclick = () => { chosen = head; drawAll(); };
      if (key === "map") {
        const canvas = document.createElement("canvas");
        paint(canvas, head, false);
        cell.append(canvas);
      } else if (head[key] !== null) {
        const hue = head[key] < 0 ? "--red" : "--blue";
        cell.style.background = "rgba(var(" + hue + ")," + 0.85 * Math.abs(head[key]) / most + ")";
        const value = document.createElement("span");
        value.className = "value"; value.textContent = measure.show(head[key]);
        cell.append(value);
      }
    }
  }
  at("legend").textContent = "Lines are layers, columns heads, counted from 0. " + measure.about +
    (data.heads.some(head => head.gone) ? " Hatched: pruned." : "");
}

function fact(name, value, small) {
  const box = document.createElement("div"), term = document.createElement("dt"),
    text = document.createElement("dd"), more = document.createElement("small");
  term.textContent = name; text.textContent = value + " "; more.textContent = small;
  text.append(more); box.append(term, text); at("facts").append(box);
}

function drawHead() {
  if (!chosen) { at("name").textContent = "No head is left"; return; }
  at("name").textContent = "Layer " + chosen.layer + ", head " + chosen.head;
  at("facts").replaceChildren();
  fact("Entropy", chosen.entropy.toFixed(2) + " bits", "of at most " + Math.log2(T).toFixed(2));
  fact("Distance", chosen.distance.toFixed(1) + " tokens", "");
  fact("On special tokens", Math.round(100 * chosen.special) + "%", "of the weight");
  if (chosen.effect !== null)
    fact("Effect on " + data.answer, signed(chosen.effect),
      data.logit.toFixed(2) + ", without it " + (data.logit - chosen.effect).toFixed(2));
  if (chosen.importance !== null) {
    const known = there.filter(head => head.importance !== null);
    const rank = 1 + known.filter(head => head.importance > chosen.importance).length;
    fact("Importance", chosen.importance.toPrecision(2), "number " + rank + " of " + known.length);
  }
  const row = data.tokens.map((_, to) => weight(chosen, token, to)), most = Math.max(...row);
  const list = at("tokens");
  list.replaceChildren();
  data.tokens.forEach(([text, sequence], number) => {
    const made = document.createElement("button");
    made.textContent = text;
    made.className = sequence === null ? "special" : sequence === 1 ? "second" : "";
    made.style.background = "rgba(var(--blue)," + 0.75 * Math.sqrt(row[number] / most) + ")";
    made.title = row[number].toFixed(3);
    made.setAttribute("aria-pressed", number === token);
    made.onclick = () => { token = number; drawHead(); };
    list.append(made);
  });
  const order = row.map((value, number) => [value, number]).sort((a, b) => b[0] - a[0]).slice(0, 5);
  at("strongest").replaceChildren(...order.map(([value, number]) => {
    const line = document.createElement("li"), share = document.createElement("b");
    share.textContent = value.toFixed(3);
    line.append(share, data.tokens[number][0] + (data.tokens[number][1] === null ? "" : " (" + number + ")"));
    return line;
  }));
  const rows = at("rows");
  rows.replaceChildren();
  if (T <= 48) data.tokens.forEach(([text], number) => {
    const made = document.createElement("span");
    made.textContent = text; made.className = number === token ? "on" : "";
    rows.append(made);
  });
  at("map").style.maxWidth = Math.min(34, Math.max(12, 1.6 * T)) + "rem";
  paint(at("map"), chosen, true);
  at("readout").textContent = "Line: " + data.tokens[token][0] + " (token " + token + "). Point at the map.";
}

function drawAll() { drawGrid(); drawHead(); }

function pointed(event) {
  const box = at("map").getBoundingClientRect();
  const inside = (x, size) => Math.max(0, Math.min(T - 1, Math.floor(T * x / size)));
  return [inside(event.clientY - box.top, box.height), inside(event.clientX - box.left, box.width)];
}
at("map").onpointermove = event => {
  const [from, to] = pointed(event);
  at("readout").textContent =
    data.tokens[from][0] + " → " + data.tokens[to][0] + ": " + weight(chosen, from, to).toFixed(3);
};
at("map").onclick = event => { token = pointed(event)[0]; drawHead(); };
const step = by => { chosen = there[(chosen.place + by + there.length) % there.length]; drawAll(); };
at("before").onclick = () => step(-1);
at("after").onclick = () => step(1);
at("measure").onchange = drawGrid;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
"""
