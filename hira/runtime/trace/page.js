"use strict";
// Shows the run whose data the page holds. Everything in the data may have been written by anyone: it only ever
// becomes text, never markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { run, subtasks, conversations, memory, citations, sources, notices } = data;
  const AT_ONCE = 100;
  const SIGNS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|\u{e0000}|[\u{e0001}-\u{e007f}]/u;
  const TOKEN = /<\/?[|\uff5c]?[A-Za-z_][\w.-]{0,60}[|\uff5c]?>|<[|\uff5c][^<>\n]{1,80}[|\uff5c]>/;
  const PIECES = new RegExp(`(${TOKEN.source})|(${SIGNS.source})`, "gu");

  const el = (tag, about, ...inner) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(about || {})) {
      if (name === "on") for (const [event, heard] of Object.entries(value)) made.addEventListener(event, heard);
      else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...inner.flat().filter((one) => one != null && one !== ""));
    return made;
  };
  const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
  const time = (s) => s < 10 ? `${s.toFixed(1)} s` : s < 60 ? `${Math.round(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
  const short = (n) => n < 1000 ? String(n) : n < 1e6 ? `${(n / 1000).toFixed(n < 1e4 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`;
  const money = (cost) => cost == null ? "" : `$${!cost ? "0" : cost < 1 ? cost.toFixed(4) : cost.toFixed(2)}`;
  const line = (text) => text.replace(/\s+/g, " ").trim();
  const toneOf = (role) => ["planner", "coordinator"].includes(role) ? role : "expert";
  const verdictClass = (verdict) => verdict.replaceAll(" ", "-");

  // Text as it was written: tokens of control and invisible characters are shown.
  const written = (text) => {
    const found = document.createDocumentFragment();
    let at = 0;
    for (const match of text.matchAll(PIECES)) {
      if (match.index > at) found.append(text.slice(at, match.index));
      if (match[1]) found.append(el("span", { class: "token" }, match[1]));
      else found.append(el("span", { class: "hidden-sign", title: "a character that cannot be seen" }, `U+${match[2].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`));
      at = match.index + match[0].length;
    }
    found.append(text.slice(at));
    return found;
  };
  const block = (text, kind) => el("pre", { class: kind, tabindex: text.length > 1500 ? 0 : null }, written(text));

  // A fold that creates its content when it is first opened, so that a run of thousands of calls opens at once.
  const fold = (summary, inside, about) => {
    const made = el("details", about, summary);
    let filled = false;
    const fill = () => { if (!filled) { filled = true; made.append(...inside()); } };
    made.addEventListener("toggle", () => made.open && fill());
    made.fill = fill;
    return made;
  };
  // A list that shows its beginning, and more when it is asked to.
  const long = (items, show) => {
    const place = el("div");
    let shown = 0;
    const more = el("button", { class: "more", type: "button" });
    const next = () => {
      for (const item of items.slice(shown, shown + AT_ONCE)) place.append(show(item));
      shown = Math.min(items.length, shown + AT_ONCE);
      more.textContent = `show ${Math.min(AT_ONCE, items.length - shown)} more of ${items.length}`;
      more.hidden = shown >= items.length;
    };
    more.addEventListener("click", next);
    next();
    return [place, more];
  };

  const track = (bars, marks = true) => {
    const made = el("div", { class: "track", "aria-hidden": "true" });
    const span = run.span || 1;
    for (const [at, took, tone] of bars) {
      const bar = el("i", { class: tone });
      bar.style.left = `${Math.min(99.4, (100 * at) / span)}%`;
      bar.style.width = `${Math.max(0, Math.min(100 - (100 * at) / span, (100 * took) / span))}%`;
      made.append(bar);
    }
    for (const gap of marks ? run.gaps : []) {
      const cut = el("u", { title: `interrupted for ${time(gap.seconds)}` });
      cut.style.left = `${Math.min(100, (100 * Math.max(0, gap.at)) / span)}%`;
      made.append(cut);
    }
    return made;
  };
  const row = (name, tokens, took, bars) => el("summary", { class: "row" },
    el("div", { class: "name" }, name), el("div", { class: "number tokens" }, tokens), el("div", { class: "number" }, took), track(bars));

  const calls = (list) => list.map((call) => block(`${call.name}(${pretty(call.arguments)})`, "call"));
  const pretty = (text) => { try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; } };
  const picture = (one) => one.kind === "image" && /^data:image\/(png|jpeg|webp|gif);/.test(one.url)
    ? el("img", { class: "seen", src: one.url, alt: "picture in the prompt", loading: "lazy" }) : block(one.url.slice(0, 400));
  const message = (one) => fold(
    el("summary", {}, el("b", {}, one.role), el("span", {}, line(one.text).slice(0, 140)), el("em", {}, one.prompt ? `prompt ${one.prompt} · ` : "", `${short(one.text.length)} characters`)),
    () => [block(one.text), ...one.media.map(picture), ...calls(one.calls)]);
  const reply = (step, tone) => {
    if (!step.reply) return el("div", { class: `reply ${tone}` }, el("h3", { class: "bad" }, "the call failed"), block(step.failure));
    const { text, reasoning, calls: made, finish } = step.reply;
    return el("div", { class: `reply ${tone}` },
      el("h3", {}, el("b", {}, "reply"), el("span", {}, `${step.model} · ${count(step.completion, "token")}${finish === "stop" || finish === "calls" ? "" : ` · ended by ${finish}`}`)),
      reasoning ? block(reasoning, "thought") : "", text ? block(text) : "", calls(made));
  };
  const spelled = (given) => { const values = Object.values(given); return values.length === 1 ? String(values[0]) : JSON.stringify(given); };

  const step = (one, role) => {
    if (one.kind === "tool") {
      const outcome = one.ok === false ? "failed" : one.ok === null ? "not finished" : "";
      return el("div", { class: "step tools" }, fold(
        row([el("span", {}, one.name), " ", line(spelled(one.arguments)).slice(0, 160), outcome ? el("span", { class: "tag bad" }, outcome) : ""], "", time(one.took), [[one.at, one.took, "tool"]]),
        () => [el("div", { class: "texts" },
          Object.keys(one.arguments).length ? el("div", { class: "reply tool" }, el("h3", {}, el("b", {}, "called with")), Object.entries(one.arguments).map(([name, value]) => block(`${name}: ${typeof value === "string" ? value : JSON.stringify(value, null, 2)}`))) : "",
          el("div", { class: "reply tool" }, el("h3", {}, el("b", {}, "came back")), block(one.text || "nothing")))],
        { class: "tool" }));
    }
    const tone = toneOf(one.role);
    const said = one.failure ? el("span", { class: "bad" }, `failed: ${line(one.failure).slice(0, 140)}`) : el("span", {}, line(one.reply.text || one.reply.calls.map((call) => `${call.name} ${call.arguments}`).join(" ") || one.reply.reasoning).slice(0, 180));
    const cost = one.cost ? ` · ${money(one.cost)}` : "";
    return el("div", { class: "step" }, fold(
      row([role, " ", said], `${short(one.prompt + one.completion)}${cost}`, time(one.took), [[one.at, one.took, tone]]),
      () => [el("div", { class: "texts" },
        one.kept ? el("div", { class: "said" }, `continues after ${count(one.kept, "message")} of this conversation; new in this prompt:`) : "",
        one.added.map(message), reply(one, tone))],
      { class: tone }));
  };

  const matching = (query) => (one) => {
    if (!query) return true;
    const text = one.kind === "tool" ? `${one.name} ${JSON.stringify(one.arguments)} ${one.text}` : `${one.role} ${one.model} ${one.failure} ${one.added.map((m) => m.text).join(" ")} ${one.reply ? `${one.reply.text} ${one.reply.reasoning} ${JSON.stringify(one.reply.calls)}` : ""}`;
    return text.toLowerCase().includes(query);
  };
  const stepsOf = (id) => conversations.filter((one) => one.subtask === id)
    .flatMap((one) => one.steps.map((each) => [each, one.role])).map((pair, order) => [...pair, order])
    .sort((a, b) => a[0].at - b[0].at || a[2] - b[2]);
  const lane = (id, title, about, tone, before, after, query) => {
    const all = stepsOf(id);
    const steps = all.filter(([one]) => matching(query)(one));
    if (query && !steps.length) return null;
    const tokens = all.reduce((sum, [one]) => sum + (one.kind === "turn" ? one.prompt + one.completion : 0), 0);
    const costs = all.reduce((sum, [one]) => sum + (one.cost || 0), 0);
    const begin = Math.min(...all.map(([one]) => one.at)), end = Math.max(...all.map(([one]) => one.at + one.took));
    const bars = id ? [[begin, end - begin, tone]] : all.filter(([one]) => one.kind === "turn").slice(0, 300).map(([one]) => [one.at, one.took, tone]);
    const made = fold(
      row([el("span", { class: "title" }, title.length > 260 ? `${title.slice(0, 260)}…` : title), el("span", { class: `tag ${tone}` }, about)], `${short(tokens)}${costs ? ` · ${money(costs)}` : ""}`, all.length ? time(id ? end - begin : all.reduce((sum, [one]) => sum + one.took, 0)) : "", all.length ? bars : []),
      () => [el("div", { class: "inside" }, before, ...long(steps, ([one, role]) => step(one, role)), after)],
      { class: `lane ${tone}`, id: id ? `subtask-${id}` : "planner" });
    if (query) { made.open = true; made.fill(); }
    return made;
  };
  const work = el("div", { class: "work" });
  const hits = el("span", { role: "status" });
  const draw = (query) => {
    const own = stepsOf("");
    const roles = [...new Set(own.map(([, role]) => role))].join(", ") || "planner";
    const lanes = [own.length ? lane("", roles, count(own.length, "step"), "planner", "", "", query) : null];
    for (const one of subtasks) {
      const why = [one.reason, one.recalled ? `${one.recalled} from memory` : ""].filter(Boolean).join(" · ");
      const outcome = one.ok === null ? "not done" : one.conclusion;
      lanes.push(lane(one.id, `${one.id}. ${line(one.text)}`, one.expert || "not assigned", one.ok === false ? "expert bad" : "expert",
        why ? el("p", { class: "why" }, why) : "", el("p", { class: `end ${one.ok === false ? "contradicted" : "supported"}` }, outcome), query));
    }
    work.replaceChildren(...lanes.filter(Boolean));
    if (!work.childElementCount) work.append(el("p", { class: "empty" }, query ? "No call holds this text." : "No call was recorded."));
    const found = query ? conversations.flatMap((one) => one.steps).filter(matching(query)).length : 0;
    hits.textContent = query ? `${count(found, "call")} found` : "";
  };

  const toSource = (number) => {
    const cited = citations[number];
    const place = document.getElementById(`source-${cited.source}`);
    if (!place) return;
    place.open = true;
    place.fill();
    for (const one of document.querySelectorAll("mark.now")) one.classList.remove("now");
    const marks = place.querySelectorAll(`mark[data-citations*=" ${number} "]`), mark = marks[0];
    for (const one of marks) one.classList.add("now");
    (mark || place).scrollIntoView({ block: "center" });
    (mark || place.firstElementChild).focus({ preventScroll: true });
  };
  const answerText = () => {
    const found = [];
    let at = 0;
    const used = {};
    for (const match of run.answer.matchAll(/\[\s*(s\d+(?:\s*[,;]\s*s\d+)*)\s*\]/g)) {
      found.push(written(run.answer.slice(at, match.index)));
      for (const id of match[1].match(/s\d+/g)) {
        const mine = citations.map((one, number) => [one, number]).filter(([one]) => one.source === id);
        const [one, number] = mine[Math.min(mine.length - 1, used[id] || 0)] || [null, -1];
        used[id] = (used[id] || 0) + 1;
        found.push(one ? el("button", { class: `cite ${verdictClass(one.verdict)}`, type: "button", title: [one.verdict, one.place].filter(Boolean).join(", "), on: { click: () => toSource(number) } }, id) : `[${id}]`);
      }
      at = match.index + match[0].length;
    }
    return [...found, written(run.answer.slice(at))];
  };
  const nameOf = (id) => { const one = sources.find((each) => each.id === id); return one ? `${one.title || one.location} — ${one.location}` : id; };

  const tones = { answered: "supported", unverified: "unsupported", insufficient_evidence: "unsupported", partial: "unsupported", failed: "contradicted" };
  const total = run.prompt + run.completion;
  const header = el("header", {},
    el("h1", {}, written(run.question)),
    el("div", { class: "facts" },
      el("span", { class: `state ${tones[run.status] || "neutral"}` }, run.status.replace("_", " ")),
      el("span", {}, el("strong", {}, time(run.span))),
      el("span", {}, el("strong", {}, String(run.calls)), run.calls === 1 ? " call" : " calls"),
      el("span", { title: `${count(run.prompt, "token")} in, ${count(run.completion, "token")} out` }, el("strong", {}, total.toLocaleString("en")), " tokens"),
      run.cost == null ? "" : el("span", {}, el("strong", {}, money(run.cost))),
      el("span", {}, run.models.join(", ")),
      el("span", {}, new Date(run.began * 1000).toLocaleString())));

  const answer = el("section", { id: "answer" }, el("h2", {}, "Answer", citations.length ? el("span", {}, count(citations.length, "citation")) : ""),
    el("div", { class: "card" },
      el("div", { class: run.answer ? "answer" : "answer none" }, run.answer ? answerText() : "There is no answer."),
      citations.length ? el("ul", { class: "proofs" }, citations.map((one, number) => el("li", {}, el("button", { type: "button", class: verdictClass(one.verdict), on: { click: () => toSource(number) } },
        el("span", { class: "verdict" }, one.verdict), el("span", {}, one.claim), one.why ? el("em", {}, one.why) : "", one.quote ? el("q", {}, one.quote) : "",
        el("cite", {}, [`${one.source} · ${nameOf(one.source)}`, one.place, one.attributed ? (one.verdict === "supported" ? "found by hira" : "the closest source that hira found") : ""].filter(Boolean).join(", ")))))) : ""));

  const input = el("input", { type: "search", placeholder: "Find in prompts and replies", "aria-label": "Find in prompts and replies" });
  let waiting = 0;
  input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => draw(input.value.trim().toLowerCase()), 150); });
  const how = el("section", { id: "work" }, el("h2", {}, "How it went", el("span", {}, `${count(subtasks.length, "subtask")}${run.gaps.length ? ` · interrupted ${count(run.gaps.length, "time")}` : ""}`)),
    el("div", { class: "card" },
      el("div", { class: "bar-top" }, ["planner", "coordinator", "expert", "tool"].map((one) => el("span", { class: `key ${one}` }, one)), hits, input),
      work));

  const grown = () => {
    const groups = [];
    for (const one of memory) {
      if (!groups.length || groups.at(-1).subtask !== one.subtask) groups.push({ subtask: one.subtask, at: one.at, entries: [] });
      groups.at(-1).entries.push(one);
    }
    let sum = 0;
    return groups.map((group) => {
      sum += group.entries.length;
      const bar = el("i");
      bar.style.width = `${(100 * sum) / memory.length}%`;
      return el("div", { class: "grown" },
        el("div", {}, `${group.subtask ? `subtask ${group.subtask} · ` : ""}${time(group.at)}`, el("br"), count(sum, "memory").replace("memorys", "memories"), el("span", { class: "sum", "aria-hidden": "true" }, bar)),
        el("ul", {}, group.entries.map((one) => el("li", { class: one.channel }, written(one.text), one.origin ? el("small", {}, one.origin) : ""))));
    });
  };
  const facts = memory.filter((one) => one.channel === "fact").length;
  const remembered = el("section", { id: "memory" }, el("h2", {}, "Memory", el("span", {}, `${count(facts, "fact")}, ${count(memory.length - facts, "resource")}`)),
    el("div", { class: "card memory" }, memory.length ? grown() : el("p", { class: "empty" }, "Nothing was remembered.")));

  const cited = (id) => citations.filter((one) => one.source === id).length;
  const source = (one) => fold(
    el("summary", {}, el("span", { class: "id" }, one.id), el("span", { class: "title" }, written(one.title || one.location)), el("span", { class: "count" }, `${one.kind}${cited(one.id) ? ` · cited ${cited(one.id) === 1 ? "once" : `${cited(one.id)} times`}` : ""}`), el("span", { class: "place" }, one.location)),
    () => [el("pre", { tabindex: 0 }, one.parts.map(([text, numbers]) => !numbers.length ? written(text) : el("mark", { "data-citations": ` ${numbers.join(" ")} `, tabindex: -1, title: numbers.map((number) => `${citations[number].verdict}: ${citations[number].claim}`).join("\n") }, written(text))))],
    { class: "source", id: `source-${one.id}` });
  const read = el("section", { id: "sources" }, el("h2", {}, "Sources", el("span", {}, `${sources.length} read, ${new Set(citations.map((one) => one.source)).size} cited`)),
    el("div", { class: "card" }, sources.length ? sources.map(source) : el("p", { class: "empty" }, "Nothing was read.")));
  const noted = notices.length || run.error ? el("section", { id: "notices" }, el("h2", {}, "Notices"),
    el("ul", { class: "card notices" }, run.error ? el("li", { class: "bad" }, `ended by: ${run.error}`) : "", notices.map((one) => el("li", {}, one)))) : "";

  const theme = el("button", { type: "button" });
  const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { theme.textContent = dark() ? "light" : "dark"; theme.setAttribute("aria-label", `switch to ${theme.textContent} colours`); };
  theme.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; name(); });
  name();
  const top = el("nav", { "aria-label": "Parts of the page" }, el("div", {}, el("b", {}, "hira", el("i", {}, run.id)),
    [["answer", "Answer"], ["work", "How it went"], ["memory", "Memory"], ["sources", "Sources"]].map(([id, name]) => el("a", { href: `#${id}` }, name)), theme));

  // Arrow keys move between folds, as in a tree.
  document.addEventListener("keydown", (event) => {
    const here = document.activeElement;
    if (event.altKey || event.ctrlKey || event.metaKey || !here || here.tagName !== "SUMMARY") return;
    const all = [...document.querySelectorAll("summary")].filter((one) => one.offsetParent !== null);
    const at = all.indexOf(here), box = here.parentElement;
    if (event.key === "ArrowDown") all[at + 1]?.focus();
    else if (event.key === "ArrowUp") all[at - 1]?.focus();
    else if (event.key === "ArrowRight") box.open ? all[at + 1]?.focus() : (box.fill?.(), (box.open = true));
    else if (event.key === "ArrowLeft") box.open ? (box.open = false) : box.parentElement.closest("details")?.firstElementChild.focus();
    else return;
    event.preventDefault();
  });

  draw("");
  document.getElementById("page").append(top, el("main", {}, header, answer, how, remembered, read, noted,
    el("footer", {}, `${run.workflow} · hira ${run.versions.hira || ""} · Python ${run.versions.python || ""}`)));
})();
