// The list of runs: live, filtered and sorted, with the columns you choose.

const BASE = [["name", "run"], ["state", "state"], ["started", "started"], ["seconds", "took"], ["steps_per_s", "steps/s"]];

async function listView(root, parameters) {
  const state = {
    where: parameters.getAll("where"),
    sort: parameters.get("sort") || "-started",
    columns: parameters.get("columns"),
    limit: Number(parameters.get("limit")) || 100,
    chosen: new Set(),
  };
  const keep = () => {
    const values = { where: state.where.filter(Boolean), sort: state.sort, limit: state.limit };
    if (state.columns !== null) values.columns = state.columns;
    history.replaceState(null, "", `#/?${query(values)}`);
  };
  const dot = light();
  const filter = el("input", "filter");
  filter.type = "search";
  filter.placeholder = "loss < 0.1, name ~ base";
  filter.setAttribute("aria-label", "conditions, separated by commas");
  filter.value = state.where.join(", ");
  const problem = el("p", "problem");
  problem.setAttribute("role", "alert");
  const body = el("div", "");
  const chooser = el("details", "chooser", el("summary", "", "Columns"));
  const compare = button("Compare", "Compare the chosen runs", () => { location.hash = `#/compare/${[...state.chosen].map(encodeURIComponent).join(",")}`; });
  compare.id = "compare";
  const refresh = async () => {
    try {
      const found = await ask(`/api/runs?${query({ where: state.where.filter(Boolean), sort: state.sort, limit: state.limit })}`);
      problem.textContent = "";
      draw(found);
    } catch (error) { problem.textContent = error.message; if (!body.childElementCount) body.replaceChildren(); }
  };
  const wanted = (found) => {
    if (state.columns !== null) return state.columns.split(",").filter(Boolean);
    const common = found.columns.filter((name) => name.startsWith("metrics.") && !/^metrics\.(ledger|event)\//.test(name) && name !== "metrics.epoch");
    const test = common.filter((name) => name.startsWith("metrics.test ")).slice(0, 1);
    const first = [...test, ...["metrics.loss", "metrics.val_loss"].filter((name) => common.includes(name))];
    return [...first, ...common.filter((name) => !first.includes(name))].slice(0, 3);
  };
  const choose = (found, names) => {
    const list = el("div", "choices", found.columns.map((name) => {
      const box = el("input", "");
      box.type = "checkbox";
      box.checked = names.includes(name);
      box.addEventListener("change", () => {
        const next = box.checked ? [...names, name] : names.filter((one) => one !== name);
        state.columns = next.join(",");
        keep();
        refresh();
      });
      return el("label", "", box, " ", name);
    }));
    chooser.replaceChildren(chooser.firstChild, list);
  };
  const head = (name, title) => {
    const sorted = state.sort.replace(/^-/, "") === name;
    const down = state.sort.startsWith("-");
    const node = button(`${title}${sorted ? (down ? " ↓" : " ↑") : ""}`, `Sort by ${title}`, () => {
      state.sort = sorted && !down ? `-${name}` : name;
      keep();
      refresh();
    });
    node.className = "head";
    const cell = el("th", name === "name" || name === "state" ? "" : "number", node);
    cell.setAttribute("aria-sort", sorted ? (down ? "descending" : "ascending") : "none");
    return cell;
  };
  const row = (run, names) => {
    const box = el("input", "choose");
    box.type = "checkbox";
    box.checked = state.chosen.has(run.id);
    box.setAttribute("aria-label", `choose ${run.name}`);
    box.addEventListener("change", () => {
      if (box.checked) state.chosen.add(run.id); else state.chosen.delete(run.id);
      compare.disabled = state.chosen.size < 2;
    });
    const name = el("div", "", link(`#/run/${encodeURIComponent(run.id)}`, "name", run.name || run.id), el("span", "quiet id", `${run.kind} · ${run.id}`));
    if (run.depth) { name.className = "inside"; name.style.paddingLeft = `${1.2 * run.depth}rem`; }
    const cells = [
      [el("label", "tick", box)], [name], [stateOf(run)], [moment(run.started), "number"], [lasting(run.seconds), "number"],
      [shown(run.steps_per_s), "number"], ...names.map((one) => [shown(run[one]), "number"]), [el("span", "sparkline")],
    ];
    const heads = ["", "run", "state", "started", "took", "steps/s", ...names, ""];
    const node = el("tr", "", cells.map(([cell, kind], i) => {
      const made = el("td", `${kind || ""}${cell === "–" ? " none" : ""}`, cell);
      made.dataset.head = heads[i].replace(/^(metrics|params)\./, "");
      return made;
    }));
    node.dataset.run = run.id;
    return node;
  };
  const draw = (found) => {
    if (!found.rows.length) {
      body.replaceChildren(state.where.some(Boolean)
        ? empty("No runs match.", "Remove a condition, or write it as NAME SIGN VALUE: loss < 0.1")
        : empty("No runs yet.", "Start one: ", el("code", "", "stoker run train.py"), ", or train with ", el("code", "", "stoker.fit"), ". It will appear here by itself."));
      return;
    }
    const names = wanted(found);
    choose(found, names);
    const heads = el("tr", "", el("th", ""), BASE.map(([name, title]) => head(name, title)), names.map((name) => head(name, name.replace(/^(metrics|params)\./, ""))), el("th", ""));
    const rows = found.rows.map((run) => row(run, names));
    const more = found.count > found.rows.length
      ? button(`Show more (${found.count.toLocaleString("en")} in all)`, "Show more runs", () => { state.limit *= 5; keep(); refresh(); }) : null;
    body.replaceChildren(el("div", "scroll", el("table", "runs", el("thead", "", heads), el("tbody", "", rows))), ...(more ? [more] : []));
    compare.disabled = state.chosen.size < 2;
    sparklines(found.rows, names.find((name) => name.startsWith("metrics.")), body);
  };
  filter.addEventListener("change", () => { state.where = filter.value.split(",").map((one) => one.trim()); keep(); refresh(); });
  const keys = (event) => {
    if (event.target.tagName === "INPUT") return;
    const names = [...body.querySelectorAll("a.name")];
    const at = names.indexOf(document.activeElement);
    if (event.key === "/") { event.preventDefault(); filter.focus(); }
    if (event.key === "j" && names.length) names[Math.min(at + 1, names.length - 1)].focus();
    if (event.key === "k" && names.length) names[Math.max(at - 1, 0)].focus();
    if (event.key === "x" && at >= 0) names[at].closest("tr").querySelector(".choose").click();
    if (event.key === "c" && !compare.disabled) compare.click();
  };
  addEventListener("keydown", keys);
  cleanups.push(() => removeEventListener("keydown", keys));
  compare.disabled = true;
  root.replaceChildren(
    el("div", "toolbar", el("div", "tools grow", filter, chooser, compare), dot),
    problem, body,
    el("p", "quiet keys", "Keys: / filter, j and k move, Enter opens, x chooses, c compares."),
  );
  body.append(el("p", "quiet loading", "Loading …"));
  await refresh();
  listen(null, dot, refresh);
}

async function sparklines(rows, column, body) {
  if (!column) return;
  const ids = rows.slice(0, 100).map((run) => run.id);
  const found = await ask(`/api/sparks?${query({ runs: ids.join(","), series: column.replace("metrics.", "") })}`).catch(() => ({}));
  body.querySelectorAll("tr[data-run]").forEach((node) => {
    const values = found[node.dataset.run];
    if (values) node.querySelector(".sparkline").replaceChildren(spark(values));
  });
}
