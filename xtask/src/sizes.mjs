// Prints one line of JSON per file named: its size as it is, after gzip -9 and after brotli -11.
// Node has both built in; a Rust crate for each would be two more to compile before the first build.
import { readFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;

for (const path of process.argv.slice(2)) {
  const bytes = readFileSync(path);
  const params = { [BROTLI_PARAM_QUALITY]: 11, [BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const sizes = [bytes.length, gzipSync(bytes, { level: 9 }).length, brotliCompressSync(bytes, { params }).length];
  console.log(JSON.stringify(sizes));
}
