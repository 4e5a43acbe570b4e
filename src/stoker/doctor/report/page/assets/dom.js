"use strict";
// Building the page. All text of the user's goes through `textContent`: nothing in it can become markup.

const data = JSON.parse(document.getElementById("data").textContent);

// An element with a class and children; strings become text.
function el(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function section(id, title, ...children) {
  const node = el("section", "", el("h2", "", title), ...children);
  node.id = id;
  return node;
}

function button(label, title, action) {
  const node = el("button", "", label);
  node.type = "button";
  node.title = title;
  node.setAttribute("aria-label", title);
  node.addEventListener("click", action);
  return node;
}

// `path/to/train.py:42` may break after a slash, so that it fits a phone.
function place(text) {
  const node = el("span", "place");
  text.split("/").forEach((part, index, parts) => {
    node.append(part + (index < parts.length - 1 ? "/" : ""));
    if (index < parts.length - 1) node.append(el("wbr"));
  });
  return node;
}

// Running text, with what stands between back quotes as code.
function prose(text) {
  return text.split("`").map((part, index) => (index % 2 ? el("code", "", part) : part));
}

// A table; `numeric` columns are set to the right. Cells are strings or nodes.
function table(heads, rows, numeric = []) {
  const align = (index) => (numeric.includes(index) ? "number" : "");
  const head = el("thead", "", el("tr", "", heads.map((text, i) => el("th", align(i), text))));
  const body = rows.map((cells) => el("tr", "", cells.map((cell, i) => {
    const node = el("td", align(i), cell);
    node.dataset.head = heads[i];
    return node;
  })));
  return el("div", "scroll", el("table", "", head, el("tbody", "", body)));
}

function bar(share, className) {
  const fill = el("i", className);
  fill.style.width = `${Math.max(0.4, Math.min(100, share * 100))}%`;
  return el("span", "bar", fill);
}

// The colour behind a custom property, for what is drawn on a canvas.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const theme = {
  listeners: [],
  media: matchMedia("(prefers-color-scheme: dark)"),
  stored() {
    try { return localStorage.getItem("stoker-theme"); } catch { return null; }
  },
  current: () => document.documentElement.dataset.theme,
  set(name) {
    document.documentElement.dataset.theme = name;
    theme.listeners.forEach((listener) => listener());
  },
  toggle() {
    theme.set(theme.current() === "dark" ? "light" : "dark");
    try { localStorage.setItem("stoker-theme", theme.current()); } catch { /* a file may have no storage */ }
  },
  start() {
    theme.set(theme.stored() || (theme.media.matches ? "dark" : "light"));
    theme.media.addEventListener("change", () => {
      if (!theme.stored()) theme.set(theme.media.matches ? "dark" : "light");
    });
    // Paper is white, and what is folded away cannot be opened on it.
    let before = null;
    addEventListener("beforeprint", () => {
      before = theme.current();
      document.querySelectorAll("details").forEach((node, index) => { if (index < 30) node.open = true; });
      theme.set("light");
    });
    addEventListener("afterprint", () => { if (before) theme.set(before); });
  },
};
