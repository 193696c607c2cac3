// The workbench without a server: answers stay in the browser until they are saved as a file.
"use strict";

const record = JSON.parse(document.getElementById("record").textContent);
const store = `rarevote:${record.of}:${record.round}:${record.places.join(",")}`;
const templates = [...document.querySelectorAll("template[data-item]")];
const total = templates.length;
const part = (name) => document.querySelector(`[data-part=${name}]`);
const main = document.getElementById("main");
// said: [choice, when] by item; order: items as they were answered.
let state = { said: {}, order: [], who: record.who };
let at = -1; // the item that is shown; -1 at the start, total at the end
let furthest = 0;

function remember() {
  try {
    localStorage.setItem(store, JSON.stringify(state));
  } catch {
    part("trouble").hidden = false;
  }
}

function recall() {
  try {
    const kept = JSON.parse(localStorage.getItem(store));
    if (kept && kept.said && Array.isArray(kept.order)) state = kept;
  } catch {
    part("trouble").hidden = false;
  }
}

function firstOpen() {
  for (let i = 0; i < total; i++) if (!(i in state.said)) return i;
  return total;
}

function show(next) {
  at = next;
  furthest = Math.max(furthest, Math.min(at, total - 1));
  const name = at < 0 ? "start" : at >= total ? "end" : null;
  const source = name ? document.getElementById(name) : templates[at];
  main.replaceChildren(source.content.cloneNode(true));
  main.scrollTop = 0;
  part("answers").hidden = part("tools").hidden = name !== null;
  const counts = Object.values(state.said);
  const unsure = counts.filter((said) => said[0] < 0).length;
  const done = counts.length - unsure;
  document.querySelector("progress").value = counts.length;
  part("count").textContent = `${done} of ${total} answered${unsure ? `, ${unsure} unsure` : ""}`;
  if (name === "start") part("who").value = state.who ?? "";
  if (name === "end") {
    part("end-title").textContent = counts.length === total ? "All items are answered" : "Not all items are answered yet";
    part("end-words").textContent = `${done} of ${total} answered${unsure ? `, ${unsure} unsure` : ""}. Save the answers and send the file back; you can send the missing ones later.`;
  }
  if (!name) {
    main.setAttribute("aria-label", `Item ${at + 1} of ${total}: ${templates[at].dataset.task}`);
    for (const button of document.querySelectorAll("[data-choice]"))
      button.setAttribute("aria-pressed", state.said[at]?.[0] === Number(button.dataset.choice));
    document.querySelector("[data-do=undo]").disabled = !state.order.length;
    document.querySelector("[data-do=back]").disabled = at === 0;
    document.querySelector("[data-do=forward]").disabled = !(at in state.said) && at >= furthest;
  }
  (main.querySelector("[data-focus]") ?? main).focus({ preventScroll: true });
}

function answer(choice) {
  state.said[at] = [choice, new Date().toISOString().replace(/\.\d+Z$/, "Z")];
  state.order = [...state.order.filter((item) => item !== at), at];
  remember();
  show(firstOpen());
}

function undo() {
  const last = state.order.pop();
  if (last === undefined) return;
  delete state.said[last];
  remember();
  show(last);
}

async function save() {
  const answers = state.order.map((item) => [record.places[item], ...state.said[item]]);
  const kept = [record.of, record.round, state.who || null, answers];
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(kept))));
  const digest = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const [of, round, who] = kept;
  const text = JSON.stringify({ format: "rarevote answers", version: 1, of, round, who, answers, sha256: digest });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = record.file;
  link.click();
  part("saved").textContent = `Saved as ${record.file} in your downloads folder. Send this file back.`;
}

const actions = {
  undo,
  save,
  help: () => show(-1),
  // From the end of a finished list back to its first item.
  next: () => show(at >= total && firstOpen() >= total ? 0 : firstOpen()),
  back: () => show(at - 1),
  forward: () => show(at + 1 < total ? at + 1 : firstOpen()),
  end: () => show(total),
};

document.addEventListener("click", (event) => {
  const zoom = event.target.closest("[data-part=zoom], .picture img");
  const button = event.target.closest("button");
  if (zoom) zoom.closest(".picture").classList.toggle("zoomed");
  else if (button?.dataset.choice !== undefined) answer(Number(button.dataset.choice));
  else if (button?.dataset.do) actions[button.dataset.do]();
});

document.addEventListener("input", (event) => {
  if (event.target !== part("who")) return;
  state.who = event.target.value.trim() || null;
  remember();
});

document.addEventListener("submit", (event) => event.preventDefault());

document.addEventListener("keydown", (event) => {
  // A key that is held down is one answer, not ten; a name is typed, not answered.
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  const typing = event.target.matches("input");
  if (typing && event.key !== "Enter") return;
  if (event.key === "Enter" && event.target.closest("button, a")) return;
  const digit = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
  const key = digit && !event.shiftKey ? digit[1] : event.key;
  const meant = [...document.querySelectorAll("[data-key]")].find(
    (element) => element.dataset.key === key && !element.closest("[hidden]"),
  );
  if (!meant) return;
  event.preventDefault();
  meant.click();
});

// The same file in another tab: the answers are those of both.
window.addEventListener("storage", (event) => {
  if (event.key !== store) return;
  recall();
  show(at);
});

recall();
show(-1);
