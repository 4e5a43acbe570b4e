// What each line of each file has cost in all runs so far.

async function linesView(root) {
  root.replaceChildren(el("p", "quiet loading", "Loading …"));
  const found = await ask("/api/prices");
  const most = Math.max(...found.map((one) => one.seconds), 1e-9);
  root.replaceChildren(
    el("h1", "", "What each line has cost so far"),
    found.length ? table(["line", "kind", "lost in all runs", "runs", "last"], found.map((one) => [
      place(`${one.file}:${one.line}`), one.kind, el("span", "with-bar", lasting(one.seconds), bar(one.seconds / most, "a-sync")), String(one.runs),
      link(`#/run/${encodeURIComponent(one.last)}`, "", one.last),
    ]), [3]) : empty("No line has cost anything yet.", "Measure a program: ", el("code", "", "stoker run train.py")),
  );
}
