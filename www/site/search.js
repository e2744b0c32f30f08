// How the pages are searched: the build makes the index with this, and the page reads it with this.
export const SEARCH = {
  fields: ["heading", "title", "text"],
  storeFields: ["address", "title", "heading", "begin"],
  searchOptions: { boost: { heading: 4, title: 3 }, prefix: true, fuzzy: 0.15, combineWith: "AND" },
};
