// @ts-check
// The example of an agent in a Workflow. It tells the office where it is: at the beginning and at the end of each step's work, and
// after what the step gave was stored. The office may never answer, because it kills the process.

import example, { Orders as Example } from "../../../www/examples/workflow/worker.ts";

export class Orders extends Example {
  /** @param {any} event @param {any} step */
  run(event, step) {
    const tell = (/** @type {string} */ what, /** @type {string} */ name) => this.env.OFFICE?.fetch(`http://office/${what}/${event.instanceId}/${encodeURIComponent(name)}`);
    /** @param {string} name @param {any[]} rest */
    const told = async (name, ...rest) => {
      const work = rest.pop();
      const result = await step.do(name, ...rest, async (/** @type {any} */ context) => {
        await tell("begin", name);
        const made = await work(context);
        await tell("end", name);
        return made;
      });
      await tell("stored", name);
      return result;
    };
    const own = {
      do: told,
      sleep: (/** @type {string} */ name, /** @type {number} */ ms) => step.sleep(name, ms),
      waitForEvent: (/** @type {string} */ name, /** @type {any} */ options) => step.waitForEvent(name, options),
    };
    return super.run(event, /** @type {any} */ (own));
  }
}

export default example;
