// What is taken out of the validator: it is asked about draft 2020-12 alone, for all errors, and nobody reads in which keyword of
// the schema one has its cause. And what is put in: it counts its work (values.js). Each has to be found.

/** By file. @type {Record<string, [RegExp, string][]>} */
export const edits = {
  "./validate.js": [
    // Other drafts.
    [/draft === '[47]'/g, "false"],
    [/ draft = '2019-09',/, ""],
    // To stop at the first error.
    [/^ *let stop = false;\n/gm, ""],
    [/^ *stop = shortCircuit;\n/gm, ""],
    [/^ *if \(stop\)\n *break;\n/gm, ""],
    [/!stop && /g, ""],
    [/ shortCircuit = true,/, ""],
    [/ draft, lookup, shortCircuit,/g, " lookup,"],
    // The keywords.
    [/^ *keyword: '.*',\n/gm, ""],
    [/^ *keywordLocation(: .*)?,\n/gm, ""],
    [/^ *const keywordLocation = .*;\n/gm, ""],
    [/, schemaLocation = '#'/, ""],
    [/, (keywordLocation|`\$\{(schema|keyword)Location\}.*?`)(?=\)|, \w*valuated\))/g, ""],
    // The work: every schema that is asked about a value, every turn of a loop, every error, every text of a schema.
    [/import \{ deepCompareStrict \}/, "import { add, deepCompareStrict, equalPair, isAmong, isMatch, merge, shown, visit }"],
    [/^ *if \(\$uniqueItems\) \{\n[^]*?^ {8}\}\n/m, "const pair = $uniqueItems && equalPair(lookup, instance); if (pair) add(lookup, errors, { instanceLocation, error: `Duplicate items at indexes ${pair[0]} and ${pair[1]}.` });\n"],
    [/^( *for \(.*\) \{)$/gm, "$1 visit(lookup);"],
    [/if \(schema === true\)/, "visit(lookup); if (schema === true)"],
    [/errors\.push\(/g, "add(lookup, errors, "],
    [/\.\.\.(?=\w*[rR]esult\.errors)/g, ""],
    [/Object\.assign\(evaluated, \.\.\.subEvaluateds\)/, "merge(lookup, evaluated, subEvaluateds)"],
    [/\$enum\.some\(.*?=> .*\)(?=\) \{)/g, "isAmong(lookup, $enum, instance)"],
    [/JSON\.stringify\((\$\w+)\)/g, "shown(lookup, $1)"],
    [/new RegExp\(\$pattern, 'u'\)\.test\(instance\)/, "isMatch(lookup, $pattern, instance)"],
    [/^.*new RegExp\(pattern, 'u'\);\n/m, ""],
    [/regex\.test\(key\)/, "isMatch(lookup, pattern, key)"],
  ],
  "./dereference.js": [
    // A schema with addresses within addresses is gone through once for each.
    [/import \{ encodePointer \}.*\n/, "$&import { visit } from './deep-compare-strict.js';\n"],
    [/^export function dereference\(.*$/m, "$& visit(lookup);"],
    // The page's address, with all that stands in it, is nothing for a model to be told when a reference leads nowhere.
    [/typeof self[^:]*:/, ""],
    // Nobody reads it.
    [/ *if \(schema\.__absolute_uri__ === undefined\) \{[^}]*\}\);\n *\}\n/, ""],
    // Keywords that hold no object are passed over as they are.
    [/^ *(id|\$(id|ref|schema|anchor|comment)|enum|required|type|(max|min)\w+|multipleOf|pattern|format): true,?\n/gm, ""],
  ],
};
