// Curves: lines over steps or time, with smoothing, zoom by dragging, and marked moments.

const PALETTE = ["a-dispatch", "a-sync", "a-compute", "a-trace", "a-input", "a-transfer", "a-checkpoint", "a-python", "a-teardown", "a-communication", "a-startup"];

// An exponential moving average without bias at its start; gaps stay gaps.
function smoothed(values, weight) {
  if (!weight) return values;
  let sum = 0;
  let norm = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = sum * weight + value * (1 - weight);
    norm = norm * weight + (1 - weight);
    return sum / norm;
  });
}

function finiteOf(values) {
  return values.map((value) => { const one = number(value); return Number.isFinite(one) ? one : null; });
}

// Merge several series, each with its own x values, onto one axis; the axis spans the bounds, if any are given.
function joined(series, weight, bounds) {
  const tables = series.map((one) => [one.xs, smoothed(one.values, weight)]);
  const made = uPlot.join(bounds ? [...tables, [bounds, [null, null]]] : tables);
  return made.slice(0, series.length + 1);
}

// The time of day, as precise as the axis has room for.
function clockTime(at) {
  return new Date(at * 1000).toTimeString().slice(0, 8);
}

// `series` is [{label, xs, values}], `marks` [{x, label}]; `clock` sets the axis in time.
function curves(title, series, { clock = false, weight = 0, marks = [], sync = null, bounds = null } = {}) {
  const readout = el("p", "readout");
  const holder = el("div", "chart");
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", title);
  const formatX = (value) => (clock ? clockTime(value) : shown(Math.round(value)));
  if (!series.some((one) => one.values.some((value) => value !== null))) return unfit(series);
  const told = (u) => {
    const index = u.cursor.idx;
    if (index === null || index === undefined) { readout.textContent = ""; return; }
    const values = series.map((one, i) => [one.label, u.data[i + 1][index]]).filter(([, value]) => value !== null && value !== undefined);
    readout.textContent = `${formatX(u.data[0][index])}: ${values.map(([label, value]) => `${label} ${shown(value)}`).join(", ")}`;
  };
  const mark = (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = colour("warm");
    ctx.fillStyle = colour("warm");
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    marks.forEach(({ x, label }) => {
      const at = u.valToPos(x, "x", true);
      if (at < bbox.left || at > bbox.left + bbox.width) return;
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(label, at + 4 * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
    });
    ctx.restore();
  };
  const place = mounted(holder, (width) => new uPlot({
    width,
    height: 220,
    padding: [18, 22, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false }, ...(sync ? { sync: { key: sync, scales: ["x", null] } } : {}) },
    scales: { x: { time: clock } },
    axes: [axis({ space: 90, size: 34, values: (u, ticks) => ticks.map(formatX) }), axis({ size: 64, values: (u, ticks) => ticks.map(shown) })],
    series: [{}, ...series.map((one, i) => ({
      label: one.label,
      stroke: () => colour(one.colour || PALETTE[i % PALETTE.length]),
      dash: one.dash,
      width: 1.5,
      spanGaps: true,
      points: { show: one.xs.length < 3 },
    }))],
    hooks: { setCursor: [told], draw: [mark] },
  }, joined(series, weight, bounds), holder));
  const node = el("div", "plot", readout, holder);
  node.smooth = (value) => { const chart = place.chart(); if (chart) chart.setData(joined(series, value, bounds), false); };
  node.grow = (next, value) => {
    next.forEach((one, i) => { series[i].xs = one.xs; series[i].values = one.values; });
    const chart = place.chart();
    if (chart) chart.setData(joined(series, value, bounds && [bounds[0], Math.max(bounds[1], ...series.map((one) => one.xs[one.xs.length - 1] || 0))]));
  };
  return node;
}

// Nothing can be drawn: every value is infinite or NaN.
function unfit(series) {
  const node = el("p", "quiet", `No finite value in ${series.map((one) => `${one.label} (${one.xs.length})`).join(", ")}.`);
  node.smooth = () => {};
  node.grow = () => {};
  return node;
}

function legend(items) {
  return el("ul", "legend", items.map(([label, name]) => {
    const swatch = el("i", "swatch");
    swatch.style.background = `var(--${name})`;
    return el("li", "", swatch, label);
  }));
}

// The accounts of a ledger over time, stacked: each account's share of the time between two samples.
function ledgerCurve(accounts, sync) {
  // Skip a sample at which nothing has changed.
  const all = accounts[0].times.map((_, i) => accounts.reduce((sum, { values }) => sum + (values[i] || 0), 0));
  const moved = all.map((sum, i) => i === 0 || sum > all[i - 1]);
  const times = accounts[0].times.filter((_, i) => moved[i]);
  const cumulated = accounts.map(({ values }) => values.filter((_, i) => moved[i]));
  const shares = cumulated.map((values) => values.map((value, i) => (i ? Math.max(0, value - values[i - 1]) : value)));
  const sums = times.map((_, i) => shares.reduce((sum, one) => sum + (one[i] || 0), 0));
  let below = times.map(() => 0);
  const stacked = shares.map((one) => { below = one.map((value, i) => below[i] + (sums[i] ? (value || 0) / sums[i] : 0)); return below; });
  const holder = el("div", "chart");
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", "where the time went, over time");
  mounted(holder, (width) => new uPlot({
    width,
    height: 150,
    padding: [8, 22, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false }, sync: { key: sync, scales: ["x", null] } },
    scales: { x: { time: true }, y: { range: [0, 1] } },
    axes: [axis({ space: 90, size: 34, values: (u, ticks) => ticks.map(clockTime) }), axis({ size: 64, values: (u, ticks) => ticks.map((tick_) => `${Math.round(tick_ * 100)} %`) })],
    // Highest first, because each one paints over the one above it.
    series: [{}, ...accounts.map((one) => ({
      label: one.account,
      stroke: () => colour(`a-${one.account}`) || colour("quiet"),
      fill: () => colour(`a-${one.account}`) || colour("quiet"),
      width: 0,
      points: { show: false },
      paths: uPlot.paths.stepped({ align: -1 }),
    })).reverse()],
  }, [times, ...stacked.reverse()], holder));
  return el("div", "plot", holder, legend(accounts.map((one) => [one.account, `a-${one.account}`])));
}

// A sparkline for a table.
function spark(values) {
  const clean = finiteOf(values).filter((value) => value !== null);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 80 20");
  svg.setAttribute("class", "spark");
  svg.setAttribute("aria-hidden", "true");
  if (clean.length > 1) {
    const low = Math.min(...clean);
    const span = Math.max(...clean) - low || 1;
    const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    line.setAttribute("points", clean.map((value, i) => `${(i * 78) / (clean.length - 1) + 1},${18 - ((value - low) / span) * 16}`).join(" "));
    svg.append(line);
  }
  return svg;
}
