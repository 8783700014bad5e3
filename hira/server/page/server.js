// Requests of the page to its server. Every answer is data; a key, if needed, stays in this tab.

let asking = null;

function headers(more = {}) {
  const key = sessionStorage.getItem("key");
  return key ? { authorization: `Bearer ${key}`, ...more } : more;
}

// Ask for the key once, for all requests that wait for it. `sent` is the key that the server refused.
async function keyed(sent) {
  asking ??= new Promise((done, refused) => {
    const dialog = document.getElementById("key"), field = document.getElementById("secret"), wrong = document.getElementById("wrong");
    wrong.textContent = sent ? "This key is wrong." : "";
    wrong.hidden = !sent;
    dialog.showModal();
    dialog.addEventListener("close", () => {
      const given = field.value.trim();
      field.value = "";
      asking = null;
      if (given) sessionStorage.setItem("key", given);
      if (given) done(); else refused(new Error("This server needs a key. Reload the page to enter one."));
    }, { once: true });
  });
  return asking;
}

// Ask for a key in place of the refused one, unless another request has asked for it already.
const renewed = async key => { if (asking || sessionStorage.getItem("key") === key) await keyed(key); };

const AWAY = "The server does not answer. Is hira serve still running?";

const away = error => { throw error instanceof TypeError ? new Error(AWAY) : error; };

const refusal = ({ status }, reply) => Object.assign(new Error(reply.error?.message ?? `the server answered ${status}`), { status });

export async function call(path, { method = "GET", body } = {}) {
  for (;;) {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const more = method === "POST" ? { "content-type": "application/json" } : {};
    const key = sessionStorage.getItem("key");
    const reply = await fetch(path, { method, headers: headers(more), ...sent }).catch(away);
    if (reply.status === 401) { await renewed(key); continue; }
    const value = await reply.json().catch(() => ({}));
    if (!reply.ok) throw refusal(reply, value);
    return value;
  }
}

// The events of a run, one by one, until it ends. After a broken connection, they continue with the next one.
export async function* watch(run, signal) {
  let at = 0;
  for (let tries = 0; ;) {
    const key = sessionStorage.getItem("key");
    try {
      const reply = await fetch(`/api/runs/${run}/events?from=${at}`, { headers: headers(), signal });
      if (reply.status === 401) { await renewed(key); continue; }
      if (!reply.ok) throw refusal(reply, await reply.json().catch(() => ({})));
      for await (const event of events(reply.body)) {
        tries = 0;
        yield event;
        if (event.event === "Ended") return;
        at += 1;
      }
    } catch (error) {
      if (signal?.aborted || !(error instanceof TypeError)) throw error;
      if (++tries > 5) away(error);
    }
    await new Promise(done => setTimeout(done, 300 * 2 ** tries));
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (kept + value).split("\n\n");
    kept = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) yield JSON.parse(part.slice(6));
  }
}
