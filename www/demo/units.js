// @ts-check
// Units of eight kinds. A unit is a factor to its kind's base unit; temperatures also have an offset.

/** @typedef {{ symbol: string, kind: string, factor: number, offset: number }} Unit */

/**
 * Maps a kind to rows of [symbol, factor to the base, other names…]. The first row is the base.
 * @type {{ [kind: string]: [string, number, ...string[]][] }}
 */
const TABLE = {
  length: [
    ["m", 1, "metre", "meter"], ["km", 1e3, "kilometre", "kilometer"], ["dm", 0.1, "decimetre", "decimeter"],
    ["cm", 0.01, "centimetre", "centimeter"], ["mm", 1e-3, "millimetre", "millimeter"], ["µm", 1e-6, "um", "micrometre", "micrometer", "micron"],
    ["nm", 1e-9, "nanometre", "nanometer"], ["mi", 1609.344, "mile"], ["yd", 0.9144, "yard"], ["ft", 0.3048, "foot", "feet"],
    ["in", 0.0254, "inch", "inches"], ["nmi", 1852, "nautical mile"], ["au", 149597870700, "astronomical unit"], ["ly", 9460730472580800, "light year", "light-year"],
  ],
  mass: [
    ["kg", 1, "kilogram", "kilogramme", "kilo"], ["g", 1e-3, "gram", "gramme"], ["mg", 1e-6, "milligram"], ["µg", 1e-9, "ug", "microgram"],
    ["t", 1e3, "tonne", "metric ton"], ["lb", 0.45359237, "lbs", "pound"], ["oz", 0.028349523125, "ounce"],
    ["st", 6.35029318, "stone"], ["US ton", 907.18474, "ton", "short ton"],
  ],
  temperature: [["K", 1, "kelvin"], ["°C", 1, "c", "celsius", "centigrade", "degc"], ["°F", 5 / 9, "f", "fahrenheit", "degf"]],
  volume: [
    ["l", 1, "litre", "liter"], ["ml", 1e-3, "millilitre", "milliliter"], ["cl", 0.01, "centilitre", "centiliter"], ["dl", 0.1, "decilitre", "deciliter"],
    ["m³", 1e3, "m3", "cubic metre", "cubic meter"], ["cm³", 1e-3, "cm3", "cc", "cubic centimetre", "cubic centimeter"],
    ["gal", 3.785411784, "gallon", "us gallon"], ["imp gal", 4.54609, "imperial gallon", "uk gallon"], ["qt", 0.946352946, "quart"],
    ["pt", 0.473176473, "pint", "us pint"], ["imp pt", 0.56826125, "imperial pint", "uk pint"], ["cup", 0.2365882365, "us cup"],
    ["fl oz", 0.0295735295625, "floz", "fluid ounce"], ["tbsp", 0.01478676478125, "tablespoon"], ["tsp", 0.00492892159375, "teaspoon"],
  ],
  speed: [
    ["m/s", 1, "mps", "metre per second", "meter per second", "metres per second", "meters per second"],
    ["km/h", 1 / 3.6, "kmh", "kph", "kilometre per hour", "kilometer per hour", "kilometres per hour", "kilometers per hour"],
    ["mph", 0.44704, "mi/h", "mile per hour", "miles per hour"], ["kn", 1852 / 3600, "kt", "knot"], ["ft/s", 0.3048, "fps", "foot per second", "feet per second"],
  ],
  data: [
    ["B", 1, "byte"], ["kB", 1e3, "kilobyte"], ["MB", 1e6, "megabyte"], ["GB", 1e9, "gigabyte"], ["TB", 1e12, "terabyte"], ["PB", 1e15, "petabyte"],
    ["KiB", 1024, "kibibyte"], ["MiB", 1024 ** 2, "mebibyte"], ["GiB", 1024 ** 3, "gibibyte"], ["TiB", 1024 ** 4, "tebibyte"],
    ["bit", 1 / 8, "b"], ["kbit", 125, "kb", "kilobit"], ["Mbit", 125e3, "Mb", "megabit"], ["Gbit", 125e6, "Gb", "gigabit"],
  ],
  time: [
    ["s", 1, "sec", "second"], ["ms", 1e-3, "millisecond"], ["µs", 1e-6, "us", "microsecond"], ["ns", 1e-9, "nanosecond"],
    ["min", 60, "minute"], ["h", 3600, "hr", "hour"], ["d", 86400, "day"], ["week", 604800, "wk"], ["month", 2629746], ["year", 31556952, "yr"],
  ],
  area: [
    ["m²", 1, "m2", "sqm", "square metre", "square meter"], ["km²", 1e6, "km2", "square kilometre", "square kilometer"],
    ["cm²", 1e-4, "cm2", "square centimetre", "square centimeter"], ["ha", 1e4, "hectare"], ["acre", 4046.8564224, "ac"],
    ["ft²", 0.09290304, "ft2", "sqft", "sq ft", "square foot", "square feet"], ["in²", 0.00064516, "in2", "square inch"],
    ["mi²", 2589988.110336, "mi2", "square mile"],
  ],
};

const OFFSETS = new Map([["°C", 273.15], ["°F", 273.15 - (32 * 5) / 9]]);

/**
 * Looked up as written first, then ignoring case: MB and Mb differ, MILES and miles do not.
 * @type {Map<string, Unit>}
 */
const EXACT = new Map();
/** @type {Map<string, Unit>} */
const FOLDED = new Map();
for (const [kind, rows] of Object.entries(TABLE)) {
  for (const [symbol, factor, ...names] of rows) {
    const unit = { symbol, kind, factor, offset: OFFSETS.get(symbol) ?? 0 };
    for (const name of [symbol, ...names]) {
      EXACT.set(name, unit);
      if (!FOLDED.has(name.toLowerCase())) FOLDED.set(name.toLowerCase(), unit);
    }
  }
}

/** The kinds of quantity that can be converted, for a description. */
export const KINDS = Object.keys(TABLE);

/**
 * Returns the unit of that name: a symbol, singular or plural, in any spacing.
 *
 * @param {string} name
 * @returns {Unit | undefined}
 */
export function unitNamed(name) {
  const plain = name.trim().replace(/\s+/g, " ").replace(/^degrees? /i, "").replace(/[.]$/, "").replace(/^°\s*/, "").replace(/\^([23])/, "$1");
  const folded = plain.toLowerCase();
  return EXACT.get(plain) ?? FOLDED.get(folded) ?? FOLDED.get(folded.replace(/s$/, "")) ?? FOLDED.get(folded.replace(/s per /, " per "))
    ?? FOLDED.get(folded.replace(/es$/, ""));
}

/**
 * Converts a value from one unit to another of the same kind.
 *
 * @param {number} value
 * @param {string} from
 * @param {string} to
 * @returns {{ value: number, from: Unit, to: Unit }}
 * @throws {Error} that names the unit, and the known ones
 */
export function convert(value, from, to) {
  const [source, target] = [required(from), required(to)];
  if (source.kind !== target.kind) {
    throw new Error(`\`${source.symbol}\` is a unit of ${source.kind} and \`${target.symbol}\` one of ${target.kind}; they do not convert`);
  }
  const base = value * source.factor + source.offset;
  if (source.kind === "temperature" && base < -1e-9) throw new Error(`${value} ${source.symbol} lies below absolute zero`);
  if (source === target) return { value, from: source, to: target };
  return { value: (base - target.offset) / target.factor, from: source, to: target };
}

/** @param {string} name */
function required(name) {
  const unit = unitNamed(name);
  if (unit) return unit;
  throw new Error(`no unit named \`${name}\`; known are common units of ${KINDS.join(", ")}, by symbol or name`);
}
