"""The looks of the page: one column on a telephone, one sheet of A4 for the essentials in print."""

from __future__ import annotations

__all__ = ["STYLE"]

# Every light has a shape and a word besides its colour; borders, not fills, carry it through a printer without ink.
STYLE = """
:root { --ink: #1d2329; --soft: #55606b; --line: #d5dbe1; --panel: #f6f8fa;
  --red: #a3260f; --amber: #8a5a00; --green: #00664b; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--ink);
  max-width: 66rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0; } .appendix h3 { margin-top: 1.4rem; }
p { margin: .4rem 0; }
.kicker { text-transform: uppercase; letter-spacing: .08em; font-size: .75rem; color: var(--soft); margin: 0 0 .2rem; }
.facts, .note { color: var(--soft); font-size: .88rem; overflow-wrap: anywhere; }
.verdict { font-size: 1.3rem; margin: 1.1rem 0 .8rem; }
.stopped { border: 2px solid var(--ink); padding: .5rem .8rem; font-weight: 600; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: .8rem; }
.card { border: 1px solid var(--line); border-top-width: 5px; border-radius: .35rem; padding: .7rem .8rem; }
.card h3 { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline;
  gap: 0 .5rem; }
.card h3::first-letter { text-transform: uppercase; }
.card .question { color: var(--soft); font-size: .85rem; margin: .15rem 0 .4rem; }
.card .reason { font-size: .88rem; overflow-wrap: anywhere; }
.card .levels { font-size: .85rem; margin-bottom: 0; display: flex; flex-wrap: wrap; gap: 0 .8rem; }
.light { font-weight: 700; font-size: .85rem; white-space: nowrap; border: 1.5px solid; border-radius: 1rem;
  padding: .05rem .55rem; color: var(--soft); }
.card.red { border-top-color: var(--red); } .card.amber { border-top-color: var(--amber); }
.card.green { border-top-color: var(--green); }
.card.inconclusive, .card.not-tested { border-top: 5px dashed var(--soft); }
.light.red { color: #fff; background: var(--red); border-color: var(--red); }
.light.amber { color: var(--amber); border-color: var(--amber); }
.light.green { color: var(--green); border-color: var(--green); }
.attackers { list-style: none; margin: 0; padding: 0; border-top: 1px solid var(--line); }
.attackers li { display: grid; grid-template-columns: 2.6rem minmax(0, 1fr) 13rem; gap: .2rem 1rem; padding: .65rem 0;
  border-bottom: 1px solid var(--line); break-inside: avoid; }
.attackers .name { font-weight: 700; }
.attackers p { margin: 0; overflow-wrap: anywhere; }
.attackers .title { font-weight: 600; }
.attackers .title::after { content: ". "; }
.bar { width: 100%; height: auto; align-self: center; display: block; }
.bar .track { fill: #fff; stroke: #7b868f; } .bar .filled { fill: #35576f; }
.bar .whisker { stroke: #000; stroke-width: 2; fill: none; }
.bar .halo { stroke: #fff; stroke-width: 5; }
.bar .without { stroke: #000; stroke-width: 2; stroke-dasharray: 3 2; }
.bar .tick { stroke: #b9c1c8; }
.reached { align-self: center; } .reached b { font-size: 1.35rem; }
.unseen { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; white-space: nowrap; }
.shape.red { color: var(--red); } .shape.amber { color: var(--amber); } .shape.green { color: var(--green); }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 0 2rem; }
.columns ul { margin: 0; padding-left: 1.1rem; font-size: .9rem; }
.records { display: flex; flex-wrap: wrap; gap: .4rem; list-style: none; padding: 0; margin: .3rem 0; }
.records li { border: 1px solid var(--line); border-radius: .3rem; padding: .1rem .5rem;
  font-variant-numeric: tabular-nums; }
.records small { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid #7b868f; vertical-align: bottom; }
tbody th { font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
.findings { font-size: .74rem; } .findings th, .findings td { padding: .2rem .35rem; font-weight: 400; }
.findings td:nth-child(3), .findings td:nth-child(2) { min-width: 8rem; }
.findings td:nth-child(12) { white-space: normal; min-width: 5.5rem; }
.findings thead th { font-weight: 600; white-space: normal; }
.findings .headline th, .findings .headline td { font-weight: 700; }
.signature { display: grid; grid-template-columns: 2fr 1fr 2fr; gap: 1.5rem; margin-top: 2.2rem; font-size: .85rem; }
.signature span { border-top: 1px solid #7b868f; padding-top: .2rem; color: var(--soft); margin-top: 1.6rem; }
.appendix { margin-top: 3.5rem; border-top: 3px solid var(--ink); }
dl { display: grid; grid-template-columns: 14rem minmax(0, 1fr); gap: .15rem 1rem; font-size: .88rem; }
dt { font-weight: 600; } dd { margin: 0; }
summary { cursor: pointer; font-size: .88rem; }
@media (max-width: 46rem) {
  body { padding: 1.2rem 1rem 3rem; }
  .attackers li { grid-template-columns: 2.4rem minmax(0, 1fr); }
  .attackers .reached { grid-column: 2; max-width: 20rem; }
  dl { grid-template-columns: minmax(0, 1fr); } dd { margin-bottom: .4rem; }
  .signature { grid-template-columns: minmax(0, 1fr); gap: .2rem; }
  .stacked thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .stacked tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .stacked th, .stacked td { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: .1rem 0;
    text-align: left; white-space: normal; }
  .stacked td.number::before { content: attr(data-name); color: var(--soft); }
}
@media screen and (max-width: 46rem) {
  .named td::before { content: attr(data-name); color: var(--soft); flex: 0 0 4.5rem; }
  .named td { justify-content: start; }
  .findings caption { position: sticky; left: 0; max-width: calc(100vw - 2rem); }
  .findings caption::after { content: " The table scrolls sideways."; }
}
@page { size: A4; margin: 9mm 12mm; }
@page appendix { size: A4 landscape; margin: 12mm; }
@media print {
  body { font-size: 7.8pt; line-height: 1.25; max-width: none; padding: 0; }
  h1 { font-size: 13pt; } h2 { font-size: 10pt; margin: 1.6mm 0 .5mm; break-after: avoid; } h3 { font-size: 9pt; }
  p { margin: .5mm 0; } .kicker { font-size: 7pt; margin: 0; } .verdict { font-size: 10.5pt; margin: 1.2mm 0; }
  .facts, .note, .columns ul, table, dl, caption, .card .question, .card .reason, .card .levels { font-size: 7.5pt; }
  caption { padding-bottom: .5mm; }
  .cards { grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 2mm; }
  .card { padding: 1.2mm 2mm; border-top-width: 1.2mm; }
  .card .question { margin: .3mm 0 .8mm; } .light { font-size: 7.5pt; padding: 0 1.4mm; } .card h3 { gap: 0 1mm; }
  .attackers li { grid-template-columns: 7mm minmax(0, 1fr) 22mm; gap: 0 3mm; padding: .6mm 0; }
  .reached b { font-size: 10.5pt; line-height: 1; } .bar { margin-top: .4mm; }
  .columns { grid-template-columns: 6fr 13fr 11fr; gap: 0 4mm; } .columns ul { padding-left: 3mm; }
  .records { gap: .8mm; margin: .5mm 0; } .records li { padding: 0 1mm; }
  th, td { padding: .35mm 1.4mm; } .stacked tbody th { white-space: nowrap; }
  .stacked:not(.named) td:nth-child(2) { width: 50%; }
  .wide { overflow: visible; }
  .signature { margin: 0; gap: 8mm; font-size: 7pt; } .signature span { margin-top: 5mm; padding-top: .4mm; }
  .appendix { page: appendix; break-before: page; margin: 0; border-top: 0; } .appendix h3 { margin-top: 3mm; }
  dl { grid-template-columns: 42mm minmax(0, 1fr); gap: .3mm 4mm; margin: 1mm 0; }
  .findings { font-size: 7pt; } .findings th, .findings td { padding: .25mm 1mm; }
  .findings thead th { white-space: normal; } .findings td:nth-child(12) { white-space: nowrap; }
  thead { display: table-header-group; } tr { break-inside: avoid; }
  .light.red, .bar .filled { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
