// @ts-check
// How the inspector looks. A page changes it with the custom properties `--inspector-…` and the parts. It is a constructable
// style sheet: a page's policy need allow no inline styles.

const CSS = `
:host {
  --i-ink: var(--inspector-ink, #1c1e22); --i-soft: var(--inspector-soft, #585c64); --i-panel: var(--inspector-panel, #ffffff); --i-tint: var(--inspector-tint, #f4f2ee);
  --i-line: var(--inspector-line, #e6e2db); --i-edge: var(--inspector-edge, #8d8a84); --i-accent: var(--inspector-accent, #0f6e66); --i-on-accent: var(--inspector-on-accent, #ffffff);
  --i-violet: var(--inspector-violet, #7d6bb5); --i-amber: var(--inspector-amber, #b26a00); --i-red: var(--inspector-red, #b3261e); --i-blue: var(--inspector-blue, #2f6fb3);
  --i-sky: var(--inspector-sky, #8ab8e0); --i-waiting: var(--inspector-waiting, #d8d4cc); --i-accent-tint: var(--inspector-accent-tint, #e2f1ee);
  --i-mono: ui-monospace, "SF Mono", "Cascadia Mono", "Liberation Mono", Menlo, Consolas, monospace;
  display: flex; flex-direction: column; gap: 10px; min-width: 0; min-height: 0; container-type: inline-size; box-sizing: border-box;
  padding: 12px; overflow: hidden auto; scrollbar-width: thin; border: 1px solid var(--i-line); border-radius: 13px; background: var(--i-panel); color: var(--i-ink); position: relative;
  font: 13px/1.5 var(--inspector-font, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif);
}
@media (prefers-color-scheme: dark) {
  :host {
    --i-ink: var(--inspector-ink, #e9e7e3); --i-soft: var(--inspector-soft, #a7abb3); --i-panel: var(--inspector-panel, #1b1e23); --i-tint: var(--inspector-tint, #252930);
    --i-line: var(--inspector-line, #2e333a); --i-edge: var(--inspector-edge, #6d737d); --i-accent: var(--inspector-accent, #5fcabd); --i-on-accent: var(--inspector-on-accent, #06201d);
    --i-violet: var(--inspector-violet, #a99be0); --i-amber: var(--inspector-amber, #eab45c); --i-red: var(--inspector-red, #f28b82); --i-blue: var(--inspector-blue, #7db3ee);
    --i-sky: var(--inspector-sky, #44729f); --i-waiting: var(--inspector-waiting, #3b4149); --i-accent-tint: var(--inspector-accent-tint, #16322f);
  }
}
:host([hidden]) { display: none; }
:host([data-over]) { outline: 2px dashed var(--i-accent); outline-offset: -6px; }
*, *::before, *::after { box-sizing: border-box; }
[hidden] { display: none !important; }
p, ul, ol, dl, dd, pre { margin: 0; padding: 0; }
.head { font-size: 12px; font-weight: 600; color: var(--i-soft); }
pre, code, .number, .time { font-family: var(--i-mono); font-size: 12px; }
.fine, .nothing { color: var(--i-soft); font-size: 12px; }
:focus-visible { outline: 2px solid var(--i-accent); outline-offset: 1px; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }

button, input { font: inherit; color: inherit; }
button { padding: 3px 10px; border: 1px solid var(--i-line); border-radius: 7px; background: var(--i-panel); cursor: pointer; touch-action: manipulation; white-space: nowrap; line-height: 1.5; }
button:hover:not(:disabled, [aria-disabled="true"]) { border-color: var(--i-edge); }
button:disabled, button[aria-disabled="true"] { color: var(--i-soft); opacity: 0.65; cursor: default; }
button.primary { border-color: transparent; background: var(--i-accent); color: var(--i-on-accent); font-weight: 600; }
button.icon { min-width: 28px; padding: 3px 6px; text-align: center; }
button.plain { padding: 0; border: 0; background: none; font-weight: 600; text-align: left; overflow: hidden; text-overflow: ellipsis; max-width: 100%; }
button.plain:hover { text-decoration: underline; }
button.more { display: block; margin: 4px 0; padding: 0; border: 0; background: none; color: var(--i-accent); text-decoration: underline; text-underline-offset: 2px; }

.bar { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; min-width: 0; }
.bar .gap { flex: 1; }
.note { padding: 4px 9px; border-radius: 7px; background: var(--i-tint); color: var(--i-soft); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: 12px; }

.runs { display: flex; align-items: center; gap: 4px; color: var(--i-soft); font-size: 12px; font-variant-numeric: tabular-nums; white-space: nowrap; }
.runs button[aria-pressed="true"] { border-color: var(--i-accent); color: var(--i-accent); }
.stage { position: relative; min-width: 0; }
.lanes { max-height: var(--inspector-lanes-height, 260px); min-height: 60px; overflow-y: auto; overflow-x: hidden; border-radius: 6px; overscroll-behavior: contain; scrollbar-width: thin; scrollbar-color: var(--i-line) transparent; }
.lanes-sheet { position: sticky; top: 0; overflow: hidden; }
canvas { display: block; width: 100%; cursor: crosshair; touch-action: pan-y; }
.cursor { position: absolute; top: 24px; left: -1px; width: 2px; background: var(--i-accent); pointer-events: none; will-change: transform; }
.cursor::before { content: ""; position: absolute; top: -5px; left: -4px; border: 5px solid transparent; border-top: 7px solid var(--i-accent); border-bottom: 0; }
.tip { position: absolute; z-index: 3; display: grid; max-width: min(320px, 100%); padding: 6px 10px; border: 1px solid var(--i-edge); border-radius: 9px; background: var(--i-panel); box-shadow: 0 4px 16px rgb(0 0 0 / 14%); font-size: 12px; line-height: 1.4; pointer-events: none; overflow-wrap: anywhere; }

.transport { display: flex; align-items: center; gap: 6px; min-width: 0; }
.transport input { flex: 1; min-width: 0; height: 26px; margin: 0; accent-color: var(--i-accent); cursor: pointer; background: transparent; touch-action: pan-y; }
.now { display: flex; align-items: center; gap: 4px 10px; flex-wrap: wrap; min-height: 28px; font-variant-numeric: tabular-nums; }
.now .where { color: var(--i-soft); white-space: nowrap; }
.now .event { flex: 1 1 140px; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.now .event code { font-weight: 600; }
.facts { display: flex; flex-wrap: wrap; gap: 5px; font-size: 12px; font-variant-numeric: tabular-nums; }
.facts span { padding: 1px 9px; border-radius: 999px; background: var(--i-tint); color: var(--i-soft); white-space: nowrap; }
.facts .phase { background: var(--i-accent-tint); color: var(--i-accent); font-weight: 600; }
.facts .phase[data-phase="waiting for approval"], .facts .phase[data-phase="waiting to retry"] { background: var(--i-tint); color: var(--i-ink); }
.facts .bad { color: var(--i-red); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 11px; margin: 0; padding: 0; list-style: none; color: var(--i-soft); font-size: 11.5px; }
.legend li { display: flex; align-items: center; gap: 5px; }
.legend li::before { content: ""; width: 9px; height: 9px; border-radius: 3px; background: var(--i-waiting); }
.legend .thinking::before { background: var(--i-violet); } .legend .text::before { background: var(--i-accent); } .legend .tool_call::before { background: var(--i-sky); }
.legend .done::before { background: var(--i-blue); } .legend .failed::before { background: var(--i-red); } .legend .cut::before { background: transparent; border: 1.5px dashed var(--i-amber); }
.legend .asked::before { background: var(--i-amber); }

.bar, .note, .stage, .legend, .transport, .now, .facts { flex: none; }
.details { display: flex; flex-direction: column; gap: 8px; flex: 1 0 calc(var(--inspector-panel-height, 240px) + 40px); min-height: 0; min-width: 0; }
.tabs { display: flex; gap: 2px; border-bottom: 1px solid var(--i-line); overflow-x: auto; scrollbar-width: none; }
.tabs button { flex: none; padding: 4px 10px 5px; border: 0; border-radius: 7px 7px 0 0; background: none; color: var(--i-soft); border-bottom: 2px solid transparent; }
.tabs button:hover { color: var(--i-ink); }
.tabs button[aria-selected="true"] { color: var(--i-accent); border-bottom-color: var(--i-accent); font-weight: 600; }
.tabs button:focus-visible { outline-offset: -3px; }
.panel { flex: 1 1 0; height: var(--inspector-panel-height, 240px); min-height: 0; min-width: 0; border-radius: 8px; }
.scrolls { overflow: auto; overscroll-behavior: contain; scrollbar-width: thin; scrollbar-color: var(--i-line) transparent; }
.scrolls:focus-visible { outline-offset: -2px; }

:host([data-wide]) .details { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); grid-template-rows: auto minmax(0, 1fr); gap: 8px 16px; }
:host([data-wide]) .details > .title { grid-area: 1 / 1; align-self: end; padding: 4px 0 6px; border-bottom: 1px solid var(--i-line); }
:host([data-wide]) .details > .tabs { grid-area: 1 / 2; }
:host([data-wide]) .details > .panel { grid-area: 2 / 2; height: auto; }
:host([data-wide]) .details > #panel-conversation { grid-area: 2 / 1; }
.details > .title { display: none; }
:host([data-wide]) .details > .title { display: block; }

.messages { display: flex; flex-direction: column; gap: 8px; padding: 2px; }
.message { padding: 7px 11px 8px; border-radius: 10px; border: 1px solid var(--i-line); overflow-wrap: anywhere; }
.message .head { font-weight: 600; }
.message .head span { font-weight: 400; }
.message.user { background: var(--i-tint); border-color: transparent; margin-left: 12%; }
.message.result { --i-state: var(--i-blue); padding-left: 14px; background: linear-gradient(var(--i-state), var(--i-state)) 5px 50% / 3px calc(100% - 14px) no-repeat; }
.message.result.failed { --i-state: var(--i-red); }
.message.result.running, .message.result.proposed { --i-state: var(--i-sky); border-style: dashed; }
.message.result.asked { --i-state: var(--i-amber); border-style: dashed; }
.message.custom { border-style: dashed; }
.message.open { border-color: var(--i-accent); }
.message .call { margin-top: 4px; padding: 3px 8px; border-radius: 7px; background: var(--i-tint); }
.message .call > code { font-weight: 600; }
.message .call > div, .message .call > pre { display: inline; }
.message .error { color: var(--i-red); }
.message .thinking { color: var(--i-soft); }
.message .thinking p { border-left: 2px solid var(--i-violet); padding-left: 9px; }
summary { cursor: pointer; color: var(--i-soft); width: fit-content; border-radius: 4px; }
.inside { display: grid; gap: 4px; margin-left: 14px; padding-left: 10px; border-left: 2px solid var(--i-line); }
.long { white-space: pre-wrap; overflow-wrap: anywhere; }
dl > div { display: flex; gap: 12px; padding: 3px 0; border-bottom: 1px solid var(--i-line); }
dt { flex: 0 0 100px; color: var(--i-soft); }
dd { min-width: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.panel > .head { margin-top: 12px; }
.panel > .head + * { margin-top: 3px; }
.panel > ul { padding-left: 18px; }
.sent { padding-left: 30px; } .sent li { margin-top: 3px; }
.sent li::marker { color: var(--i-soft); }

.split { display: grid; grid-template-rows: minmax(0, 3fr) minmax(60px, 2fr); gap: 6px; }
.json { padding: 7px 10px; border-radius: 8px; background: var(--i-tint); }
.row { display: grid; grid-template-columns: 56px 76px minmax(96px, 172px) minmax(0, 1fr); gap: 8px; align-items: center; height: 26px; padding: 0 6px; border-radius: 5px; white-space: nowrap; cursor: pointer; }
.row > * { overflow: hidden; text-overflow: ellipsis; }
.row:hover { background: var(--i-tint); }
.row[aria-selected="true"] { background: var(--i-accent-tint); }
.row .number { text-align: right; color: var(--i-soft); } .row .time { color: var(--i-soft); }
.row .type { font-weight: 600; } .row .type.message_update { font-weight: 400; color: var(--i-soft); }
.row .what { color: var(--i-soft); }
table { width: 100%; border-collapse: collapse; table-layout: fixed; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { height: 26px; padding: 0 8px 0 0; text-align: left; font-weight: 400; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
thead th { position: sticky; top: 0; background: var(--i-panel); color: var(--i-soft); font-size: 12px; }
thead th:nth-child(-n + 2) { width: 76px; } thead th:nth-child(3) { width: 28%; }
.spacer { height: 0; }

@container (max-width: 440px) {
  .lanes { max-height: var(--inspector-lanes-height, 200px); }
  .now .event { order: 3; flex-basis: 100%; } .now [part="fork"] { margin-left: auto; }
  .row { grid-template-columns: 44px 60px minmax(0, 1fr); } .row .what { display: none; }
  .bar .text { display: none; }
  thead th:nth-child(-n + 2) { width: 62px; }
  dt { flex-basis: 84px; }
}
@media (pointer: coarse) { button { min-height: 32px; } button.plain, button.more { min-height: 24px; } .transport input { height: 34px; } }
@media (prefers-reduced-motion: reduce) { *, *::before { transition: none !important; animation: none !important; scroll-behavior: auto !important; } }
@media (forced-colors: active) { canvas, .legend li::before { forced-color-adjust: none; } .cursor { background: Highlight; } }
`;

/** @type {CSSStyleSheet | undefined} */
let sheet;

/** One for all inspectors of a page. */
export function styleSheet() {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(CSS);
  }
  return sheet;
}
