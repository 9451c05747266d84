"""The look of the page about a fitted selector."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfcfa; --ink: #22211f; --quiet: #65615a; --rule: #e3dfd8;
  --link: #1f5a8c; --box: #f5f3ef; --blue: #0072b2; --orange: #c75400;
  --green: #008060; --pale: #9ccbe6;
  --serif: Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, "Noto Serif",
    serif;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) { :root {
  --paper: #191a1c; --ink: #dcdad5; --quiet: #a19d96; --rule: #34353a;
  --link: #8fc0ea; --box: #232427; --blue: #56b4e9; --orange: #f08a3c;
  --green: #3fbf97; --pale: #2f5e7a;
} }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; padding: 3.5rem 1.5rem 6rem; max-width: 60rem;
  background: var(--paper); color: var(--ink); font: .9375rem/1.55 var(--sans);
  overflow-wrap: anywhere; }
h1 { margin: 0; font: 600 2rem/1.25 var(--serif); letter-spacing: -.01em;
  text-wrap: balance; }
h2 { margin: 3rem 0 .9rem; font: 600 1.25rem/1.25 var(--serif); }
h3 { margin: 0 0 .5rem; font: 600 1rem/1.35 var(--sans); }
.scroll + h3 { margin-top: 1.8rem; } .group h3 { margin: 0; }
p { margin: 0 0 .9rem; max-width: 44rem; }
.lead { margin: 1.1rem 0 0; font-size: 1.0625rem; }
.note, figcaption { color: var(--quiet); font-size: .875rem; max-width: 44rem; }
.facts { display: flex; flex-wrap: wrap; gap: .7rem 1.9rem; margin: 1.5rem 0 0;
  padding: .9rem 0; border: solid var(--rule); border-width: 1px 0;
  font: .875rem/1.45 var(--sans); font-variant-numeric: tabular-nums; }
.facts dt { color: var(--quiet); font-size: .8125rem; } .facts dd { margin: 0; }
.scroll { overflow-x: auto; margin: 0 0 1rem; }
.scroll:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; font-size: .875rem; line-height: 1.45;
  font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .35rem 1.4rem .35rem 0; border-bottom: 1px solid var(--rule);
  text-align: start; font-weight: 400; vertical-align: top; }
thead th { color: var(--quiet); vertical-align: bottom; white-space: nowrap; }
tbody th { white-space: nowrap; }
.long, tbody .long, thead .long { min-width: 14rem; white-space: normal;
  overflow-wrap: anywhere; }
td:last-child, th:last-child { padding-inline-end: 0; }
.number { text-align: end; } .number, .chance { white-space: nowrap; }
.same { color: var(--quiet); } small { color: var(--quiet); font-size: .8125rem; }
tr.chosen th, tr.chosen td { font-weight: 600; } tr.chosen small { font-weight: 400; }
.wide { min-width: 11rem; max-width: 26rem; }
.cell { max-width: 20rem; overflow-wrap: break-word; }
figure { margin: 0 0 1rem; }
.figure { display: block; width: 100%; height: auto; font-family: var(--sans); }
.figure text { fill: var(--ink); } .broad .figure { min-width: 42rem; }
figcaption { margin-top: .5rem; }
.range, .bar { display: inline-block; position: relative; vertical-align: middle;
  height: .75rem; background: var(--box); border-radius: .15rem;
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
.range { width: 9rem; } .bar { width: 4.5rem; overflow: hidden; }
.range i, .range b, .bar i { position: absolute; top: 0; bottom: 0;
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
.range i { background: var(--pale); border-radius: .15rem; }
.range b { width: 3px; margin-inline-start: -1.5px; background: var(--ink); }
.bar i { inset-inline-start: 0; background: var(--quiet); }
.right .bar i { background: var(--blue); } .wrong .bar i { background: var(--orange); }
.group { margin: 0 0 2rem; } .group .scroll { margin-top: .5rem; }
.group header { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: baseline; }
.group header span { color: var(--quiet); font-size: .8125rem; }
.mark { white-space: nowrap; font-weight: 600; }
.mark::before { display: inline-block; width: 1.3em; }
.right .mark { color: var(--blue); } .right .mark::before { content: "✔\\fe0e"; }
.wrong .mark { color: var(--orange); } .wrong .mark::before { content: "✗"; }
.missed .mark::before { content: "○"; }
.other, .other .mark { color: var(--quiet); font-weight: 400; }
.other .mark::before { content: "·"; }
tr.right + tr.missed > *, tr.wrong + tr.missed > *, tr.right + tr.other > *,
tr.wrong + tr.other > *, tr.missed + tr.other > * { border-top: 2px solid var(--rule); }
details { margin: .8rem 0 1rem; } summary { cursor: pointer; color: var(--link); }
details > .scroll { margin-top: .6rem; }
.settings { display: grid; grid-template-columns: max-content minmax(0, 1fr);
  gap: .3rem 1.6rem; margin: 0; font-size: .875rem; }
.settings dt { color: var(--quiet); } .settings dd { margin: 0; }
pre { margin: 0 0 1rem; padding: .8rem 1rem; overflow-x: auto; background: var(--box);
  border-radius: .3rem; font: .8125rem/1.6 var(--mono); overflow-wrap: normal; }
@media (max-width: 34rem) {
  body { padding: 1.75rem 1.125rem 4rem; } h1 { font-size: 1.625rem; }
  h2 { margin-top: 2.25rem; } .facts { gap: .6rem 1.5rem; margin-top: 1.1rem; }
  th, td { padding-inline-end: .9rem; } .range { width: 6rem; }
  .settings { grid-template-columns: 1fr; gap: 0; }
  .settings dd { margin-bottom: .6rem; }
}
@media print {
  :root { --paper: #fff; --ink: #000; --quiet: #444; --rule: #bbb; --link: #000;
    --box: #eee; --blue: #0072b2; --orange: #c75400; --green: #008060;
    --pale: #9ccbe6; }
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  h2, h3, .group header, section > p { break-after: avoid; }
  details::details-content { content-visibility: visible; display: block; }
  figure, tr, .group, pre { break-inside: avoid; }
  .scroll { overflow: visible; } .broad .figure { min-width: 0; }
  .cell { max-width: none; } th, td { padding-inline-end: .8rem; }
  pre { white-space: pre-wrap; }
}
"""
