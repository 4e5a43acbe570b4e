// Comparing runs: curves on one chart, parallel coordinates, what was changed and what came of it.

async function compareView(root, ids) {
  root.replaceChildren(el("p", "quiet loading", "Loading …"));
  const runs = await Promise.all(ids.map((id) => ask(`/api/run/${encodeURIComponent(id)}`)));
  const labels = runs.map((run, i) => (runs.filter((one) => one.name === run.name).length > 1 ? `${run.name} ${run.id.slice(-4)}` : run.name || run.id || String(i)));
  const shared = [...new Set(runs.flatMap((run) => Object.keys(run.series)))].filter((name) => !/^(ledger|event)\//.test(name) && name !== "epoch");
  const state = { clock: false, weight: 0, charts: [], name: shared.includes("loss") ? "loss" : shared[0] };
  const holder = el("div", "");
  const drawCurve = async () => {
    if (!state.name) { holder.replaceChildren(empty("These runs have logged no values.")); return; }
    const found = await Promise.all(runs.map((run) => loaded(run.id, state.name)));
    const start = (one) => one.times[0] || 0;
    const series = found.map((one, i) => ({ label: labels[i], xs: state.clock ? one.times.map((at) => at - start(one)) : one.steps, values: one.values }));
    const node = curves(state.name, series, { weight: state.weight });
    state.charts = [{ node }];
    holder.replaceChildren(node, legend(labels.map((label, i) => [label, PALETTE[i % PALETTE.length]])));
  };
  const picker = el("select", "", shared.map((name) => { const one = el("option", "", name); one.value = name; one.selected = name === state.name; return one; }));
  picker.setAttribute("aria-label", "series");
  picker.addEventListener("change", () => { state.name = picker.value; drawCurve(); });
  const differences = await ask(`/api/differences?${query({ runs: runs.map((run) => run.id).join(",") })}`);
  root.replaceChildren(
    el("h1", "", `${runs.length} runs compared`),
    section("curves", "Curves", el("div", "tools", picker), curveControls(state, drawCurve), holder),
    parallelSection(runs, labels),
    changesSection(runs, labels, differences),
  );
  await drawCurve();
}

function parallelSection(runs, labels) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.parameters)))].filter((name) => new Set(runs.map((run) => JSON.stringify(run.parameters[name]))).size > 1);
  const results = [...new Set(runs.flatMap((run) => Object.keys(run.series)))].filter((name) => !/^(ledger|event)\//.test(name) && name !== "epoch").slice(0, 4);
  const axes = [
    ...names.slice(0, 6).map((name) => ({ title: name, values: runs.map((run) => run.parameters[name]) })),
    ...results.map((name) => ({ title: name, values: runs.map((run) => (run.series[name] ? number(run.series[name].last) : null)) })),
    { title: "seconds", values: runs.map((run) => run.seconds) },
  ];
  if (axes.length < 2) return null;
  const [width, height, top] = [Math.max(480, axes.length * 130), 260, 46];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", "parallel");
  svg.style.maxWidth = `${width * 1.4}px`;
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "parameters and results of each run");
  const make = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
    if (text !== undefined) node.textContent = text;
    svg.append(node);
    return node;
  };
  const xOf = (i) => 70 + (i * (width - 140)) / (axes.length - 1);
  const yOf = axes.map(({ values }) => {
    const numbers = values.map((value) => (typeof value === "number" ? value : null));
    // A run that does not have it has no place on the axis.
    const has = (i) => values[i] !== null && values[i] !== undefined;
    const words = [...new Set(values.filter((_, i) => has(i)).map(brief))].sort();
    const known = numbers.filter((value) => Number.isFinite(value));
    const all = known.length === values.filter((value) => value !== null && value !== undefined).length;
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const share = (i) => {
      if (all) return Number.isFinite(numbers[i]) ? (high === low ? 0.5 : (numbers[i] - low) / (high - low)) : null;
      if (!has(i)) return null;
      return words.length < 2 ? 0.5 : words.indexOf(brief(values[i])) / (words.length - 1);
    };
    return { at: (i) => (share(i) === null ? null : height - 30 - share(i) * (height - 30 - top)), ends: all && known.length ? [shown(high), shown(low)] : [words[words.length - 1], words[0]] };
  });
  axes.forEach(({ title }, i) => {
    make("line", { x1: xOf(i), x2: xOf(i), y1: top, y2: height - 30, class: "axis" });
    make("text", { x: xOf(i), y: 16, class: "title" }, title.length > 18 ? `${title.slice(0, 17)}…` : title);
    make("text", { x: xOf(i), y: 34, class: "end" }, String(yOf[i].ends[0] ?? "").slice(0, 14));
    make("text", { x: xOf(i), y: height - 12, class: "end" }, String(yOf[i].ends[1] ?? "").slice(0, 14));
  });
  runs.forEach((run, i) => {
    const points = axes.map((_, j) => [xOf(j), yOf[j].at(i)]).filter(([, y]) => y !== null);
    const line = make("polyline", { points: points.map((one) => one.join(",")).join(" "), class: "run" });
    line.style.stroke = `var(--${PALETTE[i % PALETTE.length]})`;
    line.append(Object.assign(document.createElementNS("http://www.w3.org/2000/svg", "title"), { textContent: labels[i] }));
  });
  return section("parallel", "Parameters and results", el("div", "scroll", svg), legend(labels.map((label, i) => [label, PALETTE[i % PALETTE.length]])));
}

function changesSection(runs, labels, differences) {
  const by = (one) => (typeof one.a === "number" && typeof one.b === "number" && one.a ? ` (${one.b > one.a ? "+" : ""}${((100 * (one.b - one.a)) / Math.abs(one.a)).toFixed(1)} %)` : "");
  const item = (one) => el("li", "", el("b", "", one.name), " ", el("del", "", brief(one.a)), " ", el("ins", "", brief(one.b)), by(one));
  const list = (items) => (items.length ? el("ul", "changes", items.map(item)) : el("p", "quiet", "Nothing that the store knows of."));
  return section("what-changed", `Against ${labels[0]}`, differences.map((one, i) => el("div", "card", el("h3", "", link(`#/run/${encodeURIComponent(one.b)}`, "", labels[i + 1])),
    el("div", "pair", el("figure", "", el("figcaption", "", "What was changed"), list(Object.values(one.changed).flat())),
      el("figure", "", el("figcaption", "", "What it cost or gained"), list([...one.results.filter(({ name }) => !/^(ledger|event)\//.test(name) && name !== "epoch"), ...one.speed, ...one.ledger].filter(({ a, b }) => a !== b)))))));
}

function brief(value) {
  const text = shown(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
