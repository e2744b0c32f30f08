// @ts-check
// The bill of materials in the package: what CycloneDX's own schema says of it, and whether it is true.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Validator } from "@cfworker/json-schema";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const json = (/** @type {string} */ path) => JSON.parse(readFileSync(join(ROOT, path), "utf8"));
const bill = json("pkg/sbom.cdx.json");

/** A schema of CycloneDX, by the middle of its file's name. @param {string} name */
const schema = (name) => json(`node_modules/@cyclonedx/cyclonedx-library/res/schema/${name}.SNAPSHOT.schema.json`);

/** What is wrong with a bill. @param {unknown} candidate */
function flaws(candidate) {
  const validator = new Validator(schema("bom-1.6"), "7", false);
  // They are referred to by the names of their files.
  for (const name of ["spdx", "jsf-0.82"]) validator.addSchema({ ...schema(name), $id: `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json` });
  return validator.validate(candidate).errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`);
}

test("it is a bill as CycloneDX 1.6 describes it", () => {
  assert.deepEqual(flaws(bill), []);
  // The schema tells a good one from a bad one.
  assert.notDeepEqual(flaws({ ...bill, serialNumber: "1" }), []);
  assert.notDeepEqual(flaws({ ...bill, components: [{ name: "slab" }] }), []);
  assert.notDeepEqual(flaws({ ...bill, components: [{ type: "library", name: "slab", licenses: [{ license: { id: "Mine-1.0" } }] }] }), []);
});

test("it is about this package, and holds no time", () => {
  const { name, version } = json("pkg/package.json");
  assert.deepEqual([bill.metadata.component.name, bill.metadata.component.version], [name, version]);
  assert.equal(bill.metadata.timestamp, undefined);
  const [module] = bill.components;
  assert.deepEqual(module.hashes, [{ alg: "SHA-256", content: createHash("sha256").update(readFileSync(join(ROOT, "pkg", module.name))).digest("hex") }]);
});

test("every reference leads to a component, and to each component one", () => {
  const known = [bill.metadata.component, ...bill.components].map((/** @type {any} */ component) => component["bom-ref"]);
  assert.equal(new Set(known).size, known.length);
  const named = bill.dependencies.flatMap((/** @type {any} */ { ref, dependsOn }) => [ref, ...dependsOn]);
  assert.deepEqual(known.filter((/** @type {string} */ ref) => !named.includes(ref)), []);
  assert.deepEqual(named.filter((/** @type {string} */ ref) => !known.includes(ref)), []);
});

test("what others wrote stands in LICENSE-THIRD-PARTY, too, in the same version and under the same licence", () => {
  const list = readFileSync(join(ROOT, "pkg/LICENSE-THIRD-PARTY"), "utf8");
  const others = bill.components.slice(1);
  assert.ok(others.length > 10, "the module is made of several crates");
  for (const { name, version, licenses } of others) assert.ok(list.includes(`\n  ${name} ${version}, ${licenses[0].expression}`), `${name} ${version}`);
});

test("what a lock file pins is named with the hash from there", () => {
  const lock = readFileSync(join(ROOT, "Cargo.lock"), "utf8");
  const pins = json("package-lock.json").packages;
  for (const { name, version, hashes, purl } of bill.components.slice(1)) {
    if (purl.startsWith("pkg:npm/")) {
      assert.equal(`sha512-${Buffer.from(hashes[0].content, "hex").toString("base64")}`, pins[`node_modules/${name}`].integrity);
      continue;
    }
    const checksum = new RegExp(`^name = "${name}"\nversion = "${version}"\n.*\nchecksum = "(\\w+)"`, "m").exec(lock)?.[1];
    if (checksum) assert.equal(hashes[0].content, checksum, name);
  }
});
