// @ts-check
// `turnwheel/durable`, whose steps tell the office where they are: at the beginning and at the end of their work, and when what they
// gave is stored. The office may never answer, because it kills the process.

const real = await import(String(new URL(import.meta.url).searchParams.get("real")));
const { OFFICE } = process.env;
const tell = (/** @type {string} */ what, /** @type {string} */ name) => fetch(`${OFFICE}/${what}/x/${encodeURIComponent(name)}`);

/** @param {any} host */
const told = (host) => ({
  ...host,
  step(/** @type {string} */ name, /** @type {(info?: object) => Promise<any>} */ work, /** @type {any} */ effect) {
    const called = performance.now();
    let [begun, ended] = [0, 0];
    const stored = host.step(name, async (/** @type {any} */ info) => {
      begun = performance.now();
      await tell("begin", name);
      const made = await work(info);
      await tell("end", name);
      ended = performance.now();
      return made;
    }, effect);
    const isStored = () => {
      const cost = begun - called + performance.now() - ended;
      if (ended > 0) void tell("cost", String(cost));
      return tell("stored", name);
    };
    stored.then(isStored, () => {});
    return stored;
  },
});

export const { byData, perform } = real;
export const restate = (/** @type {any[]} */ ...args) => told(real.restate(...args));
export const dbos = (/** @type {any[]} */ ...args) => told(real.dbos(...args));
