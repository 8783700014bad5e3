// A source that was read, with the passages that the answer rests on marked in it.

import { element } from "./element.js";

const drawer = document.getElementById("source");
let before = null;

export function open(source, text, citations) {
  before = document.activeElement;
  const close = element("button", { type: "button", class: "close", text: "Close", "aria-label": "close the source" });
  close.addEventListener("click", shut);
  const body = element("pre", { dir: "auto" }, marked(text, citations.map(one => one.quote)));
  const verdicts = citations.map(one => element("li", { class: one.verdict.replaceAll(" ", "-") }, [
    element("b", { text: one.verdict }), element("span", { text: one.claim, dir: "auto" }),
    one.why ? element("p", { class: "lacks", text: one.why }) : "",
    one.quote ? element("blockquote", { text: `“${one.quote}”`, dir: "auto" }) : "",
    one.place ? element("span", { class: "place", text: one.place, dir: "auto" }) : "",
  ]));
  drawer.replaceChildren(
    element("div", { class: "bar" }, [element("h2", { text: source.title || source.location, dir: "auto" }), close]),
    element("p", { class: "place" }, [`${source.kind} · `, place(source.location), ...(source.places ?? []).map(one => `, ${one}`)]),
    element("ul", { class: "verdicts" }, verdicts),
    body,
  );
  drawer.hidden = false;
  lock(covering.matches);
  close.focus();
  drawer.querySelector("mark")?.scrollIntoView({ block: "center" });
}

// Only a web address becomes a link; any other location stays text.
function place(location) {
  if (!/^https?:\/\//.test(location)) return location;
  return element("a", { href: location, text: location, target: "_blank", rel: "noopener noreferrer" });
}

// On a phone the drawer covers the page, which then cannot be reached by the keyboard either.
const covering = matchMedia("(max-width: 640px)");
const lock = inert => { for (const part of document.querySelectorAll("body > header, main")) part.inert = inert; };
covering.addEventListener("change", () => lock(covering.matches && !drawer.hidden));

export function shut() {
  if (drawer.hidden) return false;
  drawer.hidden = true;
  lock(false);
  before?.focus();
  return true;
}

// The text in pieces; a quotation is marked, whatever its spaces.
function marked(text, quotes) {
  const spans = [];
  for (const passage of quotes.flatMap(one => one.split(" … ")).map(one => one.trim()).filter(Boolean)) {
    const pattern = passage.split(/\s+/).map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("\\s+");
    const found = text.match(new RegExp(pattern));
    if (found) spans.push([found.index, found.index + found[0].length]);
  }
  spans.sort((one, other) => one[0] - other[0]);
  const parts = [];
  let at = 0;
  for (const [begin, end] of spans) {
    if (end <= at) continue;
    parts.push(text.slice(at, Math.max(at, begin)), element("mark", { text: text.slice(Math.max(at, begin), end) }));
    at = end;
  }
  return [...parts, text.slice(at)];
}
