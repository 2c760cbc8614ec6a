// Asks again when a field changes. The page works without it: the button sends the same form.
const PAUSE_MILLISECONDS = 400;
const form = document.getElementById("question-form");
const refusal = document.getElementById("refusal");
const answer = document.getElementById("answer");
const status = document.getElementById("status");
let pause;
let asking = new AbortController();

function askSoon() {
  clearTimeout(pause);
  asking.abort();
  pause = setTimeout(ask, PAUSE_MILLISECONDS);
}

async function ask() {
  asking = new AbortController();
  answer.setAttribute("aria-busy", "true");
  const options = {method: "POST", body: new URLSearchParams(new FormData(form)), signal: asking.signal};
  try {
    const response = await fetch("/ask/answer", options);
    const text = await response.text();
    show(response, text);
  } catch (error) {
    if (error.name !== "AbortError") fail();
  }
}

function show(response, text) {
  if (response.ok) {
    const open = [...answer.querySelectorAll("details")].map(each => [each.id, each.open]);
    answer.innerHTML = text;
    for (const [id, isOpen] of open) {
      const fold = document.getElementById(id);
      if (fold) fold.open = isOpen;
    }
    refusal.replaceChildren();
    say(document.getElementById("answer-sentence").textContent);
  } else if (response.status === 422) {
    refusal.innerHTML = text;
    say("");
  } else {
    fail();
    return;
  }
  answer.setAttribute("aria-busy", response.ok ? "false" : "true");
  clearMarks();
  const address = response.headers.get("Content-Location");
  if (address) history.replaceState(null, "", address);
}

function clearMarks() {
  for (const mark of form.querySelectorAll(".error, .remark")) mark.remove();
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  for (const link of refusal.querySelectorAll("a[href^='#']")) {
    document.getElementById(link.hash.slice(1))?.setAttribute("aria-invalid", "true");
  }
  document.title = document.title.replace(/^Error: /, "");
}

function fail() {
  const note = document.createElement("p");
  note.className = "note bad";
  note.textContent = "The answer could not be loaded. Press Answer to try again.";
  refusal.replaceChildren(note);
  say(note.textContent);
}

// Loads the part of a page behind the link of a fold that is opened.
async function unfold(event) {
  const link = event.target.open && event.target.querySelector("a[data-part]");
  if (!link) return;
  const place = link.parentElement;
  place.textContent = "The charts are being computed.";
  say(place.textContent);
  try {
    const response = await fetch(link.href);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const part = page.getElementById(link.dataset.part);
    if (!part) throw new Error("no charts");
    place.replaceWith(part);
    say("The charts are shown.");
  } catch {
    say("The charts could not be loaded here.");
    place.replaceChildren("The charts could not be loaded here. ", link);
  }
}

function say(text) {
  status.textContent = text;
}

form.addEventListener("input", askSoon);
answer.addEventListener("toggle", unfold, true);
