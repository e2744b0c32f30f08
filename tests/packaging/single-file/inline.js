// Writes the script into the page.
import { readFile, rm, writeFile } from "node:fs/promises";

const script = (await readFile("dist/app.js", "utf8")).replaceAll("</script", "<\\/script");
const page = await readFile("index.html", "utf8");
await writeFile("dist/index.html", page.replace('<script type="module" src="./app.js"></script>', () => `<script type="module">${script}</script>`));
await rm("dist/app.js");
