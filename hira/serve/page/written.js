// An answer as models write it, in the plain part of Markdown: headings, lists, tables, code, emphasis, links. Elements
// are made of it one by one, so that whatever else stands in it stays text. `cite` makes what stands for [s1].

import { element } from "./element.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})/, HEADING = /^(#{1,6})\s+(.+?)\s*#*$/, RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/, QUOTE = /^ {0,3}> ?/, CELLS = /^\s*\|.*\|\s*$/, RULED = /^\s*\|(?:\s*:?-+:?\s*\|)+\s*$/;
const INLINE = /`([^`\n]+)`|\[\s*(s\d+(?:\s*[,;]\s*s\d+)*)\s*\]|\[([^\]\n]+)\]\((https?:\/\/[^\s()]+)\)|\*\*(?=\S)([^\n]+?)(?<=\S)\*\*|(?<![\w*])([*_])(?=[^\s*_])([^\n]+?)(?<=[^\s*_])\6(?![\w*])/g;

export const written = (text, cite) => blocks(text.split("\n"), cite);

function blocks(lines, cite) {
  const made = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    if (!line.trim()) { at += 1; continue; }
    const reads = [code, heading, rule, table, quote, list, paragraph];
    for (const read of reads) {
      const found = read(lines, at, cite);
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

function heading(lines, at, cite) {
  const found = lines[at].match(HEADING);
  return found && { made: element(found[1].length < 3 ? "h3" : "h4", { class: found[1].length === 1 ? "title" : null }, inline(found[2], cite)), next: at + 1 };
}

const rule = (lines, at) => RULE.test(lines[at]) ? { made: element("hr"), next: at + 1 } : null;

function table(lines, at, cite) {
  if (!CELLS.test(lines[at]) || !RULED.test(lines[at + 1] ?? "")) return null;
  const row = (line, kind) => element("tr", {}, line.trim().slice(1, -1).split("|").map(cell => element(kind, {}, inline(cell.trim(), cite))));
  let end = at + 2;
  while (end < lines.length && CELLS.test(lines[end])) end += 1;
  const body = lines.slice(at + 2, end).map(line => row(line, "td"));
  const made = element("table", {}, [element("thead", {}, [row(lines[at], "th")]), element("tbody", {}, body)]);
  return { made: element("div", { class: "wide" }, [made]), next: end };
}

function quote(lines, at, cite) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  return end > at ? { made: element("blockquote", {}, blocks(lines.slice(at, end).map(line => line.replace(QUOTE, "")), cite)), next: end } : null;
}

// What is indented below an item belongs to it; other lines go on with it until an empty one.
function list(lines, at, cite) {
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
  const made = element(first[2] ? "ol" : "ul", first[2] ? { start: Number(first[2]) } : {}, items.map(item => element("li", {}, blocks(item, cite))));
  return { made, next: end };
}

function paragraph(lines, at, cite) {
  let end = at + 1;
  const ends = line => !line.trim() || [FENCE, HEADING, RULE, QUOTE, ITEM].some(one => one.test(line)) || CELLS.test(line);
  while (end < lines.length && !ends(lines[end])) end += 1;
  return { made: element("p", {}, inline(lines.slice(at, end).join("\n"), cite)), next: end };
}

function inline(text, cite) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const [whole, coded, ids, name, address, strong, , soft] = found;
    parts.push(text.slice(at, found.index));
    if (coded) parts.push(element("code", { text: coded }));
    else if (ids) parts.push(...ids.match(/s\d+/g).map(cite));
    else if (address) parts.push(element("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, inline(name, cite)));
    else parts.push(element(strong ? "strong" : "em", {}, inline(strong ?? soft, cite)));
    at = found.index + whole.length;
  }
  return [...parts, text.slice(at)];
}
