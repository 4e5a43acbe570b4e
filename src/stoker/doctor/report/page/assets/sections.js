// The other sections of a run's page, each from its part of the data; null where there is nothing to show.

function sentenceOf(parts) {
  return el("h1", "", parts.map((part) => (part.strong ? el("strong", "", part.text) : part.text)));
}

function factsOf(facts) {
  return el("dl", "chips", facts.map(([name, value]) => el("div", "", el("dt", "", name), el("dd", "", value))));
}

function accountBar(accounts) {
  const stack = el("div", "stack", accounts.map((account) => {
    const part = el("i", `a-${account.name}`);
    part.style.flexGrow = String(Math.max(account.share, 0.002));
    part.title = `${account.name} ${account.percent}`;
    if (account.share > 0.09) part.append(el("span", "", account.name));
    return part;
  }));
  stack.setAttribute("role", "img");
  stack.setAttribute("aria-label", accounts.map((a) => `${a.name} ${a.percent}`).join(", "));
  // A name that does not fit is better left out than cut: the table below has them all.
  new ResizeObserver(() => stack.querySelectorAll("span").forEach((name) => {
    name.classList.toggle("unfit", name.scrollWidth + 4 > name.parentNode.clientWidth);
  })).observe(stack);
  return stack;
}

function accountsSection() {
  if (!data.accounts.length) return null;
  const rows = data.accounts.map((account) => [
    el("span", "account", el("i", `swatch a-${account.name}`), account.name), account.meaning, account.time, account.percent,
  ]);
  return section("accounts", "Where the time went", accountBar(data.accounts),
    table(["account", "", "time", "share"], rows, [2, 3]));
}

function tracesSection() {
  if (!data.traces.length) return null;
  return section("retraces", "Retraces",
    el("p", "lead", "Functions whose graph was built more than once, and what was different each time."),
    data.traces.map((row) => el("article", "card",
      el("p", "card-head", el("b", "", row.function), " ", place(row.where)),
      el("p", "facts", [`${row.traces} traces`, row.objects > 1 ? `${row.objects} function objects` : "", row.time]
        .filter((part) => part).join(" · ")),
      changesOf(row.changes))));
}

function stageNode(stage) {
  const head = el("div", stage.slow ? "stage slow" : "stage", el("b", "", stage.name),
    el("span", "quiet", stage.calls ? `${stage.time} · ${stage.calls.toLocaleString("en")} calls` : ""),
    stage.buffer ? el("span", "tag", "buffer") : null, stage.slow ? el("span", "badge", "slowest stage") : null,
    bar(stage.share, stage.slow ? "a-sync" : "a-input"));
  return el("li", "", head, stage.children.length ? el("ul", "", stage.children.map(stageNode)) : null);
}

function writtenPipeline(pipeline) {
  const stages = pipeline.stages.map((stage) => el("li", stage.slow ? "slow" : "", el("b", "", stage.name),
    stage.python ? el("span", "tag", "Python") : null, stage.slow ? el("span", "badge", "slow") : null,
    stage.where ? el("span", "quiet", place(stage.where)) : null));
  return el("article", "card", el("ol", "chain", stages), el("p", "facts", pipeline.facts));
}

function pipelinesSection() {
  const { written, ran } = data.pipelines;
  if (!written.length && !ran.length) return null;
  return section("input", "Input pipeline",
    written.length ? [el("h3", "", "As written"), written.map(writtenPipeline)] : null,
    ran.length ? [el("h3", "", "As TensorFlow ran it"),
      el("p", "lead", "Each stage reads from the one below it; bars are its own time in the recorded windows."),
      el("ul", "tree", ran.map(stageNode))] : null);
}

function tuningCard(tuning) {
  const listed = (title, lines) => (lines.length ? [el("h3", "", title), el("ul", "", lines.map((line) => el("li", "", line)))] : null);
  return el("article", "card",
    el("p", "card-head", el("b", "", tuning.sentence), " ", tuning.where ? place(tuning.where) : null),
    tuning.trees.map((tree) => table([tree.title, ...tuning.head], tree.rows, [1, 2, 3, 4])),
    listed("Changed", tuning.changes),
    tuning.evidence ? el("p", "facts", tuning.evidence) : null,
    listed("Left alone", tuning.left));
}

function tuningsSection() {
  if (!data.tunings.length) return null;
  return section("tuner", "Tuner",
    el("p", "lead", "What stoker.tune measured and changed: elements a second each stage made in one serial pass, and could make on a core of its own."),
    data.tunings.map(tuningCard));
}

function copiesSection() {
  const parts = [["Host data copied in", data.copies], ["Tensors read back", data.reads], ["Checkpoints", data.checkpoints]];
  const shown = parts.filter(([, rows]) => rows.length).map(([title, rows]) => [el("h3", "", title),
    table(["line", "function", "times", "bytes", "time"], rows.map(([where, ...cells]) => [place(where), ...cells]), [2, 3, 4])]);
  return shown.length ? section("copies", "Copies by line", shown) : null;
}

function functionsSection() {
  const parts = [];
  if (data.functions.length) {
    parts.push(el("h3", "", "Compiled functions"), table(["function", "defined at", "calls", "in the graph", "in all"],
      data.functions.map(([name, where, ...cells]) => [name, place(where), ...cells]), [2, 3, 4]));
  }
  if (data.callbacks.length) {
    parts.push(el("h3", "", "Callbacks"), table(["callback", "defined at", "calls", "time"],
      data.callbacks.map(([name, where, ...cells]) => [name, place(where), ...cells]), [2, 3]));
  }
  return parts.length ? section("functions", "Functions and callbacks", parts) : null;
}

function environmentSection() {
  return section("environment", "Environment",
    el("dl", "pairs", data.environment.map(([name, value]) => [el("dt", "", name), el("dd", "", value)])));
}

function notesOf(notes) {
  return notes.length ? el("ul", "notes", notes.map((note) => el("li", "", note))) : null;
}

function runSections() {
  return [
    accountsSection(),
    data.timeline ? timelineSection(data.timeline) : null,
    findingsSection(),
    data.steps ? stepsSection(data.steps) : null,
    tracesSection(),
    pipelinesSection(),
    tuningsSection(),
    copiesSection(),
    functionsSection(),
    data.memory_book.length ? memoryBookSection(data.memory_book) : null,
    data.memory ? memorySection(data.memory) : null,
    environmentSection(),
  ];
}
