// An answer as models write it, in the plain part of Markdown: headings, lists, tables, code, emphasis, links. Elements
// are created one by one, so that any other markup stays text. `cite` returns the element for [s1]; only addresses in
// `places` become links. A text that is too long or nested too deeply is shown unchanged.

import { element } from "./element.js";

const LONGEST = 200_000, DEEPEST = 20;
const LINE = /\r\n|[\n\r\u2028\u2029]/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/, HEADING = /^(#{1,6})\s+(\S.*)$/, CLOSING = /(?<!\s)\s+#+$/, RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/, QUOTE = /^ {0,3}> ?/, CELLS = /^\s*\|.*\|\s*$/, RULED = /^\s*\|(?:\s*:?-+:?\s*\|)+\s*$/;

// Each looks ahead no further than some hundred characters, so that no text takes longer than its length.
const INLINE = new RegExp([
  /`(?<code>[^`\n]+)`/,
  /\[\s*(?<ids>s\d+(?:\s*[,;]\s*s\d+)*)\s*\]/,
  /\[(?<name>[^\]\n]{1,400})\]\((?<address>https?:\/\/[^\s()]{1,2000})\)/,
  /\*\*(?=\S)(?<strong>[^\n]{1,400}?)(?<=\S)\*\*/,
  /(?<![\w*])(?<sign>[*_])(?=[^\s*_])(?<soft>[^\n]{1,400}?)(?<=[^\s*_])\k<sign>(?![\w*])/,
].map(one => one.source).join("|"), "g");

export function written(text, cite, places = new Set()) {
  return text.length > LONGEST ? [plain(text)] : blocks(text.split(LINE), { cite, places, depth: 0 });
}

export const plain = text => element("p", { class: "plain", text });

const inside = given => ({ ...given, depth: given.depth + 1 });

function blocks(lines, given) {
  if (given.depth >= DEEPEST) return [plain(lines.join("\n"))];
  const made = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    if (!line.trim()) { at += 1; continue; }
    const reads = [code, heading, rule, table, quote, list, paragraph];
    for (const read of reads) {
      const found = read(lines, at, given);
      if (found) { made.push(found.made); at = found.next; break; }
    }
  }
  return made;
}

function code(lines, at) {
  const fence = lines[at].match(FENCE)?.[1];
  if (!fence) return null;
  let end = at + 1;
  while (end < lines.length && !lines[end].trimStart().startsWith(fence)) end += 1;
  return { made: element("pre", { dir: "ltr", text: lines.slice(at + 1, end).join("\n") }), next: end + 1 };
}

function heading(lines, at, given) {
  const found = lines[at].match(HEADING);
  return found && { made: element(found[1].length < 3 ? "h3" : "h4", { class: found[1].length === 1 ? "title" : null }, inline(found[2].trimEnd().replace(CLOSING, ""), given)), next: at + 1 };
}

const rule = (lines, at) => RULE.test(lines[at]) ? { made: element("hr"), next: at + 1 } : null;

function table(lines, at, given) {
  if (!CELLS.test(lines[at]) || !RULED.test(lines[at + 1] ?? "")) return null;
  const row = (line, kind) => element("tr", {}, line.trim().slice(1, -1).split("|").map(cell => element(kind, {}, inline(cell.trim(), given))));
  let end = at + 2;
  while (end < lines.length && CELLS.test(lines[end])) end += 1;
  const body = lines.slice(at + 2, end).map(line => row(line, "td"));
  const made = element("table", {}, [element("thead", {}, [row(lines[at], "th")]), element("tbody", {}, body)]);
  return { made: element("div", { class: "wide" }, [made]), next: end };
}

function quote(lines, at, given) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  return end > at ? { made: element("blockquote", {}, blocks(lines.slice(at, end).map(line => line.replace(QUOTE, "")), inside(given))), next: end } : null;
}

// What is indented below an item belongs to it; other lines continue it until an empty one.
function list(lines, at, given) {
  const first = lines[at].match(ITEM);
  if (!first) return null;
  const deep = first[1].length, items = [];
  let end = at, open = false;
  for (; end < lines.length; end += 1) {
    const line = lines[end], found = line.match(ITEM), indent = line.match(/^\s*/)[0].length;
    if (!line.trim()) { open = false; items.at(-1).push(""); continue; }
    if (found && indent === deep && !found[2] === !first[2]) items.push([found[3]]);
    else if (indent > deep) items.at(-1).push(line.slice(Math.min(indent, deep + 2)));
    else if (open && !found && !HEADING.test(line) && !FENCE.test(line)) items.at(-1).push(line.trim());
    else break;
    open = true;
  }
  const made = element(first[2] ? "ol" : "ul", first[2] ? { start: Number(first[2]) } : {}, items.map(item => element("li", {}, blocks(item, inside(given)))));
  return { made, next: end };
}

function paragraph(lines, at, given) {
  let end = at + 1;
  const ends = line => !line.trim() || [FENCE, HEADING, RULE, QUOTE, ITEM].some(one => one.test(line)) || CELLS.test(line);
  while (end < lines.length && !ends(lines[end])) end += 1;
  return { made: element("p", {}, inline(lines.slice(at, end).join("\n"), given)), next: end };
}

function inline(text, given) {
  if (given.depth >= DEEPEST) return [text];
  const parts = [], within = inside(given);
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const { code, ids, name, address, strong, soft } = found.groups;
    if (found.index > at) parts.push(text.slice(at, found.index));
    if (code) parts.push(element("code", { text: code }));
    else if (ids) for (const id of ids.match(/s\d+/g)) parts.push(given.cite(id));
    else if (address) parts.push(...link(name, address, within));
    else parts.push(element(strong ? "strong" : "em", {}, inline(strong ?? soft, within)));
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}

// A model may give any name to any address: only addresses that the run has read become links; others are shown in full.
function link(name, address, given) {
  if (given.places.has(address)) return [element("a", { href: address, title: address, target: "_blank", rel: "noopener noreferrer" }, inline(name, given))];
  return name === address ? [address] : [...inline(name, given), ` (${address})`];
}
