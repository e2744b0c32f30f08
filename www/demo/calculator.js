// @ts-check
// Arithmetic from text: a scanner and a parser by recursive descent. No eval, so it works under a strict
// Content-Security-Policy and cannot be talked into anything but arithmetic.
//
//   sum      = product (("+" | "-") product)*
//   product  = signed (("*" | "/" | "%") signed)*
//   signed   = ("-" | "+") signed | power
//   power    = factorial ("^" signed)?            right to left: 2^3^2 is 2^9, and -2^2 is -4
//   factorial= atom "!"*
//   atom     = number | constant | function "(" sum ("," sum)* ")" | "(" sum ")"

const LONGEST = 500;
const DEEPEST = 60;

/** @type {Map<string, number>} */
const CONSTANTS = new Map([["pi", Math.PI], ["π", Math.PI], ["e", Math.E], ["tau", 2 * Math.PI]]);

/**
 * Maps a name to [fewest arguments, most arguments, the function].
 * @type {Map<string, [number, number, (...values: number[]) => number]>}
 */
const FUNCTIONS = new Map([
  ["sqrt", [1, 1, root]], ["cbrt", [1, 1, Math.cbrt]], ["abs", [1, 1, Math.abs]], ["sign", [1, 1, Math.sign]],
  ["round", [1, 2, round]], ["floor", [1, 1, Math.floor]], ["ceil", [1, 1, Math.ceil]], ["trunc", [1, 1, Math.trunc]],
  ["sin", [1, 1, Math.sin]], ["cos", [1, 1, Math.cos]], ["tan", [1, 1, Math.tan]],
  ["asin", [1, 1, within(Math.asin, "asin")]], ["acos", [1, 1, within(Math.acos, "acos")]], ["atan", [1, 1, Math.atan]],
  ["exp", [1, 1, Math.exp]], ["ln", [1, 1, logarithm(Math.log, "ln")]], ["log", [1, 1, logarithm(Math.log10, "log")]],
  ["log10", [1, 1, logarithm(Math.log10, "log10")]], ["log2", [1, 1, logarithm(Math.log2, "log2")]],
  ["pow", [2, 2, power]], ["hypot", [1, 9, Math.hypot]], ["fact", [1, 1, factorial]],
  ["min", [1, 99, Math.min]], ["max", [1, 99, Math.max]], ["sum", [1, 99, (...values) => values.reduce((a, b) => a + b)]],
  ["avg", [1, 99, (...values) => values.reduce((a, b) => a + b) / values.length]],
]);

/**
 * Returns the value of an arithmetic expression.
 *
 * @param {string} expression for example `2 * (3 + 4)^2` or `sqrt(2) / 3`
 * @returns {number} always finite
 * @throws {Error} with a text that helps a person, or a model, to correct the expression
 */
export function calculate(expression) {
  if (expression.length > LONGEST) throw new Error(`the expression has ${expression.length} characters; at most ${LONGEST} are read`);
  const parser = new Parser(scan(expression), expression);
  const value = parser.whole();
  if (Number.isNaN(value)) throw new Error(`\`${expression.trim()}\` has no real value`);
  if (!Number.isFinite(value)) throw new Error(`the value of \`${expression.trim()}\` is too large to be shown`);
  return value;
}

/**
 * Writes a number as people do: `0.1 + 0.2` is 0.3, and no more digits than a double has.
 *
 * @param {number} value
 * @param {number} [digits] significant digits
 */
export function numberText(value, digits = 15) {
  if (Number.isSafeInteger(value)) return String(value === 0 ? 0 : value);
  return String(Number(value.toPrecision(digits)));
}

/** @typedef {{ kind: "number", value: number, text: string, at: number } | { kind: "name" | "sign" | "end", text: string, at: number }} Token */

/** @param {string} expression @returns {Token[]} */
function scan(expression) {
  /** @type {Token[]} */
  const tokens = [];
  const pattern = /\s+|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([A-Za-zπ][A-Za-z0-9]*)|(\*\*|[-+*/%^!(),×÷·−–])/gy;
  while (pattern.lastIndex < expression.length) {
    const at = pattern.lastIndex;
    const found = pattern.exec(expression);
    if (!found) throw new Error(`cannot read \`${[...expression.slice(at)][0]}\` at character ${at + 1}; known are numbers, + - * / % ^ ! ( ) and functions`);
    const [, number, name, sign] = found;
    if (number) tokens.push({ kind: "number", value: Number(number), text: number, at });
    else if (name) tokens.push({ kind: "name", text: name.toLowerCase(), at });
    else if (sign) tokens.push({ kind: "sign", text: plainSign(sign), at });
  }
  tokens.push({ kind: "end", text: "", at: expression.length });
  return tokens;
}

/** @param {string} sign */
function plainSign(sign) {
  const same = { "**": "^", "×": "*", "·": "*", "÷": "/", "−": "-", "–": "-" };
  return same[/** @type {keyof typeof same} */ (sign)] ?? sign;
}

class Parser {
  /** @param {Token[]} tokens @param {string} text */
  constructor(tokens, text) {
    this.tokens = tokens;
    this.text = text;
    this.at = 0;
    this.depth = 0;
  }

  whole() {
    if (this.isAtEnd()) throw new Error("the expression is empty; give one such as `17 * 23`");
    const value = this.sum();
    if (this.isAtEnd()) return value;
    if (this.next.text === ")") throw new Error(`there is no \`(\` for the \`)\` at character ${this.next.at + 1}`);
    if (this.next.text === ",") throw new Error("a `,` stands between arguments of a function only; write 1000, not 1,000");
    throw new Error(`expected an operator before ${this.nextInWords()}`);
  }

  /** @returns {number} */
  sum() {
    this.deeper();
    let value = this.product();
    for (;;) {
      if (this.accept("+")) value += this.product();
      else if (this.accept("-")) value -= this.product();
      else break;
    }
    this.depth -= 1;
    return value;
  }

  /** @returns {number} */
  product() {
    let value = this.signed();
    for (;;) {
      if (this.accept("*")) value *= this.signed();
      else if (this.accept("/")) value = divide(value, this.signed());
      else if (this.accept("%")) value = remainder(value, this.afterPercent());
      else return value;
    }
  }

  afterPercent() {
    const { kind, text } = this.next;
    if (kind === "end" || text === ")" || text === ",") {
      throw new Error("`%` is the remainder and needs a number after it; for 15 percent of 200 write 15/100*200");
    }
    return this.signed();
  }

  /** @returns {number} */
  signed() {
    let negative = false;
    for (;;) {
      if (this.accept("-")) negative = !negative;
      else if (!this.accept("+")) break;
    }
    const value = this.power();
    return negative ? -value : value;
  }

  /** @returns {number} */
  power() {
    let value = this.atom();
    while (this.accept("!")) value = factorial(value);
    if (!this.accept("^")) return value;
    this.deeper();
    const exponent = this.signed();
    this.depth -= 1;
    return power(value, exponent);
  }

  /** @returns {number} */
  atom() {
    const token = this.next;
    if (token.kind === "number") {
      this.at += 1;
      return token.value;
    }
    if (token.kind === "name") return this.named(token.text);
    if (this.accept("(")) return this.closing(this.sum());
    throw new Error(`expected a number ${token.kind === "end" ? "at the end" : `before ${this.nextInWords()}`}`);
  }

  /** @param {string} name @returns {number} */
  named(name) {
    this.at += 1;
    const constant = CONSTANTS.get(name);
    if (constant !== undefined) return constant;
    const known = FUNCTIONS.get(name);
    if (!known) throw new Error(`no function or constant named \`${name}\`; known: ${[...FUNCTIONS.keys(), "pi", "e", "tau"].join(", ")}`);
    if (!this.accept("(")) throw new Error(`\`${name}\` needs its arguments in parentheses, as in \`${name}(2)\``);
    const [fewest, most, compute] = known;
    const values = this.arguments();
    if (values.length < fewest || values.length > most) {
      throw new Error(`\`${name}\` takes ${fewest === most ? fewest : `${fewest} to ${most}`} argument${most === 1 ? "" : "s"}, got ${values.length}`);
    }
    return compute(...values);
  }

  arguments() {
    if (this.accept(")")) return [];
    const values = [this.sum()];
    while (this.accept(",")) values.push(this.sum());
    this.closing(0);
    return values;
  }

  /** @param {number} value */
  closing(value) {
    if (!this.accept(")")) {
      throw new Error(this.isAtEnd() ? "a `)` is missing at the end" : `expected \`)\` or an operator before ${this.nextInWords()}`);
    }
    return value;
  }

  /** @param {string} text */
  accept(text) {
    if (this.next.kind !== "sign" || this.next.text !== text) return false;
    this.at += 1;
    return true;
  }

  deeper() {
    this.depth += 1;
    if (this.depth > DEEPEST) throw new Error(`the expression is nested more than ${DEEPEST} deep`);
  }

  isAtEnd() {
    return this.next.kind === "end";
  }

  get next() {
    return /** @type {Token} */ (this.tokens[this.at]);
  }

  nextInWords() {
    return this.isAtEnd() ? "the end" : `\`${this.next.text}\` at character ${this.next.at + 1}`;
  }
}

/** @param {number} left @param {number} right */
function divide(left, right) {
  if (right === 0) throw new Error("division by zero has no value");
  return left / right;
}

/** @param {number} left @param {number} right */
function remainder(left, right) {
  if (right === 0) throw new Error("the remainder of a division by zero has no value");
  return left % right;
}

/** @param {number} base @param {number} exponent */
function power(base, exponent) {
  if (base === 0 && exponent < 0) throw new Error("division by zero has no value");
  const value = base ** exponent;
  if (Number.isNaN(value)) throw new Error(`${numberText(base)}^${numberText(exponent)} has no real value`);
  return value;
}

/** @param {number} value */
function root(value) {
  if (value < 0) throw new Error(`the square root of ${numberText(value)} has no real value`);
  return Math.sqrt(value);
}

/** @param {number} value */
function factorial(value) {
  if (!Number.isInteger(value) || value < 0) throw new Error(`a factorial is defined for whole numbers from 0; got ${numberText(value)}`);
  if (value > 170) throw new Error(`${value}! is too large to be shown; at most 170!`);
  let product = 1;
  for (let factor = 2; factor <= value; factor += 1) product *= factor;
  return product;
}

/** @param {number} value @param {number} [digits] */
function round(value, digits = 0) {
  if (!Number.isInteger(digits) || digits < 0 || digits > 15) throw new Error("`round` takes 0 to 15 digits");
  // Shifts the decimal text, unless it has an exponent: 1.005 has no exact double, and
  // is meant to round to 1.01.
  const shifted = String(value).includes("e") ? value * 10 ** digits : Number(`${value}e${digits}`);
  return Math.round(shifted) / 10 ** digits;
}

/** @param {(value: number) => number} compute @param {string} name */
function logarithm(compute, name) {
  return (/** @type {number} */ value) => {
    if (value <= 0) throw new Error(`\`${name}\` is defined for numbers above zero; got ${numberText(value)}`);
    return compute(value);
  };
}

/** @param {(value: number) => number} compute @param {string} name */
function within(compute, name) {
  return (/** @type {number} */ value) => {
    if (value < -1 || value > 1) throw new Error(`\`${name}\` is defined from -1 to 1; got ${numberText(value)}`);
    return compute(value);
  };
}
