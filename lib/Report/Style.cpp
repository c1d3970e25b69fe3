//===- Style.cpp - The style sheet of a plan's page -----------------------===//
//
// Colours of the drawings are told apart by the colour-blind too (after Okabe and Ito), and keep a contrast of 3 to the
// page in both themes. Narrow windows scroll a drawing rather than shrink its text.
//
//===----------------------------------------------------------------------===//

#include "Html.h"

const char *const k2c::report::styleSheet = R"css(:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --ink: #1b1f24; --soft: #5a6270; --rule: #d5d9e0; --grid: #e7eaef;
  --blue: #0b64b4; --green: #00815c; --orange: #c05a00; --purple: #8a3f9e; --red: #b3261e; --grey: #767d88;
  --good: #00694a; --bad: #b3261e; --goodCard: #e2f4ec; --badCard: #fbe6e4; --inside: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1d2127; --ink: #e7eaee; --soft: #a3acb8; --rule: #3a414b; --grid: #2a3038;
    --blue: #5aa9ec; --green: #35b58d; --orange: #ec9a4d; --purple: #c58ad6; --red: #ee7b72; --grey: #8d96a3;
    --good: #59cfa6; --bad: #f59a92; --goodCard: #16302a; --badCard: #3a1f1e; --inside: #101318;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "Liberation Sans", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 6px; }
h2 { font-size: 19px; margin: 0 0 4px; }
h3 { font-size: 14px; margin: 0 0 4px; color: var(--soft); font-weight: 600; }
p { margin: 0 0 10px; }
code { font: 13px ui-monospace, "Liberation Mono", monospace; background: var(--card); padding: 1px 5px;
  border-radius: 4px; overflow-wrap: anywhere; }
section { margin-top: 34px; }
.lead { color: var(--soft); max-width: 76ch; }
.verdict { border-radius: 8px; padding: 10px 14px; font-weight: 700; }
.verdict span { font-weight: 400; margin-left: 12px; }
.verdict.good { background: var(--goodCard); color: var(--good); }
.verdict.bad { background: var(--badCard); color: var(--bad); }
.verdict span { color: var(--ink); }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; margin: 10px 0 16px; }
.two > div { background: var(--card); border-radius: 8px; padding: 12px 14px; }
.plain, .notes { margin: 0; padding-left: 18px; }
.plain li, .notes li { margin: 3px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); gap: 10px; margin: 0 0 12px; }
.tiles div { border: 1px solid var(--rule); border-radius: 8px; padding: 8px 12px; display: flex;
  flex-direction: column; justify-content: space-between; }
.tiles dt { color: var(--soft); font-size: 13px; line-height: 1.3; }
.tiles dd { margin: 2px 0 0; font-size: 16px; font-weight: 600; font-variant-numeric: tabular-nums; }
.chart, .scroll { overflow-x: auto; }
.chart svg { display: block; width: 100%; min-width: 860px; height: auto; }
svg text { font: 12px system-ui, "Liberation Sans", sans-serif; fill: var(--ink); }
svg .tick { fill: var(--soft); font-size: 11px; }
svg .label { fill: var(--soft); }
svg .strong { font-weight: 600; }
svg .bad { fill: var(--bad); }
svg .inside, svg .taskName { fill: var(--inside); font-size: 11px; pointer-events: none; }
svg .taskName { font-size: 10px; }
.grid { stroke: var(--grid); }
.axis { stroke: var(--soft); }
.leader { stroke: var(--soft); stroke-width: .75; }
svg .number { font-weight: 600; }
.roof { stroke: var(--soft); stroke-width: 2; }
.capacity { stroke: var(--ink); stroke-width: 2; stroke-dasharray: 4 3; }
.part, .task { stroke: var(--page); stroke-width: 1; }
.part:hover, .task:hover, .thin:hover, .point:hover { stroke: var(--ink); stroke-width: 2; }
.blue, .memory, .forward { fill: var(--blue); }
.green, .backward { fill: var(--green); }
.orange, .compute, .pair { fill: var(--orange); }
.purple, .link { fill: var(--purple); }
.red, .latency { fill: var(--red); }
.grey, .capacityKey { fill: var(--grey); }
.inputGrad { fill: var(--green); }
.weightGrad { fill: var(--purple); }
.idle { fill: var(--grid); }
.s1 { fill-opacity: .75; } .s2 { fill-opacity: .56; } .s3 { fill-opacity: .42; } .s4 { fill-opacity: .3; }
.s5 { fill-opacity: .2; }
.over { fill: none; stroke: var(--bad); stroke-width: 3; }
.capacityKey { fill: none; stroke: var(--ink); stroke-width: 2; stroke-dasharray: 4 3; }
.point { stroke: var(--page); stroke-width: 1; }
.best { fill: var(--orange); }
.frontierPoint { fill: var(--blue); }
.runnerUp { fill: var(--page); stroke: var(--grey); stroke-width: 2; }
.frontier { fill: none; stroke: var(--blue); stroke-width: 1.5; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 16px; padding: 0; margin: 8px 0;
  font-size: 13px; }
.legend li { display: flex; align-items: center; gap: 6px; }
.key { width: 12px; height: 12px; flex: none; overflow: visible; }
details { margin-top: 8px; }
summary { cursor: pointer; color: var(--soft); }
table { border-collapse: collapse; margin-top: 8px; font-size: 13px; }
caption { text-align: left; color: var(--soft); padding: 4px 0; }
th { text-align: left; font-weight: 600; color: var(--soft); vertical-align: bottom; }
th, td { padding: 3px 12px 3px 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
@media (max-width: 640px) {
  main { padding: 16px 12px 40px; }
  .two { grid-template-columns: 1fr; }
  .verdict span { display: block; margin: 2px 0 0; }
  .tiles { grid-template-columns: 1fr 1fr; }
}
@media print {
  details > * { display: revert; }
  .chart svg { min-width: 0; }
}
)css";
