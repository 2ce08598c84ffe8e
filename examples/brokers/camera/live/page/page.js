"use strict";
// Replaces the picture as soon as the next one is there, and says why if there is none.
const interval = 500;
const element = (id) => document.getElementById(id);

function show(problem) {
  element("picture").hidden = problem !== "";
  element("problem").hidden = problem === "";
  element("problem").textContent = problem;
}

async function refresh() {
  try {
    const status = await (await fetch("/status.json")).json();
    if (status.name) {
      element("name").textContent = document.title = status.name;
      element("model").textContent = status.model;
    }
    if (status.live) {
      const next = element("picture").cloneNode();
      next.src = "/snapshot.jpg?" + Date.now();
      // Without a picture, the next status says why.
      await next.decode().then(() => element("picture").replaceWith(next), () => {});
    }
    show(status.live ? "" : status.problem);
  } catch {
    show("The broker cannot be reached. The camera may have been unplugged.");
  }
  setTimeout(refresh, interval);
}

refresh();
