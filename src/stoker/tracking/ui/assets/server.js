// Requests to the server, and events from it.

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Error("the server does not answer: is stoker ui still running?");
  }
  const type = answer.headers.get("content-type") || "";
  const body = type.includes("json") ? await answer.json() : { error: await answer.text() };
  if (!answer.ok) throw new Error(body.error || `the server answered ${answer.status}`);
  return body;
}

function query(values) {
  const made = new URLSearchParams();
  Object.entries(values).forEach(([name, value]) => [value].flat().forEach((one) => made.append(name, one)));
  return made.toString();
}

// What the current view has to release when another one replaces it.
const cleanups = [];

// Calls `changed` when the store has changed, at most once a second, and shows whether we are connected.
function listen(run, light, changed) {
  const source = new EventSource(`/api/events${run ? `?${query({ run })}` : ""}`);
  let first = true;
  let waiting = null;
  source.onopen = () => { light.className = "light on"; light.title = "live"; };
  source.onerror = () => { light.className = "light off"; light.title = "no connection; trying again"; };
  source.onmessage = () => {
    if (first) { first = false; return; }
    if (waiting === null) waiting = setTimeout(() => { waiting = null; changed(); }, 1000);
  };
  cleanups.push(() => { source.close(); clearTimeout(waiting); });
}

function light() {
  const node = el("span", "light off");
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", "live");
  return node;
}

// Numbers that JSON cannot hold arrive as words.
function number(value) {
  if (typeof value === "number") return value;
  return { nan: NaN, inf: Infinity, "-inf": -Infinity }[value] ?? null;
}

function shown(value) {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "number") {
    if (Number.isInteger(value)) return value.toLocaleString("en");
    const size = Math.abs(value);
    if (size >= 1e5 && size < 1e15) return Math.round(value).toLocaleString("en");
    return size >= 1e15 || size < 1e-4 ? value.toExponential(3) : Number(value.toPrecision(5)).toString();
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function moment(at) {
  const date = new Date(at * 1000);
  const two = (part) => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

function lasting(value) {
  if (value === null || value === undefined) return "–";
  if (value < 100) return seconds(value);
  const minutes = Math.round(value / 60);
  return minutes < 100 ? `${minutes} min` : `${(value / 3600).toFixed(1)} h`;
}

function link(href, className, ...children) {
  const node = el("a", className, ...children);
  node.href = href;
  return node;
}

function stateOf(run) {
  return el("span", `state ${/^\w+$/.test(run.state) ? run.state : ""}`, run.state);
}

function empty(title, ...more) {
  return el("div", "empty", el("p", "", el("b", "", title)), el("p", "quiet", ...more));
}
