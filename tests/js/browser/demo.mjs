// @ts-check
// The demo page, driven in Chromium as a person would use it.
//   node tests/js/browser/demo.mjs BASE_URL page|worker [FOLDER_FOR_SCREENSHOTS]
// The second word says where the loop is to run. ONLY=words in the environment plays the checks whose names have them.
// Prints a line per check and `N passed, N failed`; ends with 1 if one failed.

import { end } from "./demo/kit.mjs";

for (const theme of ["opening", "conversation", "access", "what-if", "tabs", "questions", "reloads", "models", "worker", "device"]) await import(`./demo/${theme}.mjs`);
await end();
