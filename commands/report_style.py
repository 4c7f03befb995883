"""How a report looks, and the script that draws its charts in the colours of the page."""

STYLE = """
:root { --page:#f4f6f8; --good:#2b8a3e; --bad:#c92a2a; --grid:#e6eaee; --back:#fff;
  --c1:#2f6fde; --c2:#d9620f; --c3:#2b8a3e; --c4:#9c36b5; --c5:#8a949e; --c6:#0b8ea8; --c7:#d6336c;
  --heat0:#eef3fb; --heat1:#86aef0; --heat2:#1c4fae; }
@media (prefers-color-scheme: dark) { :root { --page:#0c1014; --good:#69db7c; --bad:#ff8787; --grid:#262e37;
  --back:#141a21; --card:#1b232c; --line:#2d3640;
  --c1:#6ea8fe; --c2:#ffa05c; --c3:#69db7c; --c4:#da8fe8; --c5:#7f8a96; --c6:#4dd0e6; --c7:#ff86b0;
  --heat0:#1a2430; --heat1:#33619f; --heat2:#a8ccff; } }
body { background:var(--page); }
main { max-width:78rem; padding:1.6rem 1.2rem 3rem; }
header { margin:.4rem 0 1.4rem; }
.over { color:var(--quiet); font-size:.85rem; margin:0 0 .5rem; overflow-wrap:anywhere; }
h1 { font-size:clamp(1.25rem, 1rem + 1.2vw, 1.75rem); line-height:1.3; font-weight:650;
  letter-spacing:-.01em; max-width:64rem; margin:0 0 .8rem; text-wrap:pretty; }
h2 { font-size:1.12rem; font-weight:650; }
h3 { font-size:.95rem; font-weight:600; margin:1.1rem 0 .2rem; overflow-wrap:anywhere; }
header ul { margin:0; padding:0; list-style:none; color:var(--quiet); font-size:.9rem; max-width:66rem; }
header li { margin:.15rem 0; overflow-wrap:anywhere; }
.figures { display:grid; grid-template-columns:repeat(auto-fit, minmax(12.5rem, 1fr)); gap:.8rem;
  margin:0 0 .9rem; }
.figures div { background:var(--back); border:1px solid var(--line); border-radius:12px; padding:.8rem 1rem; }
.figures dt { color:var(--quiet); font-size:.82rem; }
.figures dd { margin:0; }
.figures .big { font-size:1.75rem; font-weight:650; line-height:1.25; font-variant-numeric:tabular-nums;
  letter-spacing:-.02em; }
.figures .big small { font-size:1rem; font-weight:500; letter-spacing:0; }
.figures .was { color:var(--quiet); font-size:.85rem; }
.grid { display:grid; grid-template-columns:repeat(2, minmax(0, 1fr)); gap:.9rem; }
.card { background:var(--back); border:1px solid var(--line); border-radius:12px; padding:1.1rem 1.2rem 1rem;
  min-width:0; grid-column:1 / -1; }
.card.half { grid-column:auto; }
.card > p { margin:.3rem 0 .7rem; max-width:52rem; }
.card p.note { color:var(--quiet); font-size:.85rem; margin:.5rem 0 0; }
.pair { display:grid; grid-template-columns:repeat(2, minmax(0, 1fr)); gap:0 1.6rem; }
.plot { width:100%; min-width:0; }
.scroll { overflow-x:auto; -webkit-overflow-scrolling:touch; margin:.6rem -1.2rem 0; padding:0 1.2rem; }
table { border-collapse:collapse; width:100%; font-size:.88rem; font-variant-numeric:tabular-nums; }
th { text-align:left; font-weight:500; color:var(--quiet); font-size:.8rem; white-space:nowrap;
  border-bottom:1px solid var(--line); padding:.35rem .7rem .35rem 0; vertical-align:bottom; }
td { padding:.45rem .7rem .45rem 0; border-bottom:1px solid var(--grid); vertical-align:top; }
tr:last-child td { border-bottom:0; }
th.n, td.n { text-align:right; white-space:nowrap; }
th.claim { padding-left:1rem; }
td small { color:var(--quiet); font-size:.78rem; display:block; }
td .mark { display:inline-block; min-width:1.5rem; text-align:center; border-radius:1rem; font-size:.75rem;
  font-weight:650; line-height:1.5rem; color:var(--back); background:var(--c5); margin-right:.5rem; }
td.step { white-space:nowrap; }
tr.end td { background:color-mix(in srgb, var(--c1) 9%, transparent); }
.k1 { background:var(--c1) !important; } .k2 { background:var(--c2) !important; }
.k3 { background:var(--c3) !important; } .k4 { background:var(--c4) !important; }
td.claim { padding-left:1rem; color:var(--quiet); min-width:11rem; max-width:17rem; font-size:.83rem;
  line-height:1.4; }
.worse { color:var(--bad); } .better { color:var(--good); }
pre { background:var(--card); border:1px solid var(--line); border-radius:8px; margin:.25rem 0 .9rem;
  padding:.6rem .8rem; font:.82rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
  white-space:pre-wrap; overflow-wrap:anywhere; }
.run { font-size:.88rem; margin:.6rem 0 0; overflow-wrap:anywhere; } .run span { color:var(--quiet); }
code { font:.86em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; overflow-wrap:anywhere; }
dl.facts { display:grid; grid-template-columns:max-content minmax(0, 1fr); gap:.25rem 1.2rem;
  margin:.6rem 0 0; font-size:.88rem; }
dl.facts dt { color:var(--quiet); } dl.facts dd { margin:0; overflow-wrap:anywhere; }
.missing { padding-left:1.1rem; margin:.5rem 0 0; font-size:.88rem; } .missing li { margin:.35rem 0; }
details { margin-top:.8rem; } summary { cursor:pointer; color:var(--quiet); font-size:.88rem; }
footer { color:var(--quiet); font-size:.82rem; margin-top:1.4rem; }
@media (max-width:60rem) { .card.half { grid-column:1 / -1; }
  .pair { grid-template-columns:minmax(0, 1fr); } }
@media (max-width:38rem) { main { padding:1rem .7rem 2rem; } .card { padding:.9rem .8rem .8rem; }
  .scroll { margin:.6rem -.8rem 0; padding:0 .8rem; } .figures { grid-template-columns:1fr 1fr; gap:.6rem; }
  .figures div { padding:.65rem .75rem; } .figures .big { font-size:1.35rem; }
  dl.facts { grid-template-columns:minmax(0, 1fr); gap:0; } dl.facts dd { margin-bottom:.45rem; } }
@media print { body { background:#fff; } .card { break-inside:avoid; } }
"""

# A colour in a figure is the name of a CSS variable; only values under a key that says colour are looked up,
# so that a label which happens to be spelt like one stays a label.
SCRIPT = """
"use strict";
const figures = JSON.parse(document.getElementById("figures").textContent);
const config = { displayModeBar:false, displaylogo:false, responsive:true, scrollZoom:false };
const narrow = matchMedia("(max-width: 44rem)");
function coloured(node, style, isColour) {
  if (typeof node === "string")
    return isColour && node.startsWith("--") ? style.getPropertyValue(node).trim() || node : node;
  if (Array.isArray(node)) return node.map(one => coloured(one, style, isColour));
  if (node === null || typeof node !== "object") return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) =>
    [key, coloured(value, style, isColour || /colou?r/.test(key) && key !== "colorbar")]));
}
function draw() {
  const style = getComputedStyle(document.documentElement);
  for (const [id, figure] of Object.entries(figures)) {
    const { data, layout } = coloured(figure, style, false);
    if (narrow.matches) layout.annotations = (layout.annotations ?? []).filter(one => one.name !== "wide");
    Plotly.react(id, data, layout, config);
  }
}
const dark = matchMedia("(prefers-color-scheme: dark)");
for (const query of [narrow, dark]) query.addEventListener("change", draw);
draw();
document.body.dataset.drawn = Object.keys(figures).length;
"""
