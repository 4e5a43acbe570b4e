// The jobs of `stoker launch`: where the time of each went over all its restarts.

// The colour of each account, from those of a run's ledger.
const SPENT = {
  productive: "compute", recomputed: "sync", startup: "startup", compiling: "trace", restoring: "transfer",
  saving: "checkpoint", data: "input", peers: "communication", other: "python", idle: "teardown",
};
// What is a smaller share of a job is not shown among causes, lines and workers.
const LEAST_SHARE = 0.001;

const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);

async function jobsView(root) {
  root.replaceChildren(el("p", "quiet loading", "Loading …"));
  const found = await ask("/api/jobs");
  const rows = found.rows.map((one) => [
    link(`#/job/${encodeURIComponent(one.job)}`, "name", one.job), el("span", `state ${one.state}`, one.state),
    one.goodput === null ? "–" : el("span", "with-bar", percent(one.goodput), bar(one.goodput, "a-compute")),
    lasting(one.wall_s), String(one.workers), String(one.restarts), one.steps.toLocaleString("en"), one.lost_steps.toLocaleString("en"),
  ]);
  const more = found.count > rows.length ? el("p", "quiet", `${rows.length} of ${found.count.toLocaleString("en")} jobs are shown.`) : null;
  root.replaceChildren(
    el("h1", "", "Jobs"),
    rows.length ? table(["job", "state", "goodput", "took", "workers", "restarts", "steps", "lost"], rows, [3, 4, 5, 6, 7])
      : empty("No jobs here yet.", "Start one from this directory: ", el("code", "", "stoker launch -n 2 train.py")),
    more,
  );
}

async function jobView(root, id, parameters) {
  root.replaceChildren(el("p", "quiet loading", "Loading …"));
  const price = parameters.get("price") || "";
  const job = await ask(`/api/job/${encodeURIComponent(id)}?${query({ price })}`);
  const facts = [
    ["state", el("span", `state ${job.state}`, job.state)], ["goodput", job.goodput === null ? "unknown" : percent(job.goodput)],
    ["took", lasting(job.wall_s)], ["workers", String(job.workers)], ["restarts", String(job.restarts)],
    ["steps", job.steps.toLocaleString("en")], ["steps lost", job.lost_steps.toLocaleString("en")],
    ...(job.paid ? [["cost", job.paid]] : []),
  ];
  root.replaceChildren(
    el("h1", "", `Job ${job.job}`),
    el("div", "toolbar", el("dl", "chips", facts.map(([name, value]) => el("div", "", el("dt", "", name), el("dd", "", value)))), priceBox(job.job, price)),
    goodputSection(job),
    section("spent", "Where the time went", accountsBar(job), accountsTable(job)),
    causesSection(job), linesSection(job), workersSection(job),
  );
}

function priceBox(id, price) {
  const box = el("input", "");
  box.type = "search";
  box.placeholder = "3.20/h";
  box.value = price;
  box.size = 8;
  box.id = "price";
  box.addEventListener("change", () => { location.hash = `#/job/${encodeURIComponent(id)}${box.value.trim() ? `?${query({ price: box.value.trim() })}` : ""}`; });
  return el("label", "tools", "Price of a worker", box);
}

function goodputSection(job) {
  if (job.goodput === null) return section("goodput", "Goodput", el("p", "quiet", "No worker reported a step; stoker.fit and stoker.Trainer do."));
  if (job.curve.length < 2) return null;
  const series = [
    { label: "at this time", values: job.curve.map((one) => one.goodput), colour: "a-compute", fill: true },
    { label: "since the start", values: job.curve.map((one) => one.so_far), colour: "a-dispatch" },
  ];
  return section("goodput", "Goodput over time",
    lines("goodput over time", job.curve.map((one) => one.at_s), series, tick, (value) => `${Math.round(100 * value)} %`, 1),
    legend(series.map((one) => [one.label, one.colour])));
}

function accountsBar(job) {
  const parts = Object.entries(job.accounts).filter(([, spent]) => spent > 0).map(([name, spent]) => {
    const part = el("i", `a-${SPENT[name] || "startup"}`);
    part.style.width = `${(100 * spent) / (job.wall_s || 1)}%`;
    part.title = `${name}: ${seconds(spent)}`;
    return part;
  });
  const whole = el("div", "spent", parts);
  whole.setAttribute("role", "img");
  whole.setAttribute("aria-label", "the time of the job by account");
  return whole;
}

function accountsTable(job) {
  const costs = job.account_costs;
  const kept = Object.entries(job.accounts).filter(([name, spent]) => spent > 0 || name === "productive");
  const rows = kept.map(([name, spent]) => [
    name, seconds(spent), shareOf(spent, job, `a-${SPENT[name] || "startup"}`), ...(costs ? [costs[name]] : []), job.meanings[name],
  ]);
  return table(["account", "time", "share", ...(costs ? ["cost"] : []), ""], rows, costs ? [1, 3] : [1]);
}

function shareOf(spent, job, colourClass) {
  return el("span", "with-bar", percent(spent / (job.wall_s || 1)), bar(spent / (job.wall_s || 1), colourClass));
}

function causesSection(job) {
  const costs = job.cause_costs;
  const rows = job.causes.map((one, i) => [one, costs ? costs[i] : null]).filter(([one]) => one.seconds >= LEAST_SHARE * job.wall_s)
    .map(([one, cost]) => [one.what, seconds(one.seconds), shareOf(one.seconds, job, "a-sync"), ...(costs ? [cost] : []), String(one.times)]);
  if (!rows.length) return null;
  return section("causes", "Why time was lost", table(["cause", "time", "share", ...(costs ? ["cost"] : []), "times"], rows, costs ? [1, 3, 4] : [1, 3]));
}

function linesSection(job) {
  const rows = job.by_line.filter((one) => one.seconds >= LEAST_SHARE * job.wall_s)
    .map((one) => [place(one.line), one.account, seconds(one.seconds), shareOf(one.seconds, job, `a-${SPENT[one.account] || "startup"}`)]);
  return rows.length ? section("lines", "Lines of the program", table(["line", "account", "time", "share"], rows, [2])) : null;
}

function workersSection(job) {
  const ranks = Object.entries(job.by_worker);
  const names = Object.keys(job.accounts).filter((name) => ranks.some(([, spent]) => spent[name] >= LEAST_SHARE * job.wall_s));
  if (ranks.length < 2) return null;
  return section("workers", "Workers", table(["worker", ...names], ranks.map(([rank, spent]) => [rank, ...names.map((name) => seconds(spent[name]))]), names.map((_, i) => i + 1)));
}
