// What is taken out of the validator: it is asked about draft 2020-12 alone, for all errors, and nobody reads in which keyword of
// the schema one has its cause. Each has to be found.

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
  ],
  "./dereference.js": [
    // The page's address, with all that stands in it, is nothing for a model to be told when a reference leads nowhere.
    [/typeof self[^:]*:/, ""],
    // Nobody reads it.
    [/ *if \(schema\.__absolute_uri__ === undefined\) \{[^}]*\}\);\n *\}\n/, ""],
    // Keywords that hold no object are passed over as they are.
    [/^ *(id|\$(id|ref|schema|anchor|comment)|enum|required|type|(max|min)\w+|multipleOf|pattern|format): true,?\n/gm, ""],
  ],
};
