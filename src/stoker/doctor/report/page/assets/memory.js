// The memory book: the step as a stack of roles, and under it who owned what at the peak.

const ROLE_COLOURS = {
  weights: "a-dispatch", optimizer: "a-trace", gradients: "a-sync", activations: "a-compute",
  workspace: "a-python", input: "a-input", constants: "a-transfer", other: "a-startup",
};

// Areas on top of each other: each series is drawn from the ground to its own top, the highest first.
function stackChart(book) {
  const tops = [];
  book.stack.forEach((role, index) => tops.push(role.values.map((value, i) => value + (index ? tops[index - 1][i] : 0))));
  const order = book.stack.map((_, index) => index).reverse();
  const readout = el("p", "readout");
  const holder = el("div", "chart");
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", "Device memory over a step, by role");
  const told = (u) => {
    const index = u.cursor.idx;
    if (index === null || index === undefined) { readout.textContent = ""; return; }
    const sum = tops.length ? tops[tops.length - 1][index] : 0;
    const parts = book.stack.filter((role) => role.values[index] > sum / 100).map((role) => `${role.name} ${bytes(role.values[index])}`);
    readout.textContent = `${bytes(sum)} at ${milliseconds(book.at[index])}: ${parts.reverse().join(", ")}`;
  };
  mounted(holder, (width) => new uPlot({
    width,
    height: 260,
    padding: [18, 22, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { range: (u, low, high) => [0, (high || 1) * 1.08] } },
    axes: [
      axis({ space: 90, size: 34, values: (u, ticks) => ticks.map(milliseconds) }),
      axis({ size: 72, values: (u, ticks) => ticks.map(bytes) }),
    ],
    series: [{}, ...order.map((index) => ({
      label: book.stack[index].name,
      stroke: () => colour("page"),
      fill: () => colour(ROLE_COLOURS[book.stack[index].name]),
      width: 0.5,
      paths: uPlot.paths.stepped({ align: 1 }),
      points: { show: false },
    }))],
    hooks: { setCursor: [told] },
  }, [book.at, ...order.map((index) => tops[index])], holder));
  const names = el("ul", "legend", book.stack.map((role) => el("li", "", el("i", `swatch ${ROLE_COLOURS[role.name]}`), role.name)));
  return [el("div", "plot", readout, holder), names];
}

function ownerCard(owner) {
  const layer = owner.layer ? ` · ${owner.layer}` : "";
  return el("article", "card",
    el("p", "card-head", el("b", "", `${owner.size} of ${owner.role}`), ` (${owner.percent}) `, owner.where ? place(owner.where) : "no line known",
      owner.function && owner.function !== "<module>" ? ` in ${owner.function}` : "", layer),
    el("p", "facts", owner.facts), owner.line ? sourceOf(owner) : null);
}

// Roles in one row, their owners below them, as wide as what they hold. A click shows the line.
function ownersFlame(book, shown) {
  let pressed = null;
  const ownerBlock = (owner) => {
    const name = owner.layer ? owner.layer.split("/").pop() : owner.where || owner.role;
    const node = button("", `${owner.size} of ${owner.role}: ${owner.where} ${owner.layer}`, () => {
      if (pressed) pressed.setAttribute("aria-pressed", "false");
      pressed = node;
      node.setAttribute("aria-pressed", "true");
      shown.replaceChildren(ownerCard(owner));
    });
    node.className = `owner ${ROLE_COLOURS[owner.role]}`;
    node.append(el("span", "", name));
    node.style.flexGrow = String(owner.share * 1000);
    return node;
  };
  const column = (role) => {
    const head = el("i", ROLE_COLOURS[role.name], el("span", "", `${role.name} ${role.size}`));
    head.title = `${role.name} ${role.size}`;
    const node = el("div", "role", head, el("div", "owners", role.owners.filter((owner) => owner.share >= 0.002).map(ownerBlock)));
    node.style.flexGrow = String(Math.max(role.share, 0.002) * 1000);
    return node;
  };
  const flame = el("div", "flame", book.roles.map(column));
  new ResizeObserver(() => flame.querySelectorAll("span").forEach((name) => {
    name.classList.toggle("unfit", name.scrollWidth + 4 > name.parentNode.clientWidth);
  })).observe(flame);
  return flame;
}

function ownersTable(book) {
  const owners = book.roles.flatMap((role) => role.owners).sort((a, b) => b.share - a.share).slice(0, 20);
  return table(["line", "layer", "role", "bytes", "share"], owners.map((owner) => [owner.where ? place(owner.where) : "", owner.layer,
    el("span", "account", el("i", `swatch ${ROLE_COLOURS[owner.role]}`), owner.role), owner.size, owner.percent]), [3, 4]);
}

function memoryBookSection(books) {
  const device = (book) => {
    const shown = el("div", "owner-shown");
    shown.setAttribute("aria-live", "polite");
    return [
      books.length > 1 ? el("h3", "", book.device) : null,
      el("p", "lead", book.lead),
      book.at.length > 1 ? [el("h3", "", "Over the step"), stackChart(book)] : null,
      el("h3", "", "At the peak"),
      el("p", "lead", "Roles, and below them their owners. Click one to see its line."),
      ownersFlame(book, shown), shown, ownersTable(book),
    ];
  };
  return section("memory_book", "Who owns the device's memory", books.map(device));
}
