// The page: asking, the list of runs, one run or several side by side. The address names what is shown.

import { call } from "./server.js";
import { RunView } from "./run.js";
import { ago, element } from "./element.js";
import { shut } from "./source.js";

const stage = document.getElementById("stage"), list = document.getElementById("runs");
const trouble = document.getElementById("trouble"), past = document.getElementById("past");
const form = document.getElementById("ask"), question = document.getElementById("question");
const approve = document.getElementById("approve");
const choices = document.getElementById("workflows"), how = document.getElementById("how");
const header = document.querySelector("header");
const narrow = matchMedia("(max-width: 900px)");
let shown = [], setup = "";

function complain(error) {
  trouble.textContent = error ? error.message ?? String(error) : "";
  trouble.hidden = !error;
}

function chosen() {
  return [...choices.querySelectorAll("input:checked")].map(one => one.value);
}

async function workflows() {
  const { data } = await call("/v1/models");
  const usual = data[0].id;
  choices.replaceChildren(...data.map(({ id }) => {
    const box = element("input", { type: "checkbox", value: id, checked: id === usual });
    return element("label", {}, [box, id]);
  }));
  const showChosen = () => {
    const named = how.querySelector("summary");
    named.textContent = chosen().join(" · ") || usual;
    named.setAttribute("aria-label", `workflows: ${named.textContent}`);
  };
  choices.addEventListener("change", showChosen);
  showChosen();
}

async function describeSetup() {
  const { models, documents } = await call("/api/setup");
  const read = documents.length ? `reads ${documents.join(", ")}` : "reads no documents";
  setup = `${models.join(", ")} · ${read}`;
}

async function ask(event) {
  event.preventDefault();
  how.open = false;
  const text = question.value.trim();
  if (!text) return;
  const names = chosen().length ? chosen() : [null];
  try {
    const begun = await Promise.all(names.map(workflow => call("/api/runs", { method: "POST", body: { question: text, workflow, approve: approve.checked } })));
    complain(null);
    location.hash = `#/${begun.map(one => one.id).join("+")}`;
  } catch (error) { complain(error); }
}

async function route() {
  for (const view of shown) view.leave();
  shut();
  const ids = location.hash.replace(/^#\/?/, "").split("+").filter(Boolean);
  const title = ids.length > 1 ? element("h1", { dir: "auto" }) : null;
  shown = ids.map(id => new RunView(id, title));
  document.title = "hira";
  stage.replaceChildren(...(!ids.length ? [welcome()] : title ? [side(title)] : [shown[0].root]));
  if (!ids.length && matchMedia("(hover: hover)").matches) question.focus();
  const watched = shown.map(view => view.show());
  if (ids.length) {
    if (narrow.matches && !list.hidden) toggle();
    await runs();
    for (const one of watched) one.then(view => { if (shown.includes(view)) runs(); });
  }
  await Promise.all(watched);
}

function side(title) {
  return element("div", { class: "compared" }, [title, element("div", { class: "side" }, shown.map(view => view.root))]);
}

function welcome() {
  return element("div", { class: "welcome" }, [
    element("h1", { text: "Ask a hard question." }),
    element("p", { text: "A planner hands out subtasks, experts search, read and compute, and the answer cites what was really read. Choose several workflows to see them side by side." }),
    element("p", { class: "setup", text: setup }),
    element("p", { class: "keys" }, [element("kbd", { text: "/" }), " asks, ", element("kbd", { text: "s" }), " stops and answers, ", element("kbd", { text: "r" }), " shows the runs, ", element("kbd", { text: "Esc" }), " closes"]),
  ]);
}

async function runs() {
  try {
    const { runs } = await call("/api/runs");
    list.replaceChildren(...(runs.length ? runs.map(line) : [element("p", { text: "No run yet." })]));
    for (const view of shown) view.named(runs.find(one => one.id === view.id)?.question);
  } catch (error) { complain(error); }
}

function line(run) {
  const state = run.resumable ? `${run.status}, can be resumed` : run.status.replaceAll("_", " ");
  const link = element("a", { href: `#/${run.id}` }, [
    element("span", { text: run.question, dir: "auto" }),
    element("small", {}, [element("i", { class: `dot ${run.status}` }), `${state} · ${run.workflow} · ${ago(run.began)}`]),
  ]);
  if (location.hash.includes(run.id)) link.setAttribute("aria-current", "page");
  return link;
}

function toggle() {
  list.hidden = !list.hidden;
  past.setAttribute("aria-expanded", String(!list.hidden));
  document.body.classList.toggle("listing", !list.hidden);
  if (!list.hidden) runs();
}

document.addEventListener("keydown", event => {
  if (event.key === "Escape") {
    if (shut()) return;
    if (how.open) { how.open = false; how.querySelector("summary").focus(); } else document.activeElement?.blur();
  }
  if (/^(?:INPUT|TEXTAREA)$/.test(document.activeElement?.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); question.focus(); }
  if (event.key === "r") toggle();
  if (event.key === "s") for (const view of shown) if (!view.stop.hidden) view.end();
});
question.addEventListener("keydown", event => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});
document.addEventListener("click", event => { if (how.open && !how.contains(event.target)) how.open = false; });
new ResizeObserver(() => document.body.style.setProperty("--head", `${header.offsetHeight}px`)).observe(header);
form.addEventListener("submit", ask);
past.addEventListener("click", toggle);
narrow.addEventListener("change", () => { if (narrow.matches && !list.hidden) toggle(); });
list.addEventListener("click", event => { if (event.target.closest("a") && narrow.matches) toggle(); });
window.addEventListener("hashchange", () => { complain(null); route().catch(complain); });
try {
  await workflows();
  await describeSetup();
  if (innerWidth >= 1100) toggle();
  await route();
} catch (error) { complain(error); }
