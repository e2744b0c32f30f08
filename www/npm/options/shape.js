// @ts-check
// The shapes of options, and the check of a value against one: a wrong name or shape fails at the call, with a
// suggestion of the name that was meant.

import { checkNames, isOfClass, kindOf, misuse, shownOf } from "../shared.js";

/**
 * Each kind: its name in messages, and the test for it.
 * @type {Record<string, [string, (value: any) => boolean]>}
 */
const KINDS = {
  function: ["a function", (value) => typeof value === "function"],
  text: ["a text", (value) => typeof value === "string"],
  flag: ["true or false", (value) => typeof value === "boolean"],
  number: ["a number from 0 on", (value) => typeof value === "number" && value >= 0],
  finite: ["a finite number from 0 on", (value) => Number.isFinite(value) && value >= 0],
  real: ["a number", (value) => typeof value === "number" && !Number.isNaN(value)],
  whole: ["a whole number", (value) => Number.isInteger(value) && value >= 0],
  some: ["a whole number from 1 on", (value) => Number.isInteger(value) && value > 0],
  many: ["a whole number from 1 on or Infinity", (value) => value > 0 && fits("count", value)],
  count: ["a whole number or Infinity", (value) => value === Infinity || (Number.isInteger(value) && value >= 0)],
  // Arrays, Maps and Sets have no members, so rules passed as one would have no effect.
  object: ["an object", (value) => typeof value === "object" && value !== null && !(Symbol.iterator in value)],
  // A Headers or a Map has no members, so none of its entries would be sent.
  texts: ["an object of texts", (value) => fits("object", value) && !isOfClass(value) && Object.values(value).every((text) => typeof (text ?? "") === "string")],
  list: ["an array", Array.isArray],
  functions: ["an array of functions", (value) => Array.isArray(value) && value.every((one) => typeof one === "function")],
  any: ["", () => true],
};

/**
 * A kind, the allowed strings, the members of an object, or one of several of these.
 * @typedef {keyof typeof KINDS | string[] | { [name: string]: Shape } | OneOf} Shape
 */
export class OneOf {
  /** @param {...Shape} shapes */
  constructor(...shapes) {
    this.shapes = shapes;
  }
}

/**
 * Gives all names the same shape.
 * @param {readonly string[]} names @param {Shape} shape @returns {{ [name: string]: Shape }}
 */
export const all = (names, shape) => Object.fromEntries(names.map((name) => [name, shape]));

/**
 * Checks a value against a shape. A missing value is always valid.
 * @param {string} path @param {any} value @param {Shape} shape
 * @param {string} [owner] whose option it is, for the message
 */
export function checkShape(path, value, shape, owner = "") {
  if (value === undefined) return;
  const one = shape instanceof OneOf ? shape.shapes.find((each) => fits(each, value)) : shape;
  if (one === undefined || !fits(one, value)) {
    const wanted = nameOf(shape);
    throw misuse(`${owner}\`${path}\` must be ${wanted}, got ${/number|"/.test(wanted) ? shownOf(value) : kindOf(value)}`);
  }
  if (typeof one === "string" || Array.isArray(one)) return;
  const members = /** @type {{ [name: string]: Shape }} */ (one);
  // An instance of a class may have members of its own.
  if (!isOfClass(value)) checkNames(`${owner}unknown option \`${path}.`, value, members);
  for (const name of Object.keys(members)) checkShape(`${path}.${name}`, value[name], members[name], owner);
}

/** Whether a value is of a kind; members are checked later. @param {Shape} shape @param {any} value */
export function fits(shape, value) {
  if (Array.isArray(shape)) return shape.includes(value);
  return KINDS[typeof shape === "string" ? shape : "object"][1](value);
}

/** @param {Shape} shape @returns {string} */
function nameOf(shape) {
  if (shape instanceof OneOf) return shape.shapes.map(nameOf).join(" or ");
  if (Array.isArray(shape)) return shape.map((word) => JSON.stringify(word)).join(" or ");
  return KINDS[typeof shape === "string" ? shape : "object"][0];
}
