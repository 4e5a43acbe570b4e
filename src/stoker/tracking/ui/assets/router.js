// What follows the # of the address decides which view is shown, so that every view can be linked to.

const root = el("main", "");
const problemOf = (error) => empty("That did not work.", error.message, " ", button("Try again", "Try again", route));
let shownRoute = 0;

async function route() {
  cleanups.splice(0).forEach((clean) => clean());
  const mine = (shownRoute += 1);
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, rest = ""] = [path.split("/")[0], path.split("/").slice(1).join("/")];
  document.querySelectorAll("header nav a").forEach((one) => {
    const home = { lines: "#/lines", jobs: "#/jobs", job: "#/jobs" }[view] || "#/";
    if (one.getAttribute("href") === home) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  });
  const own = el("div", "view");
  root.replaceChildren(own);
  try {
    if (view === "") await listView(own, new URLSearchParams(search));
    else if (view === "run") await runView(own, decodeURIComponent(rest));
    else if (view === "compare") await compareView(own, rest.split(",").filter(Boolean).map(decodeURIComponent));
    else if (view === "lines") await linesView(own);
    else if (view === "jobs") await jobsView(own);
    else if (view === "job") await jobView(own, decodeURIComponent(rest), new URLSearchParams(search));
    else throw new Error(`there is no page ${view}`);
  } catch (error) { if (mine === shownRoute) own.replaceChildren(problemOf(error)); }
  scrollTo(0, 0);
}

theme.start();
{
  const toggle = button("◐", "Dark or light", theme.toggle);
  toggle.id = "theme";
  document.body.append(
    el("header", "", el("div", "brand", link("#/", "home", el("b", "", "Stoker")), el("nav", "", link("#/", "", "Runs"), link("#/jobs", "", "Jobs"), link("#/lines", "", "Price per line")), el("span", "program"), toggle)),
    root,
  );
}
addEventListener("hashchange", route);
route();
