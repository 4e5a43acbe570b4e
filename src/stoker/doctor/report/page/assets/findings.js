// The findings: each a fold that is filled when it is first opened, so that hundreds of them cost nothing.

const PYTHON = new RegExp([
  "(?<comment>#.*)",
  "(?<string>[rbfuRBFU]{0,2}(?:\"\"\".*?(?:\"\"\"|$)|'''.*?(?:'''|$)|\"(?:\\\\.|[^\"\\\\])*\"?|'(?:\\\\.|[^'\\\\])*'?))",
  "(?<word>\\b(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if"
    + "|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|None|True|False)\\b)",
  "(?<mark>@[\\w.]+)",
  "(?<number>\\b\\d[\\w.]*)",
  "(?<call>\\b[A-Za-z_]\\w*(?=\\())",
].join("|"), "g");

// A line of Python as spans; what is not recognised stays plain.
function highlighted(line) {
  const nodes = [];
  let last = 0;
  for (const match of line.matchAll(PYTHON)) {
    if (match.index > last) nodes.push(line.slice(last, match.index));
    const [kind] = Object.entries(match.groups).find(([, text]) => text !== undefined);
    nodes.push(el("span", `t-${kind}`, match[0]));
    last = match.index + match[0].length;
  }
  if (last < line.length) nodes.push(line.slice(last));
  return nodes;
}

function sourceLine(number, text, heat, cost, hit) {
  const gutter = el("span", "gutter", cost);
  if (heat > 0) gutter.style.setProperty("--heat", String(0.12 + 0.88 * heat));
  const row = el("div", hit ? "code-line hit" : "code-line", gutter, el("span", "number", String(number)),
    el("code", "", highlighted(text)));
  if (heat > 0) row.classList.add(...(heat > 0.5 ? ["hot", "hottest"] : ["hot"]));
  return row;
}

function sourceOf(finding) {
  const around = data.excerpts.find((excerpt) => excerpt.file === finding.file && excerpt.first <= finding.line
    && finding.line < excerpt.first + excerpt.lines.length);
  if (!around) {
    return finding.source ? el("div", "code", sourceLine(finding.line, finding.source, 0, "", true)) : null;
  }
  // Excerpts that touch were joined when they were recorded; here each finding has its own lines again.
  const from = Math.max(around.first, finding.line - 6);
  const to = Math.min(around.first + around.lines.length - 1, finding.line + 6);
  const rows = [];
  for (let number = from; number <= to; number += 1) {
    const index = number - around.first;
    rows.push(sourceLine(number, around.lines[index], around.heat[index], around.cost[index], number === finding.line));
  }
  return el("div", "code", rows);
}

function snippet(title, rows, className) {
  const body = rows.map(([text, differs]) => el("div", differs ? `code-line ${className}` : "code-line",
    el("code", "", highlighted(text))));
  return el("figure", "", el("figcaption", "", title), el("div", "code", body));
}

function changesOf(changes) {
  if (!changes.length) return null;
  return el("ul", "changes", changes.map(([argument, before, after]) => el("li", "", el("code", "", argument), " ",
    el("del", "", before), " → ", el("ins", "", after))));
}

function remedyOf(finding) {
  const example = data.examples[finding.kind];
  return [
    el("p", "remedy", el("b", "", "Remedy "), prose(finding.remedy)),
    example ? el("details", "example", el("summary", "", "Why, and an example of before and after"), el("p", "", prose(example.why)),
      el("div", "pair", snippet("Before", example.before, "removed"), snippet("After", example.after, "added"))) : null,
  ];
}

function findingFold(finding, index) {
  const price = el("span", finding.minor ? "price minor" : "price",
    finding.then ? [el("small", "", "then "), finding.then] : finding.price || "–");
  if (finding.range) price.title = `between ${finding.range}`;
  const head = el("summary", "", price, el("span", "what", el("b", "", finding.title),
    el("span", "where", place(`${finding.file}:${finding.line}`), finding.function ? ` in ${finding.function}` : "")),
  finding.first ? el("span", "badge", "first") : null);
  const fold = el("details", "finding", head);
  fold.id = `finding-${index + 1}`;
  let filled = false;
  const fill = () => {
    if (filled || !fold.open) return;
    filled = true;
    const facts = [finding.lost, finding.range && !finding.then ? `${finding.price} faster without it (${finding.range})` : "",
      finding.then ? `${finding.then} once what comes before it is repaired` : "", finding.evidence, finding.how !== "measured" ? finding.how : ""].filter((part) => part);
    fold.append(el("div", "body", el("p", "facts", el("span", "kind", `${finding.kind} ${finding.code}`), facts.join(" · ")),
      sourceOf(finding), changesOf(finding.changes), remedyOf(finding), finding.note ? el("p", "quiet", finding.note) : null));
  };
  fold.addEventListener("toggle", fill);
  if (index < 2 && !finding.minor) { fold.open = true; fill(); }
  return fold;
}

function orderOf(order) {
  if (!order || order.rows.length < 2) return null;
  const most = Math.max(...order.rows.map((row) => row.gain), 1);
  const rows = order.rows.map((row, i) => [String(i + 1), place(row.where), row.kind, row.alone,
    el("span", "with-bar", row.together, bar(row.gain / most, "a-compute"))]);
  return el("details", "example", el("summary", "", `In which order: all of them ${order.all} faster (${order.range})`),
    table(["", "change", "kind", "alone", "with all above"], rows, [3]),
    order.assumptions.length ? el("div", "quiet", "The prices assume:",
      el("ul", "", order.assumptions.map((text) => el("li", "", prose(text))))) : null);
}

function findingsSection() {
  const findings = data.findings;
  if (!findings.length) return section("findings", "What to change", el("p", "lead", "Nothing stalls this program."));
  const dear = findings.filter((finding) => !finding.minor);
  const minor = findings.filter((finding) => finding.minor);
  const folds = (list) => el("div", "folds", list.map((finding) => findingFold(finding, findings.indexOf(finding))));
  const rest = minor.length ? el("details", "example rest",
    el("summary", "", `${minor.length} more that cost${minor.length === 1 ? "s" : ""} less than 2 % each`)) : null;
  // Hundreds of small ones are only built when someone asks for them.
  if (rest) rest.addEventListener("toggle", () => { if (rest.open && !rest.querySelector(".folds")) rest.append(folds(minor)); });
  return section("findings", "What to change",
    el("p", "lead", dear.length ? "Most costly first. The figure is how much faster the steps after the first would be without it or, of what holds memory, how many bytes; heat in the margin is time lost."
      : "Nothing here costs 2 % or more."),
    orderOf(data.order), folds(dear), rest);
}
