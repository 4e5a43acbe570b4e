// One run: its curves, its ledger on the same time axis, its findings, and what it used and made.

// `loss` and `val_loss` belong on one chart.
function grouped(names) {
  const groups = new Map();
  names.forEach((name) => {
    const key = name.replace(/(^|\/)val_/, "$1");
    groups.set(key, [...(groups.get(key) || []), name]);
  });
  const first = ([key]) => (/(^|\/)loss$/.test(key) ? 0 : 1);
  return [...groups.entries()].sort((a, b) => first(a) - first(b));
}

async function loaded(run, name) {
  const found = await ask(`/api/series?${query({ run, name })}`);
  return { label: name, steps: found.steps, times: found.times, values: finiteOf(found.values) };
}

async function runView(root, id) {
  root.replaceChildren(el("p", "quiet loading", "Loading …"));
  let run = await ask(`/api/run/${encodeURIComponent(id)}`);
  const dot = light();
  const facts = el("dl", "chips");
  const state = { clock: false, weight: 0, charts: [] };
  const ledgered = [run, ...run.family].find((one) => Object.keys(one.series).some((name) => name.startsWith("ledger/")));
  state.clock = Boolean(ledgered);
  const holder = el("div", "");
  const controls = curveControls(state, () => drawCurves());
  const names = () => Object.keys(run.series).filter((name) => !/^(ledger|event)\//.test(name) && name !== "epoch");
  const xs = (one) => (state.clock ? one.times : one.steps);
  const drawCurves = async () => {
    const marks = (await Promise.all(Object.keys(run.series).filter((name) => name.startsWith("event/")).map((name) => loaded(run.id, name))))
      .flatMap((one) => xs(one).map((x) => ({ x, label: one.label.replace("event/", "") })));
    const groups = await Promise.all(grouped(names()).map(async ([title, inside]) => [title, await Promise.all(inside.map((name) => loaded(run.id, name)))]));
    state.charts = groups.map(([title, all]) => {
      const series = all.map((one, i) => ({ ...one, xs: xs(one), dash: i ? [6, 4] : undefined, colour: PALETTE[i] }));
      const bounds = state.clock && ledgered ? boundsOf(run) : null;
      return { title, names: all.map((one) => one.label), node: curves(title, series, { ...state, marks, sync: "run", bounds }) };
    });
    const nodes = state.charts.map(({ title, names: inside, node }) => el("figure", "", el("h3", "", title), node, inside.length > 1 ? legend(inside.map((name, i) => [name, PALETTE[i]])) : null));
    if (state.clock && ledgered) nodes.splice(1, 0, await ledgerFigure(ledgered, run));
    holder.replaceChildren(...(nodes.length ? nodes : [empty("Nothing was logged.", "Values appear here as soon as the run logs some.")]));
  };
  const chips = () => {
    const shownFacts = [["state", stateOf(run)], ["took", lasting(run.seconds)], ["steps", shown(run.steps)], ["steps/s", shown(run.steps_per_s)], ["started", moment(run.started)]];
    facts.replaceChildren(...shownFacts.map(([name, value]) => el("div", "", el("dt", "", name), el("dd", "", value))));
  };
  chips();
  const sections = [
    section("curves", "Values", controls, holder),
    findingsSection(run), rolloutSection(run), lineageSection(run), familySection(run),
    pairsSection("parameters", "Parameters", run.parameters),
    pairsSection("environment", "Program, versions, machine", {
      program: [run.program, ...run.arguments].join(" "), commit: run.git_commit, ...run.versions, ...run.machine,
    }),
    run.git_diff ? section("changes", "Uncommitted changes", el("pre", "code diff", run.git_diff)) : null,
  ].filter(Boolean);
  root.replaceChildren(
    el("h1", "", run.name || run.id),
    el("p", "lead", `${run.kind} · ${run.id}`, run.error ? el("span", "problem", ` · ${run.error}`) : null),
    el("div", "toolbar", facts, el("div", "tools", pageLink(run), deleteButton(run), dot)),
    ...sections,
  );
  await drawCurves();
  listen(run.id, dot, async () => {
    const before = Object.keys(run.series).length;
    run = await ask(`/api/run/${encodeURIComponent(id)}`);
    chips();
    if (Object.keys(run.series).length !== before) { await drawCurves(); return; }
    await Promise.all(state.charts.map(async ({ names: inside, node }) => {
      const all = await Promise.all(inside.map((name) => loaded(run.id, name)));
      node.grow(all.map((one) => ({ xs: xs(one), values: one.values })), state.weight);
    }));
  });
}

function curveControls(state, redraw) {
  const slider = el("input", "");
  slider.type = "range";
  slider.min = 0;
  slider.max = 0.99;
  slider.step = 0.01;
  slider.value = state.weight;
  slider.id = "smoothing";
  slider.addEventListener("input", () => { state.weight = Number(slider.value); state.charts.forEach(({ node }) => node.smooth(state.weight)); });
  const axes = button(state.clock ? "Over steps" : "Over time", "Steps or time along the axis", () => {
    state.clock = !state.clock;
    axes.textContent = state.clock ? "Over steps" : "Over time";
    redraw();
  });
  axes.id = "axis";
  return el("div", "toolbar", el("label", "tools", "Smoothing", slider), el("div", "tools", axes, el("span", "quiet", "Drag to zoom, double-click to see all.")));
}

// When a run started and ended, or how far it has come, by its own clock and by what it logged.
function boundsOf(run) {
  return [run.started, run.ended || run.seen || run.started + 1];
}

// The part of a ledger within bounds; what crosses a bound is cut there.
function within(times, values, [from, to]) {
  const inside = times.map((at, i) => [Math.min(Math.max(at, from), to), values[i], at]);
  const kept = inside.filter(([, , at], i) => (i === times.length - 1 || times[i + 1] >= from) && (i === 0 || times[i - 1] <= to || at <= to));
  return { times: kept.map(([at]) => at), values: kept.map(([, value]) => value) };
}

async function ledgerFigure(owner, run) {
  const names = Object.keys(owner.series).filter((name) => name.startsWith("ledger/"));
  const accounts = await Promise.all(names.map(async (name) => {
    const one = await loaded(owner.id, name);
    const part = owner.id === run.id ? one : within(one.times, one.values, boundsOf(run));
    return { account: name.replace("ledger/", "").replace(/[^\w-]/g, ""), times: part.times, values: part.values };
  }));
  const same = accounts.filter((one) => one.times.length === accounts[0].times.length);
  const whose = owner.id === run.id ? null : el("p", "quiet", "As measured by ", link(`#/run/${encodeURIComponent(owner.id)}`, "", owner.name || owner.id));
  return el("figure", "", el("h3", "", "Where the time went"), ledgerCurve(same, "run"), whose);
}

function findingsSection(run) {
  if (!run.findings.length && !Object.keys(run.ledger).length) return null;
  const total = Object.values(run.ledger).reduce((sum, one) => sum + one, 0);
  const accounts = table(["account", "seconds", "share"], Object.entries(run.ledger).map(([account, spent]) => [
    account, spent.toFixed(2), el("span", "with-bar", `${Math.round((100 * spent) / (total || 1))} %`, bar(spent / (total || 1), /^\w+$/.test(account) ? `a-${account}` : "")),
  ]), [1]);
  const found = run.findings.map((one) => [
    one.what_if ? `${one.what_if.speedup.toFixed(2)}x` : "–", el("div", "", el("b", "", one.title), el("br", ""), place(`${one.file}:${one.line}`)), one.kind, one.lost_s === null || one.lost_s === undefined ? "–" : seconds(one.lost_s),
  ]);
  return section("findings", "Ledger and findings", accounts, found.length ? el("h3", "", "What was found") : null, found.length ? table(["faster without", "what", "kind", "lost"], found, [0, 3]) : null);
}

// What a server found out about candidates, by comparing their answers with those of its models.
function rolloutSection(run) {
  if (!run.rollouts.length) return null;
  return section("rollouts", "Candidates", table(["model", "candidate", "answers", "requests", "rows changed", "concluded"], run.rollouts.map((one) => [
    one.model, el("code", "", one.path), el("b", "", one.conclusion), shown(one.requests), `${(100 * one.changed).toPrecision(2)} %`, moment(one.time),
  ]), [3, 4]));
}

function pairsSection(id, title, pairs) {
  const rows = Object.entries(pairs).filter(([, value]) => value !== null && value !== "");
  if (!rows.length) return null;
  return section(id, title, el("dl", "pairs", rows.map(([name, value]) => [el("dt", "", name), el("dd", "", shown(value))])));
}

function familySection(run) {
  if (!run.family.length) return null;
  return section("family", "Parents and children", table(["run", "kind", "state"], run.family.map((one) => [
    link(`#/run/${encodeURIComponent(one.id)}`, "", one.id === run.parent ? `↑ ${one.name}` : one.name || one.id), one.kind, stateOf(one),
  ])));
}

// Data, runs, and what the runs made, in columns from left to right.
function lineageSection(run) {
  const { runs, artifacts, links, left_out: leftOut } = run.lineage;
  if (!artifacts.length) return null;
  const depth = new Map([...artifacts.map((one) => [`a${one.id}`, 0]), ...runs.map((one) => [`r${one.id}`, 0])]);
  const edges = links.map((one) => (one.relation === "uses" ? [`a${one.artifact}`, `r${one.run}`] : [`r${one.run}`, `a${one.artifact}`]));
  // Each node is to the right of what leads to it. Links may form a circle, so the number of rounds is limited.
  for (let round = 0, moved = true; moved && round < 30; round += 1) {
    moved = false;
    edges.forEach(([from, to]) => {
      if (depth.get(to) > depth.get(from)) return;
      depth.set(to, depth.get(from) + 1);
      moved = true;
    });
  }
  const nodes = [
    ...artifacts.map((one) => ({ key: `a${one.id}`, node: el("div", "node", el("b", "", one.name), el("span", "quiet", `${one.kind}${one.size === null ? "" : `, ${bytes(one.size)}`}`), el("code", "quiet", one.hash.slice(0, 19))) })),
    ...runs.map((one) => ({ key: `r${one.id}`, node: el("div", `node run${one.id === run.id ? " here" : ""}`, link(`#/run/${encodeURIComponent(one.id)}`, "", one.name || one.id), el("span", "quiet", one.id)) })),
  ];
  const columns = [];
  nodes.forEach(({ key, node }) => { const level = depth.get(key); columns[level] = [...(columns[level] || []), node]; });
  const graph = el("div", "lineage", columns.filter(Boolean).map((inside) => el("div", "column", inside)));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "edges");
  svg.setAttribute("aria-hidden", "true");
  graph.prepend(svg);
  const at = Object.fromEntries(nodes.map(({ key, node }) => [key, node]));
  new ResizeObserver(() => {
    const own = graph.getBoundingClientRect();
    svg.replaceChildren(...edges.map((edge) => {
      const [from, to] = edge.map((key) => at[key].getBoundingClientRect());
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      const [x1, y1, x2, y2] = [from.right - own.left, from.top + from.height / 2 - own.top, to.left - own.left, to.top + to.height / 2 - own.top];
      path.setAttribute("d", `M${x1},${y1} C${(x1 + x2) / 2},${y1} ${(x1 + x2) / 2},${y2} ${x2},${y2}`);
      return path;
    }));
  }).observe(graph);
  const more = leftOut ? el("p", "quiet", `${leftOut.toLocaleString("en")} more are connected and not shown.`) : null;
  return section("lineage", "What it used and made", el("div", "scroll", graph), more);
}

function pageLink(run) {
  if (!run.page) return null;
  const node = link(`/page/${encodeURIComponent(run.id)}`, "", "The run's page");
  node.target = "_blank";
  node.rel = "noopener";
  return node;
}

function deleteButton(run) {
  if (!run.write) return null;
  const node = button("Delete", "Delete this run; its audit stays", async () => {
    if (node.textContent === "Delete") { node.textContent = "Really delete?"; return; }
    await ask(`/api/delete/${encodeURIComponent(run.id)}`, { method: "POST" });
    location.hash = "#/";
  });
  return node;
}
