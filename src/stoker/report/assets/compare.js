// The page of a comparison: two sides of one or more runs.

function compareSections() {
  return [];
}
