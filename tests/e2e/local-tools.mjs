// @ts-check
// 1,000 random sets of tools: what may be called is in the grammar, by the engine's own reader of grammars, and is read back
// however it is cut. The everyday tests take forty.

process.env["LOCAL_SEEDS"] ??= "1000";
await import("../js/local/answers.test.mjs");
