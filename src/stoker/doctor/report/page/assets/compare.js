// The page of a comparison: two sides of one or more runs.

function sideBars() {
  return el("div", "sides", data.bars.map((bars, i) => el("div", "", el("b", "", "AB"[i]), accountBar(bars))));
}

function quantilesSection() {
  const [a, b] = data.quantiles;
  if (!a || !b) return null;
  const xs = a.map((_, i) => i);
  const chart = lines("Step times of both sides, fastest to slowest", xs,
    [{ label: "A", values: a, colour: "quiet" }, { label: "B", values: b, colour: "accent" }],
    (x) => `${x} %`, milliseconds);
  return section("steps", "Step times", el("p", "lead", "From the fastest step to the slowest: A grey, B blue."), chart);
}

function changedFindings(id, title, rows, empty) {
  const heads = ["kind", "line", "source", "of the run", "lost"];
  if (rows.length && rows[0].length > heads.length) heads.push("lost in A");
  const body = rows.slice(0, 100).map(([kind, where, source, ...cells]) => [kind, place(where), el("code", "", source), ...cells]);
  return section(id, title, rows.length ? table(heads, body, [3, 4, 5]) : el("p", "lead", empty));
}

function compareSections() {
  const rows = data.accounts.map(([name, ...cells]) => [
    el("span", "account", el("i", `swatch a-${name}`), name), ...cells]);
  return [
    section("sides", "The two sides", el("dl", "pairs", data.names.map((name, i) => [el("dt", "", "AB"[i]), el("dd", "", name)])),
      el("p", "lead after", data.noise)),
    section("accounts-both", "Where the time went", sideBars(), table(["account", "A", "B", "change"], rows, [1, 2, 3])),
    quantilesSection(),
    changedFindings("gone", "Findings gone", data.gone, "None."),
    changedFindings("new", "Findings new", data.new, "None."),
    changedFindings("stayed", "Findings that stayed", data.stayed, "None."),
    data.environment.length ? section("environment", "What else differs",
      table(["", "A", "B"], data.environment)) : null,
  ];
}
