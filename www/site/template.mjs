// @ts-check
// What stands around each page: head, menu, search. All addresses are relative, so the site works at any path.

import { addressOf, linkTo, menu } from "./pages.mjs";
import { escaped } from "./render.mjs";

/** Nothing comes from elsewhere, and nothing is sent. The viewer alone may read a tape from another site. @param {string} [connect] */
const policy = (connect = "'self'") => [
  "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "style-src 'self'", "img-src 'self' data: blob:", `connect-src ${connect}`, "worker-src 'self'",
  "frame-src 'self'", "base-uri 'none'", "form-action 'self'",
].join("; ");

/**
 * @typedef {object} Page
 * @property {string} address
 * @property {string} title
 * @property {string} main
 * @property {string} script the name of its script in `code/`
 * @property {string} [about] one sentence
 * @property {string} [aside]
 * @property {string} [connect] where it may read from
 */

/** @param {Page} page @param {Map<string, string>} titles of the pages of Markdown */
export function whole({ address, title, main, script, about = "", aside = "", connect }, titles) {
  const to = (/** @type {string} */ target) => linkTo(address, target);
  const items = (/** @type {string[]} */ pages) => pages.map((page) => {
    const isHere = addressOf(page) === address;
    return `<li><a href="${to(addressOf(page))}"${isHere ? ' aria-current="page"' : ""}>${escaped(page === "README.md" ? "What it is" : titles.get(page) ?? page)}</a></li>`;
  });
  return `<!doctype html>
<html lang="en" data-root="${escaped(linkTo(address, "index.html").replace(/index\.html$/, ""))}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy(connect)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="description" content="${escaped(about)}">
<title>${title === "turnwheel" ? "turnwheel: the agent loop you can kill" : `${escaped(title)} · turnwheel`}</title>
<link rel="icon" href="${to("icon.svg")}">
<link rel="stylesheet" href="${to("style.css")}">
<script type="module" src="${to(`code/${script}.js`)}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header>
<a class="name" href="${to("index.html")}">turnwheel</a>
<search><input type="search" placeholder="Search (press /)" aria-label="Search the pages" role="combobox" aria-controls="found" aria-expanded="false" autocomplete="off"><ul id="found" role="listbox" aria-label="Found" hidden></ul></search>
<nav aria-label="Main"><a href="${to("docs/index.html")}">Docs</a> <a href="${to("demo/index.html")}">Demo</a> <a href="${to("tape/index.html")}">Tapes</a> <a class="to-menu" href="#menu">Menu</a></nav>
</header>
<div class="columns">
<main id="main" tabindex="-1">
${main}
</main>
${aside}
<nav id="menu" aria-label="Pages" tabindex="-1">
${menu().map(({ heading, pages }) => `<h2>${heading}</h2>\n<ul>${items(pages).join("\n")}</ul>`).join("\n")}
</nav>
</div>
</body>
</html>
`;
}

/** The headings of a page, for its margin. @param {import("./render.mjs").Section[]} sections */
export function contents(sections) {
  const second = sections.filter(({ depth }) => depth === 2);
  if (second.length < 2) return "";
  return `<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>${second.map(({ anchor, heading }) => `<li><a href="#${anchor}">${escaped(heading)}</a></li>`).join("")}</ul></nav>`;
}

/** What stands above README on the first page. */
export const DEMO = `<section class="demo" aria-label="The demo">
<iframe src="demo/index.html" title="The demo of turnwheel" loading="lazy"></iframe>
<p>It runs in this page. <a href="demo/index.html">Open the demo alone</a></p>
</section>
`;

export const VIEWER = `<h1>Look at a tape</h1>
<p>A tape is what a recorder of <a href="../docs/tape.html"><code>turnwheel/tape</code></a> writes. Drop its file on this page, choose it, or give its
address. The page reads it here and sends nothing anywhere.</p>
<form class="address">
<label>Address <input type="text" name="tape" inputmode="url" placeholder="https://…" required></label>
<button>Open</button>
<label class="file">or a file <input type="file"></label>
</form>
<p role="status"></p>
<turnwheel-inspector actions="fork save open" hidden></turnwheel-inspector>
`;
