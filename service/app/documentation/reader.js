// Finds operations in the list, and sends requests. Without it the pages say the same.
"use strict";

function filterOperations(form) {
  const words = document.getElementById("words");
  const groups = [...document.querySelectorAll("details.group")];
  const opened = new Set(groups.filter((group) => group.open));
  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const group of groups) {
      let shown = 0;
      for (const row of group.querySelectorAll("li")) {
        const text = row.textContent.toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      group.hidden = shown === 0;
      group.open = wanted.length ? shown > 0 : opened.has(group);
      count += shown;
    }
    document.getElementById("found").textContent = wanted.length ? `${count} found` : "";
  }
  words.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
}

function buildRequest(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const field of form.querySelectorAll("[data-place]")) {
    if (!field.value) continue;
    if (field.dataset.place === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    else if (field.dataset.place === "query") query.append(field.name, field.value);
    else headers[field.name] = field.value;
  }
  const key = document.getElementById("key");
  if (key && key.value) headers.Authorization = `Bearer ${key.value}`;
  const body = document.getElementById("body");
  if (body) headers["Content-Type"] = "application/json";
  const address = query.size ? `${path}?${query}` : path;
  return [address, { method: form.dataset.method, headers, body: body ? body.value : undefined }];
}

async function showAnswer(answer) {
  const text = await answer.text();
  const shown = document.getElementById("answer");
  const isJson = (answer.headers.get("content-type") || "").includes("json");
  // Numbers are shown as they were sent: a parser would round the long ones.
  shown.textContent = isJson ? indentJson(text) : text;
  shown.hidden = text === "";
  document.getElementById("status").textContent = `${answer.status} ${answer.statusText}`;
}

function indentJson(text) {
  let depth = 0;
  return text.replace(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g, (token) => {
    if (token === "{" || token === "[") return token + "\n" + "  ".repeat(++depth);
    if (token === "}" || token === "]") return "\n" + "  ".repeat(--depth) + token;
    if (token === ",") return ",\n" + "  ".repeat(depth);
    return token === ":" ? ": " : token;
  });
}

function trySending(form) {
  const example = document.getElementById("example");
  const body = document.getElementById("body");
  const fill = () => { body.value = document.getElementById(example.value).textContent; };
  if (example) {
    example.addEventListener("change", fill);
    fill();
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    document.getElementById("status").textContent = "Waiting";
    try {
      await showAnswer(await fetch(...buildRequest(form)));
    } catch (error) {
      document.getElementById("status").textContent = `No answer: ${error.message}`;
    }
  });
  form.hidden = false;
}

const search = document.getElementById("filter");
if (search) filterOperations(search);
const sending = document.getElementById("try");
if (sending) trySending(sending);
