// Follows a campaign while it is sent. Without this script the page has a link that reloads it.
"use strict";
(() => {
  const OFTEN = 2000;
  const SELDOM = 10000;
  // The oldest look that a rate is told of, in milliseconds.
  const LATELY = 300000;
  const said = document.getElementById("progress-said");
  const stopped = document.getElementById("progress-stopped");
  const region = document.getElementById("progress-state");
  const marks = [{ at: Date.now(), mark: region.dataset.now }];
  let spoken = region.dataset.said;
  let wait = OFTEN;
  let timer = 0;

  // What a clock tells, and the tokens of forms, are other each time: that is no news.
  const news = (node) => {
    const copy = node.cloneNode(true);
    copy.querySelectorAll("[data-clock], [name=csrfmiddlewaretoken]").forEach((one) => one.remove());
    copy.querySelectorAll("details").forEach((one) => one.removeAttribute("open"));
    copy.querySelectorAll("a[href*='mark=']").forEach((one) => one.removeAttribute("href"));
    return copy.innerHTML;
  };

  // The one in fresh that an element of before was; the region where there is none.
  const successor = (before, fresh) => {
    const label = before.getAttribute("aria-label");
    const like = (one) =>
      before.id
        ? one.id === before.id
        : label
          ? one.getAttribute("aria-label") === label
          : before.href !== undefined && one.href === before.href;
    return [...fresh.querySelectorAll(before.tagName)].find(like) || region;
  };

  const refill = (old, fresh) => {
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    fresh.querySelectorAll("details[id]").forEach((one) => {
      const same = document.getElementById(one.id);
      one.open = same ? same.open : one.open;
    });
    old.replaceChildren(...fresh.childNodes);
    if (focused && !old.contains(focused)) {
      successor(focused, old).focus({ preventScroll: true });
    }
  };

  // Only what differs is changed, so that a button that is being pressed stays the same button,
  // and what was opened, scrolled or has the focus stays so.
  const morph = (old, fresh) => {
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) {
        old.data = fresh.data;
      }
      return;
    }
    for (const { name, value } of fresh.attributes || []) {
      if (name !== "open" && old.name !== "csrfmiddlewaretoken" && old.getAttribute(name) !== value) {
        old.setAttribute(name, value);
      }
    }
    const mine = [...old.childNodes];
    const theirs = [...fresh.childNodes];
    const alike =
      mine.length === theirs.length &&
      mine.every((one, place) => one.nodeName === theirs[place].nodeName && one.id === theirs[place].id);
    if (alike) {
      mine.forEach((one, place) => morph(one, theirs[place]));
    } else {
      refill(old, fresh);
    }
  };

  // Sections are told apart by their ids. Returns whether anything is new.
  const show = (fresh) => {
    let changed = false;
    const wanted = new Set([...fresh.children].map((one) => one.id));
    for (const one of [...region.children].filter((section) => !wanted.has(section.id))) {
      if (one.contains(document.activeElement)) {
        region.focus({ preventScroll: true });
      }
      one.remove();
      changed = true;
    }
    [...fresh.children].forEach((one, place) => {
      const old = document.getElementById(one.id);
      if (!old) {
        region.insertBefore(one, region.children[place] || null);
        changed = true;
        return;
      }
      changed = news(old) !== news(one) || changed;
      morph(old, one);
    });
    return changed;
  };

  const stop = (words) => {
    region.removeAttribute("data-poll");
    stopped.textContent = words;
    stopped.hidden = false;
    said.textContent = words;
  };

  const read = async (answer) => {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("progress-state");
    if (!answer.ok || !fresh) {
      throw new Error(String(answer.status));
    }
    return document.importNode(fresh, true);
  };

  const look = async () => {
    const now = Date.now();
    while (marks.length > 1 && now - marks[0].at > LATELY) {
      marks.shift();
    }
    try {
      const url = region.dataset.poll + "?mark=" + encodeURIComponent(marks[0].mark);
      const answer = await fetch(url, {
        credentials: "same-origin",
        redirect: "manual",
        cache: "no-store",
      });
      if (answer.type === "opaqueredirect") {
        stop("You are logged out. Log in again and reload this page to go on watching.");
        return;
      }
      if (answer.status >= 400 && answer.status < 500) {
        stop("This page does not follow the campaign any more. Reload it.");
        return;
      }
      const fresh = await read(answer);
      const words = fresh.dataset.said;
      const goesOn = fresh.dataset.poll;
      marks.push({ at: now, mark: fresh.dataset.now });
      wait = show(fresh) ? OFTEN : Math.min(wait * 1.5, SELDOM);
      if (words !== spoken) {
        spoken = words;
        said.textContent = words;
      }
      if (!goesOn) {
        region.removeAttribute("data-poll");
      }
    } catch {
      wait = Math.min(wait * 2, SELDOM);
    }
    plan();
  };

  const plan = () => {
    clearTimeout(timer);
    if (!document.hidden && region.dataset.poll) {
      timer = setTimeout(look, wait);
    }
  };

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden && region.dataset.poll) {
      look();
    }
  });
  plan();
})();
