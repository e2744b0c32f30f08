// What is in a .tgz or a .crate: a line with bytes and path for each file.   node archive.mjs FILE

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const tar = gunzipSync(readFileSync(process.argv[2]));
const text = (from, length) => tar.toString("utf8", from, from + length).split("\0")[0];
for (let at = 0; at + 512 <= tar.length && tar[at] !== 0; ) {
  const size = parseInt(text(at + 124, 12), 8);
  const [name, prefix] = [text(at, 100), text(at + 345, 155)];
  if (!Number.isSafeInteger(size)) throw new Error(`${name} has no size`);
  // What is no plain file is a header about one.
  if (tar[at + 156] === 0x30 || tar[at + 156] === 0) console.log(`${size}\t${prefix ? `${prefix}/` : ""}${name}`);
  at += 512 * (1 + Math.ceil(size / 512));
}
