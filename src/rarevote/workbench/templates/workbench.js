// Keys, and one item after the other without loading the page anew. Everything also works without this script:
// a key clicks what a mouse could click, and what is sent is the form that the browser would send.
"use strict";

const part = (name) => document.querySelector(`[data-part=${name}]`);
let busy = false;

async function load(address, options) {
  if (busy) return;
  busy = true;
  document.body.toggleAttribute("data-busy", true);
  try {
    const answer = await fetch(address, { credentials: "same-origin", ...options });
    show(await answer.text());
    part("trouble").hidden = true;
  } catch {
    part("trouble").hidden = false;
  } finally {
    busy = false;
    document.body.toggleAttribute("data-busy", false);
  }
}

function show(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  document.getElementById("bench").replaceWith(document.adoptNode(page.getElementById("bench")));
  document.title = page.title;
  document.querySelector("[data-focus]")?.focus({ preventScroll: true });
  showClaims();
}

async function showClaims() {
  if (!part("claims")?.open) return;
  try {
    const answer = await fetch("/claims", { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    part("claims-words").replaceChildren(...page.getElementById("main").childNodes);
  } catch {
    part("trouble").hidden = false;
  }
}

function zoomed(figure) {
  const on = figure.classList.toggle("zoomed");
  figure.querySelector("[data-part=zoom]").setAttribute("aria-pressed", on);
}

function keyOf(event) {
  // The keys of the upper row are digits, whatever a keyboard writes with them.
  const digit = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
  return digit && !event.shiftKey ? digit[1] : event.key;
}

document.addEventListener("keydown", (event) => {
  // A key that is held down is one answer, not ten.
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  const key = keyOf(event);
  if (key === "Enter" && event.target.closest("button, a, summary")) return;
  const meant = [...document.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key);
  if (!meant) return;
  event.preventDefault();
  if (meant === part("claims")) meant.open = !meant.open;
  else if (!busy) meant.click();
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("[data-plain]")) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form, event.submitter));
  load(form.action, { method: "POST", body: fields });
});

document.addEventListener("click", (event) => {
  const zoom = event.target.closest("[data-part=zoom], .picture img");
  if (zoom) return zoomed(zoom.closest(".picture"));
  const link = event.target.closest("#bench a[href^='/']:not([target], [data-plain]), a[data-load]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  load(link.href);
});

part("claims")?.addEventListener("toggle", showClaims);
document.querySelector("[data-focus]")?.focus({ preventScroll: true });
