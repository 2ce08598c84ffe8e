"use strict";
// Shows a tile for each camera that answers, and says why the others have none. The list
// is read again and again, because cameras come and go. Pictures are replaced one by one:
// a slow camera delays no other.
const interval = 300; // ms between two pictures, and between two lists
const patience = 5000; // ms for an answer
const tiles = new Map();
const element = (id) => document.getElementById(id);

// animate replaces the picture of a tile while the tile is on the page.
async function animate(tile, url) {
  if (tile.classList.contains("live")) {
    const picture = tile.querySelector("img");
    const next = picture.cloneNode();
    next.src = url + Date.now();
    // Without a picture, the list says why.
    await next.decode().then(() => picture.replaceWith(next), () => {});
  }
  if (tile.isConnected) {
    setTimeout(animate, interval, tile, url);
  }
}

// show adds or updates the tile of a camera.
function show(camera) {
  let tile = tiles.get(camera.name);
  const added = tile === undefined;
  if (added) {
    tile = element("tile").content.firstElementChild.cloneNode(true);
    tile.querySelector("code").textContent = camera.name;
    element("wall").append(tile);
    tiles.set(camera.name, tile);
  }
  tile.classList.toggle("live", camera.live);
  tile.querySelector("strong").textContent = camera.title;
  tile.querySelector(".problem").textContent = camera.problem;
  if (added) {
    animate(tile, "/cameras/" + encodeURIComponent(camera.name) + "/snapshot.jpg?");
  }
}

// notify shows lines above the tiles. Screen readers read them when they change.
function notify(...lines) {
  const text = lines.join("\n");
  if (element("notice").textContent !== text) {
    element("notice").textContent = text;
  }
}

async function refresh() {
  try {
    const answer = await fetch("/cameras.json", { signal: AbortSignal.timeout(patience) });
    const cameras = await answer.json();
    const shown = cameras.filter((camera) => !camera.gone);
    for (const [name, tile] of tiles) {
      if (!shown.some((camera) => camera.name === name)) {
        tile.remove();
        tiles.delete(name);
      }
    }
    shown.forEach(show);
    element("count").textContent = shown.length;
    notify(...cameras.filter((camera) => camera.gone).map((camera) => camera.title + ": " + camera.problem),
      ...(cameras.length === 0 ? ["There is no camera."] : []));
  } catch {
    notify("The wall cannot be reached. It is being replaced, or the last camera was unplugged.");
  }
  setTimeout(refresh, interval);
}

refresh();
