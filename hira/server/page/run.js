// One run as it grows: planner, subtasks, tools; memory; sources; meters; and the answer with its citations.

import { call, watch } from "./server.js";
import { element, figure, money, seconds } from "./element.js";
import { open as openSource } from "./source.js";
import { plain, written } from "./written.js";

const TOOLS_SHOWN = 6;
const CHARACTERS_A_TOKEN = 8;  // most servers send one token at a time

export class RunView {
  // `title` heads several runs side by side, each of which is named after its workflow.
  constructor(id, title = null) {
    this.id = id;
    this.shared = title;
    this.branches = new Map();
    this.running = new Map();
    this.spent = { calls: 0, tokens: 0, cost: null };
    this.facts = this.resources = this.sources = 0;
    this.places = new Set();  // the locations that it read; only these become links in the answer
    this.state = "running";
    this.abort = new AbortController();
    this.make();
  }

  make() {
    this.title = element(this.shared ? "h2" : "h1", { dir: "auto" });
    this.asked = element("p", { class: "asked", dir: "auto", hidden: true });
    this.status = element("span", { class: "status running", role: "status", text: "running" });
    this.meters = element("dl", { class: "meters" });
    this.stop = element("button", { type: "button", class: "stop", text: "Stop and answer now" });
    this.stop.addEventListener("click", () => this.end());
    this.every = element("button", { type: "button", class: "every main", text: "Approve all", hidden: true });
    this.every.addEventListener("click", () => this.approveAll());
    this.resume = element("button", { type: "button", class: "resume", text: "Resume", hidden: true });
    this.resume.addEventListener("click", () => this.resumeRun());
    this.answer = element("div", { class: "answer", "aria-live": "polite", hidden: true, dir: "auto" });
    this.follows = element("p", { class: "follows", hidden: true });
    this.follow = this.makeFollow();
    this.claims = element("details", { class: "claims", hidden: true });
    this.copy = element("button", { type: "button", class: "copy", text: "Copy", "aria-label": "copy the answer", hidden: true });
    this.copy.addEventListener("click", () => this.copied());
    this.problem = element("p", { class: "why failed", role: "alert", hidden: true });
    this.tree = element("ol", { class: "tree" });
    this.factList = element("ul", { class: "facts" });
    this.resourceList = element("ul", { class: "resources" });
    this.sourceList = element("ol", { class: "sources" });
    this.notices = element("ul", { class: "notices" });
    const memory = element("section", { class: "memory" }, [
      element("h2", { text: "Memory" }),
      element("div", { class: "channels" }, [
        element("div", {}, [element("h3", { text: "Facts" }), this.factList]),
        element("div", {}, [element("h3", { text: "Resources" }), this.resourceList]),
      ]),
    ]);
    const read = element("section", { class: "read" }, [element("h2", { text: "Sources" }), this.sourceList]);
    const work = element("section", { class: "work" }, [element("h2", { text: "Work" }), this.tree, this.notices]);
    const head = element("div", { class: "bar" }, [
      this.status, this.meters, element("div", { class: "ways" }, [this.every, this.stop, this.copy, this.resume]), this.problem,
    ]);
    const parts = this.shared ? [element("div", {}, [this.title, this.asked]), head, this.answer, this.claims, work] : [
      this.title, this.follows, head, this.answer, this.claims, this.follow, element("div", { class: "columns" }, [work, element("div", {}, [memory, read])]),
    ];
    this.root = element("article", { class: "run", "data-run": this.id }, parts);
    this.meter();
  }

  makeFollow() {
    const field = element("textarea", { rows: 1, dir: "auto", required: true, placeholder: "Ask a follow-up question", "aria-label": "follow-up question" });
    const form = element("form", { class: "follow", hidden: true }, [field, element("button", { type: "submit", class: "main", text: "Ask" })]);
    field.addEventListener("keydown", event => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    form.addEventListener("submit", event => { event.preventDefault(); this.askNext(field.value.trim()); });
    return form;
  }

  async askNext(question) {
    if (!question) return;
    try {
      const begun = await call("/api/runs", { method: "POST", body: { question, workflow: this.details.workflow, follows: this.id } });
      location.hash = `#/${begun.id}`;
    } catch (error) { this.complain(error); }
  }

  async show() {
    this.ticking = setInterval(() => this.meter(), 500);
    try {
      this.working = { ...await call(`/api/runs/${this.id}`), heard: performance.now() };
      if (this.working.follows) {
        this.follows.replaceChildren("follows ", element("a", { href: `#/${this.working.follows}`, text: "an earlier question" }));
        this.follows.hidden = false;
      }
      for await (const event of watch(this.id, this.abort.signal)) this.take(event);
      this.ended(await call(`/api/runs/${this.id}`));
    } catch (error) {
      if (!this.abort.signal.aborted) this.fail(error.message, error.status === 404 ? "not found" : "failed");
    } finally {
      clearInterval(this.ticking);
    }
    return this;
  }

  leave() { this.abort.abort(); clearInterval(this.ticking); }

  async end() {
    this.stop.disabled = true;
    this.stop.textContent = "Answering from the results so far …";
    try {
      await call(`/api/runs/${this.id}/stop`, { method: "POST", body: {} });
    } catch (error) {
      this.stop.disabled = false;
      this.stop.textContent = "Stop and answer now";
      this.complain(error);
    }
  }

  async resumeRun() {
    this.resume.hidden = true;
    try {
      await call(`/api/runs/${this.id}/resume`, { method: "POST", body: {} });
      location.reload();
    } catch (error) {
      this.resume.hidden = error.status === 404;
      this.complain(error);
    }
  }

  complain(error) {
    this.problem.textContent = error.message;
    this.problem.hidden = false;
  }

  take(event) {
    this.at = event.at ?? this.at;
    this.heard = performance.now();
    const made = this[`on${event.event}`];
    if (made) made.call(this, event);
    if (event.event !== "TurnText") this.meter();
  }

  async copied() {
    await navigator.clipboard.writeText(this.details.answer.answer);
    this.copy.textContent = "Copied";
    setTimeout(() => { this.copy.textContent = "Copy"; }, 1500);
  }

  named(question, workflow) {
    if (!question) return;
    document.title = question;
    if (!this.shared) { this.title.textContent = question; return; }
    this.shared.textContent ||= question;
    this.asked.textContent = question;
    this.asked.hidden = question === this.shared.textContent;
    if (workflow) this.title.textContent = workflow;
  }

  onRunStarted(event) {
    this.named(event.question, event.workflow);
    this.workflow = event.workflow;
    this.models = [...new Set(Object.values(event.models))].join(", ");
    this.limits = event.limits;
    this.branch("", event.workflow);
  }

  onSubtaskIssued(event) { this.branch(event.subtask, event.text); }

  onApprovalAwaited(event) {
    for (const [id, text] of Object.entries(event.subtasks)) this.askAbout(id, text);
    for (const [id, text] of Object.entries(event.calls ?? {})) this.askAbout(id, text, event.tool);
    this.waits = new Set([...Object.keys(event.subtasks), ...Object.keys(event.calls ?? {})]);
    this.every.hidden = this.waits.size < 2;
    this.status.textContent = "waiting for you";
    this.tree.querySelector("form textarea")?.focus({ preventScroll: true });
  }

  onSubtaskApproved(event) { this.decided(event.subtask, event.text); }

  onSubtaskRejected(event) { this.decided(event.subtask); }

  onCallApproved(event) { this.callDecided(event.call); }

  onCallRefused(event) { this.callDecided(event.call); }

  // A call has its own line in the tree only while it waits.
  callDecided(id) {
    if (!this.branches.has(id)) return;
    this.decided(id);
    this.branches.get(id).root.remove();
    this.branches.delete(id);
  }

  askAbout(id, text, tool = "") {
    const branch = this.branch(id, tool || text);
    const named = tool ? `call of ${tool}` : `subtask ${id}`;
    const field = element("textarea", { rows: 2, dir: "auto", "aria-label": named });
    field.value = text;
    const reason = element("input", { type: "text", dir: "auto", placeholder: `why not? (the ${tool ? "model" : "planner"} reads it)`, "aria-label": `reason against ${named}` });
    const hand = element("button", { type: "submit", class: "main", text: "Approve" });
    const reject = element("button", { type: "button", class: "reject", text: "Reject" });
    branch.form?.remove();
    branch.form = element("form", { class: "decide" }, [field, element("div", { class: "ways" }, [hand, reason, reject])]);
    branch.form.addEventListener("submit", event => { event.preventDefault(); this.decide(id, { text: field.value }); });
    reject.addEventListener("click", () => this.decide(id, { rejected: reason.value }));
    branch.root.classList.add("waits");
    branch.root.append(branch.form);
  }

  async decide(id, decision) {
    const { form } = this.branch(id);
    this.frozen(form, true);
    try {
      await this.decides([{ id, ...decision }]);
      form.dataset.decided = true;
      if (this.waits.size > 1) form.append(element("p", { class: "why", text: `${"rejected" in decision ? "Rejected" : "Approved"} as soon as the others are decided.` }));
    } catch (error) {
      this.frozen(form, false);
      form.querySelector(".why")?.remove();
      form.append(element("p", { class: "why", text: error.message }));
    }
  }

  // Approve all undecided ones, each with its present text.
  async approveAll() {
    const forms = [...this.waits].map(id => [id, this.branch(id).form]).filter(([, form]) => !form.dataset.decided);
    const decisions = forms.map(([id, form]) => ({ id, text: form.querySelector("textarea").value }));
    for (const [, form] of forms) this.frozen(form, true);
    try {
      await this.decides(decisions);
    } catch (error) {
      for (const [, form] of forms) this.frozen(form, false);
      this.complain(error);
    }
  }

  decides(decisions) { return call(`/api/runs/${this.id}/approve`, { method: "POST", body: { decisions } }); }

  frozen(form, still) { for (const part of form.querySelectorAll("button, textarea, input")) part.disabled = still; }

  decided(id, text) {
    const branch = this.branch(id, text);
    branch.form?.remove();
    branch.root.classList.remove("waits");
    this.waits?.delete(id);
    this.every.hidden = !(this.waits?.size > 1);
    if (!this.waits?.size) this.status.textContent = "running";
  }

  onSubtaskAssigned(event) {
    const branch = this.branch(event.subtask);
    branch.who.textContent = event.expert;
    branch.who.title = event.reason;
    if (event.recalled) branch.note.textContent = `${event.recalled} remembered`;
  }

  onSubtaskDone(event) {
    const branch = this.branch(event.subtask);
    branch.root.classList.remove("busy");
    branch.root.classList.add(event.ok ? "done" : "failed");
    if (!event.ok) branch.failed.textContent = "failed";
    branch.conclusion.textContent = event.conclusion;
  }

  onTurnStarted(event) {
    this.running.set(event.conversation, { role: event.role, prompt: event.prompt, since: event.at, tokens: 0 });
  }

  onTurnText(event) {
    const branch = this.branch(this.of(event.conversation));
    const turn = this.running.get(event.conversation);
    if (turn) {
      turn.first ??= event.at;
      turn.tokens += Math.max(1, Math.floor(event.text.length / CHARACTERS_A_TOKEN));
    }
    branch.text = ((branch.text ?? "") + event.text).slice(-160);
    branch.said.textContent = branch.text;
  }

  onTurnEnded(event) {
    this.running.delete(event.conversation);
    const branch = this.branch(this.of(event.conversation));
    branch.said.textContent = branch.pace.textContent = branch.text = "";
    this.spent.calls += event.usage.calls;
    this.spent.tokens += event.usage.prompt_tokens + event.usage.completion_tokens;
    if (event.usage.cost != null) this.spent.cost = (this.spent.cost ?? 0) + event.usage.cost;
  }

  onToolStarted(event) {
    const branch = this.branch(this.of(event.conversation));
    const shown = Object.values(event.arguments).map(one => typeof one === "string" ? one : JSON.stringify(one)).join(", ");
    const line = element("li", { class: "tool busy", "data-call": event.call }, [
      element("b", { text: event.tool }), element("span", { text: shown.replace(/\s+/g, " ").slice(0, 200), title: shown.slice(0, 2000) }),
    ]);
    branch.tools.append(line);
    while (branch.tools.childElementCount > TOOLS_SHOWN) branch.tools.firstElementChild.remove();
    branch.lines.set(event.call, line);
  }

  onToolEnded(event) {
    const line = this.branch(this.of(event.conversation)).lines.get(event.call);
    line?.classList.remove("busy");
    line?.classList.add(event.ok ? "done" : "failed");
    line?.append(element("i", { text: event.ok ? seconds(event.seconds) : `failed, ${seconds(event.seconds)}` }));
  }

  onRemembered(event) {
    if (event.channel === "summary") return; // about earlier turns, not in the memory of this run
    const list = event.channel === "fact" ? this.factList : this.resourceList;
    list.append(element("li", { class: "new" }, [element("span", { text: event.text, dir: "auto" }), element("i", { text: event.origin })]));
  }

  onSourceRead(event) {
    this.places.add(event.location);
    this.sourceList.append(element("li", { value: ++this.sources, "data-source": event.source }, [
      element("button", { type: "button", title: event.location, disabled: true }, [
        element("u", { text: event.source.slice(1) }), event.title || event.location,
      ]),
    ]));
  }

  onDocumentsRead(event) { this.status.textContent = `reading documents: ${event.done} of ${event.total}`; }

  onNotice(event) { this.notices.append(element("li", { text: event.text })); }

  onEnded(event) { this.state = event.status; this.resumable = event.resumable; }

  of(conversation) {
    const [first] = conversation.split("/");
    return conversation.includes("/") && this.branches.has(first) ? first : "";
  }

  branch(key, text) {
    let branch = this.branches.get(key);
    if (!branch) {
      branch = {
        head: element("p", { dir: "auto" }), who: element("b"), note: element("i"), failed: element("em"),
        pace: element("p", { class: "pace" }), said: element("p", { class: "said", dir: "auto" }), tools: element("ul", { class: "tools" }),
        conclusion: element("p", { class: "conclusion", dir: "auto" }), lines: new Map(),
      };
      branch.root = element("li", { class: key ? "subtask busy" : "top" }, [
        element("div", { class: "head" }, [key ? element("u", { text: key }) : "", branch.head, branch.who, branch.note, branch.failed]),
        branch.pace, branch.said, branch.tools, branch.conclusion,
      ]);
      this.branches.set(key, branch);
      this.tree.append(branch.root);
    }
    if (text) branch.head.textContent = text;
    return branch;
  }

  // The clock runs between two events. Events that a page reads late do not show the time; the server does.
  passed() {
    if (this.at == null || this.state !== "running") return this.at;
    const { seconds: before, heard } = this.working?.seconds != null ? this.working : { seconds: this.at, heard: this.heard };
    return before + (performance.now() - heard) / 1000;
  }

  // As in the terminal: how long the role has been at work, how much it reads, or how much it has written.
  pace({ role, prompt, since, first, tokens }) {
    const now = this.passed(), wrote = now - first;
    const reads = prompt ? `reads about ${figure(prompt)} tokens` : "reads";
    const speed = wrote >= 1 ? ` · ${(tokens / wrote).toFixed(1)} tokens/s` : "";
    return `${role} · ${seconds(Math.max(0, now - since))} · ${tokens ? `about ${figure(tokens)} tokens${speed}` : reads}`;
  }

  meter() {
    for (const [conversation, turn] of this.running) this.branch(this.of(conversation)).pace.textContent = this.pace(turn);
    const of = (name, form) => this.limits?.[name] ? ` of ${form(this.limits[name])}` : "";
    const paid = this.spent.cost || this.limits?.cost ? money(this.spent.cost ?? 0) : "";
    const passed = this.passed() == null ? "" : seconds(this.passed());
    const shown = [
      ["workflow", this.shared ? "" : this.workflow], ["model", this.models],
      ["calls", figure(this.spent.calls) + of("calls", figure)], ["tokens", figure(this.spent.tokens) + of("tokens", figure)],
      ["cost", paid && paid + of("cost", money)], ["time", passed && passed + of("seconds", seconds)],
    ].filter(([, value]) => value);
    this.meters.replaceChildren(...shown.map(([name, value]) =>
      element("div", {}, [element("dt", { text: name }), element("dd", { text: value })])));
  }

  ended(details) {
    this.named(details.question, details.workflow);
    this.stop.hidden = true;
    this.resume.hidden = !details.resumable;
    this.resume.textContent = details.status === "failed" ? "Try again" : "Resume";
    this.state = details.status;
    this.status.className = `status ${details.status}`;
    this.status.textContent = details.status.replaceAll("_", " ");
    this.quiet();
    this.meter();
    this.follow.hidden = Boolean(this.shared) || !details.answer?.answer;
    if (details.error && !details.answer?.answer) return this.fail(details.error);
    if (!details.answer) return;
    this.details = details;
    this.answer.hidden = false;
    const laid = new DocumentFragment();
    for (const part of this.answered(details.answer.answer)) laid.append(part);
    this.answer.dir = "";  // with "auto", the browser compares each part that is added with all the others
    this.answer.replaceChildren(laid);
    this.answer.dir = "auto";
    this.copy.hidden = !navigator.clipboard || !details.answer.answer;
    this.listClaims(details.answer.citations);
    if (details.answer.error) this.answer.append(element("p", { class: "why", text: details.answer.error }));
    for (const item of this.sourceList.children) {
      item.firstElementChild.disabled = false;
      item.firstElementChild.addEventListener("click", () => this.source(item.dataset.source));
    }
    for (const id of new Set(details.answer.citations.map(one => one.id))) {
      this.sourceList.querySelector(`[data-source="${CSS.escape(id)}"]`)?.classList.add("cited");
    }
  }

  // The answer is always shown, formatted if possible.
  answered(text) {
    try {
      return written(text, id => this.citation(id), this.places);
    } catch (error) {
      console.error(error);
      return [plain(text)];
    }
  }

  // Every claim once, with its verdict, the words that no source has, the passages and their places. The list is
  // open if a reader should check it: a claim is not supported, or the answer itself does not cite its source.
  listClaims(citations) {
    const claims = Map.groupBy(citations, one => one.claim);
    if (!claims.size) return;
    const counts = new Map();
    for (const [{ verdict }] of claims.values()) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
    const summary = [...counts].map(([verdict, count]) => `${count} ${verdict}`).join(", ");
    this.claims.replaceChildren(
      element("summary", {}, [`${claims.size} ${claims.size === 1 ? "claim" : "claims"}: ${summary}`]),
      element("ul", { class: "verdicts" }, [...claims].map(([claim, found]) => this.describeClaim(claim, found))),
    );
    this.claims.open = citations.some(one => one.verdict !== "supported" || one.attributed);
    this.claims.hidden = false;
  }

  describeClaim(claim, found) {
    const [{ verdict, why, attributed }] = found;
    return element("li", { class: verdict.replaceAll(" ", "-") }, [
      element("b", { text: verdict }), element("span", { text: claim, dir: "auto" }),
      why ? element("p", { class: "lacks", text: why }) : "",
      ...found.map(one => this.describePassage(one)),
      attributed ? element("small", { text: `The answer cites no source for this claim; hira found ${verdict === "supported" ? "this one" : "the closest one"}.` }) : "",
    ]);
  }

  describePassage(citation) {
    const source = this.details.answer.sources.find(one => one.id === citation.id);
    const place = element("button", { type: "button", class: "where", text: [`${citation.id.slice(1)} · ${source?.title || citation.source}`, citation.place].filter(Boolean).join(", "), title: citation.source });
    place.addEventListener("click", () => this.source(citation.id));
    return element("blockquote", { dir: "auto" }, [citation.quote ? `“${citation.quote}” ` : "", place]);
  }

  quiet() {
    this.running.clear();
    this.every.hidden = true;
    for (const branch of this.branches.values()) {
      branch.root.classList.remove("busy", "waits");
      branch.form?.remove();
      branch.said.textContent = branch.pace.textContent = "";
    }
  }

  // A sign shows the verdict too, not only the colour.
  citation(id) {
    const own = this.details.answer.citations.filter(one => one.id === id && !one.attributed);
    const verdict = own.find(one => one.verdict !== "supported")?.verdict ?? own[0]?.verdict ?? "not checked";
    const where = [verdict, ...new Set(own.map(one => one.place).filter(Boolean))].join(", ");
    const sign = { supported: "", contradicted: " ✗" }[verdict] ?? " ?";
    const button = element("button", {
      type: "button", class: `cite ${verdict.replaceAll(" ", "-")}`, text: id.slice(1) + sign, title: where, "aria-label": `source ${id.slice(1)}, ${where}`,
    });
    button.addEventListener("click", () => this.source(id));
    return button;
  }

  source(id) {
    const source = this.details.answer.sources.find(one => one.id === id);
    const citations = this.details.answer.citations.filter(one => one.id === id);
    if (source) openSource(source, this.details.texts[id] ?? "", citations);
  }

  fail(message, state = "failed") {
    this.state = "failed";
    this.status.className = "status failed";
    this.status.textContent = state;
    this.title.textContent ||= "This run cannot be shown";
    this.root.classList.toggle("bare", !this.branches.size);
    this.quiet();
    this.stop.hidden = true;
    this.answer.hidden = false;
    this.answer.replaceChildren(element("p", { class: "why failed", text: message }));
  }
}
