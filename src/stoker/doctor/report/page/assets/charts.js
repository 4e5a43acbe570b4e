// Charts, drawn by uPlot: the timeline of the recorded windows, step times, memory.

// The nearest one can look, as a part of a window.
const NEAREST = 1e-6;

function seconds(value) {
  const size = Math.abs(value);
  if (!size) return "0 s";
  if (size >= 100) return `${value.toFixed(0)} s`;
  if (size >= 1) return `${value.toFixed(2)} s`;
  if (size >= 1e-3) return `${(value * 1e3).toFixed(size >= 0.1 ? 0 : 1)} ms`;
  return `${(value * 1e6).toFixed(0)} µs`;
}

function milliseconds(value) {
  return `${value === 0 || value >= 10 ? value.toFixed(0) : value.toFixed(1)} ms`;
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${value.toFixed(value < 10 && unit ? 1 : 0)} ${units[unit]}`;
}

// `4 s`, `2.5 s`, `120 ms`: without digits that say nothing.
function tick(value) {
  return seconds(value).replace(/\.(\d*?)0+ /, (_, kept) => (kept ? `.${kept} ` : " "));
}

function axis(extra) {
  return {
    stroke: () => colour("quiet"),
    grid: { stroke: () => colour("line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
    gap: 8,
    ...extra,
  };
}

// Keeps a chart as wide as its place, and in the colours of the theme.
function mounted(holder, make) {
  let chart = null;
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.floor(holder.clientWidth);
    if (!now || now === width) return;
    width = now;
    if (chart) chart.setSize({ width, height: chart.height });
    else chart = make(width);
  }).observe(holder);
  theme.listeners.push(() => chart && chart.redraw(false, true));
  return { chart: () => chart, replace(next) { if (chart) chart.destroy(); chart = width ? next(width) : null; } };
}

// Lines over x, with a line of text below that tells the values under the pointer.
function lines(title, xs, series, formatX, formatY, top = null) {
  const readout = el("p", "readout");
  const holder = el("div", "chart");
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", title);
  const told = (u) => {
    const index = u.cursor.idx;
    if (index === null || index === undefined) { readout.textContent = ""; return; }
    const values = series.filter((s) => s.values[index] !== null)
      .map((s) => `${s.label} ${formatY(s.values[index])}`);
    readout.textContent = `${formatX(xs[index])}: ${values.join(", ")}`;
  };
  mounted(holder, (width) => new uPlot({
    width,
    height: 200,
    padding: [18, 22, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { range: (u, low, high) => [0, (top || high || 1) * 1.08] } },
    axes: [
      axis({ space: 90, size: 34, values: (u, ticks) => ticks.map(formatX) }),
      axis({ size: 64, values: (u, ticks) => ticks.map(formatY) }),
    ],
    series: [{}, ...series.map((s) => ({
      label: s.label,
      stroke: () => colour(s.colour),
      fill: s.fill ? () => `${colour(s.colour)}22` : undefined,
      width: 1.5,
      points: { show: false },
    }))],
    hooks: { setCursor: [told] },
  }, [xs, ...series.map((s) => s.values)], holder));
  return el("div", "plot", readout, holder);
}

// The lanes of one window as uPlot options: the library has axes, zoom and pointer, the spans are drawn here.
function laneChart(window_, width, height, onPoint) {
  const lanes = window_.lanes;
  const count = lanes.length;
  const points = 400;
  const length = window_.end - window_.start;
  const xs = Array.from({ length: points + 1 }, (_, i) => (length * i) / points);
  const draw = (u) => {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    const { min, max } = u.scales.x;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.strokeStyle = colour("line");
    ctx.lineWidth = ratio;
    window_.steps.forEach(([start]) => {
      const at = start - window_.start;
      if (at < min || at > max) return;
      const x = Math.round(u.valToPos(at, "x", true));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    });
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    const row = bbox.height / count;
    lanes.forEach((lane, index) => {
      const top = bbox.top + row * index + row * 0.16;
      const tall = row * 0.68;
      lane.spans.forEach(([start, end, account, , name]) => {
        const from = start - window_.start;
        const to = end - window_.start;
        if (to < min || from > max) return;
        const x = u.valToPos(Math.max(from, min), "x", true);
        const wide = Math.max(ratio, u.valToPos(Math.min(to, max), "x", true) - x);
        ctx.fillStyle = colour(`a-${account}`);
        ctx.fillRect(x, top, wide - (wide > 4 * ratio ? ratio / 2 : 0), tall);
        if (wide > 46 * ratio) {
          const label = name || account;
          ctx.fillStyle = colour("on-colour");
          if (ctx.measureText(label).width < wide - 8 * ratio) ctx.fillText(label, x + 5 * ratio, top + tall / 2);
        }
      });
    });
    ctx.restore();
  };
  const under = (u) => {
    const { left, top } = u.cursor;
    if (left < 0 || top < 0) return onPoint(null);
    const at = u.posToVal(left, "x") + window_.start;
    const lane = lanes[Math.min(count - 1, Math.floor(top / (u.over.clientHeight / count)))];
    const slack = (u.scales.x.max - u.scales.x.min) / u.over.clientWidth;
    return onPoint(lane && lane.spans.find(([start, end]) => at >= start - slack && at <= end + slack), lane);
  };
  return {
    options: {
      width,
      height,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: [0, count] } },
      axes: [
        axis({ space: 80, size: 34, values: (u, ticks) => ticks.map(tick) }),
        axis({
          size: 58,
          grid: { show: false },
          splits: () => lanes.map((_, i) => count - i - 0.5),
          values: () => lanes.map((lane) => lane.name),
        }),
      ],
      series: [{}, { show: true, points: { show: false }, paths: () => null }],
      hooks: { draw: [draw], setCursor: [under] },
    },
    values: [xs, xs.map(() => 0)],
    length,
  };
}

// Moves the visible part of a chart; `factor` below 1 goes nearer, `shift` is in parts of what is seen.
function moveView(chart, length, factor, shift) {
  const { min, max } = chart.scales.x;
  const width = Math.min(length, Math.max(length * NEAREST, (max - min) * factor));
  const middle = (min + max) / 2 + (max - min) * shift;
  const from = Math.max(0, Math.min(length - width, middle - width / 2));
  chart.setScale("x", { min: from, max: from + width });
}

function timelineSection(timeline) {
  const readout = el("p", "readout", "Drag across the lanes to look closer; point at a span to read it.");
  readout.setAttribute("aria-live", "polite");
  const holder = el("div", "chart timeline");
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", "Lanes of host, input and device over time");
  let current = timeline.windows[0];
  let length = 0;
  const tell = (span, lane) => {
    if (!span) return;
    const [start, end, account, site, name] = span;
    const parts = [lane.name, account, name, site >= 0 ? timeline.sites[site] : "", seconds(end - start),
      `at ${start.toFixed(3)} s`];
    readout.textContent = parts.filter((part) => part).join(" · ");
  };
  const make = (width) => {
    const chart = laneChart(current, width, 42 + 44 * current.lanes.length, tell);
    length = chart.length;
    return new uPlot(chart.options, chart.values, holder);
  };
  const mount = mounted(holder, make);
  const move = (factor, shift) => () => mount.chart() && moveView(mount.chart(), length, factor, shift);
  holder.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    move(event.deltaY > 0 ? 1.25 : 0.8, 0)();
  }, { passive: false });
  const tabs = timeline.windows.map((window_, index) => {
    const tab = button(`${window_.start.toFixed(1)} s`, `Window at ${window_.start.toFixed(1)} s`, () => {
      current = window_;
      tabs.forEach((other) => other.setAttribute("aria-pressed", String(other === tab)));
      mount.replace(make);
    });
    tab.setAttribute("aria-pressed", String(index === 0));
    return tab;
  });
  const tools = el("div", "tools", button("−", "Zoom out", move(2, 0)), button("+", "Zoom in", move(0.5, 0)),
    button("←", "Earlier", move(1, -0.5)), button("→", "Later", move(1, 0.5)), button("All", "Whole window", move(1e9, 0)));
  const used = new Set(timeline.windows.flatMap((w) => w.lanes.flatMap((lane) => lane.spans.map((s) => s[2]))));
  return section("timeline", "Timeline",
    el("p", "lead", "A few windows of the run, span by span. Thin lines are the starts of steps."),
    el("div", "toolbar", tabs.length > 1 ? el("div", "tabs", el("span", "quiet", "window at"), tabs) : null, tools),
    holder, readout, legend([...used]));
}

function legend(accounts) {
  return el("ul", "legend", accounts.map((name) => el("li", "", el("i", `swatch a-${name}`), name)));
}

function stepsSection(steps) {
  const xs = steps.ms.map((_, i) => Math.round((i * steps.steps) / steps.ms.length) + 1);
  const chart = lines("Milliseconds of single steps over the run", xs,
    [{ label: "", values: steps.ms, colour: "accent" }], (x) => `step ${x.toLocaleString("en")}`,
    milliseconds, steps.top);
  return section("steps", "Step times", el("p", "lead", `Half of the steps took less than ${steps.median}, one in twenty `
    + `more than ${steps.slow}, the slowest ${steps.slowest}.`), chart);
}

function memorySection(memory) {
  const series = [{ label: "process", values: memory.host, colour: "accent", fill: true }];
  if (memory.device) series.push({ label: "device", values: memory.device, colour: "a-sync" });
  const peaks = `At most ${memory.host_peak} in the process${memory.device ? `, ${memory.device_peak} on the device` : ""}.`;
  return section("memory", "Memory", el("p", "lead", peaks),
    lines("Memory in use over time", memory.at, series, tick, bytes));
}
