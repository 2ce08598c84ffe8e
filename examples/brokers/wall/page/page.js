"use strict";
// Shows a tile for each camera. The list is read again and again, because the program
// that serves it is replaced when a camera comes or goes.
const interval = 700;
const tiles = new Map();

function addTile(name) {
  const tile = document.getElementById("tile").content.firstElementChild.cloneNode(true);
  tile.querySelector("strong").textContent = name;
  document.getElementById("wall").append(tile);
  tiles.set(name, tile);
}

function show(tile, problem) {
  tile.querySelector("img").hidden = problem !== "";
  tile.querySelector(".problem").hidden = problem === "";
  tile.querySelector(".problem").textContent = problem;
}

async function refreshTile(name, tile) {
  const base = "/cameras/" + encodeURIComponent(name);
  const answer = await fetch(base + "/status.json");
  if (!answer.ok) {
    return show(tile, await answer.text());
  }
  const status = await answer.json();
  if (status.name) {
    tile.querySelector("strong").textContent = status.name;
    tile.querySelector("code").textContent = name;
  }
  if (status.live) {
    const old = tile.querySelector("img");
    const next = old.cloneNode();
    next.src = base + "/snapshot.jpg?" + Date.now();
    await next.decode();
    old.replaceWith(next);
  }
  show(tile, status.live ? "" : status.problem);
}

async function refresh() {
  const notice = document.getElementById("notice");
  try {
    const names = await (await fetch("/cameras.json")).json();
    for (const [name, tile] of tiles) {
      if (!names.includes(name)) {
        tile.remove();
        tiles.delete(name);
      }
    }
    names.filter((name) => !tiles.has(name)).forEach(addTile);
    document.getElementById("count").textContent = names.length;
    notice.hidden = names.length > 0;
    notice.textContent = "There is no camera.";
    await Promise.allSettled([...tiles].map(([name, tile]) => refreshTile(name, tile)));
  } catch {
    notice.hidden = false;
    notice.textContent = "The wall cannot be reached. It is being replaced, or the last camera was unplugged.";
  }
  setTimeout(refresh, interval);
}

refresh();
