// Puts the page together.

function navigation(sections) {
  return el("nav", "", sections.map((node) => {
    const link = el("a", "", node.querySelector("h2").textContent);
    link.href = `#${node.id}`;
    return link;
  }));
}

theme.start();
{
  const sections = (data.page === "compare" ? compareSections() : runSections()).filter((node) => node);
  const toggle = button("◐", "Dark or light", theme.toggle);
  toggle.id = "theme";
  document.body.append(
    el("header", "", el("div", "brand", el("b", "", "Stoker"), el("span", "program", data.title), toggle),
      sentenceOf(data.sentence), factsOf(data.facts), notesOf(data.notes), navigation(sections)),
    el("main", "", sections),
    el("footer", "", "Made by Stoker from one saved record. This file needs no network and sends nothing."),
  );
}
