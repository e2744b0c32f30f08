// @ts-check
// Each button of the demo at twenty moments, and all of them in one run twenty times: see tests/js/browser/demo-kills.test.mjs.

process.env["TURNWHEEL_WORLDS"] = "all";
await import("../js/browser/demo-kills.test.mjs");
