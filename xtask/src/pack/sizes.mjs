// Prints one line of JSON per given file: its size uncompressed, after gzip -9 and after brotli -11. Node has
// both built in; two Rust crates for them would have to be compiled before the first build.
import { readFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;

for (const path of process.argv.slice(2)) {
  const bytes = readFileSync(path);
  const params = { [BROTLI_PARAM_QUALITY]: 11, [BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const sizes = [bytes.length, gzipSync(bytes, { level: 9 }).length, brotliCompressSync(bytes, { params }).length];
  console.log(JSON.stringify(sizes));
}
