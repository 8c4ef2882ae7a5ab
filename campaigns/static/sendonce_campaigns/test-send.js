// Follows a test until it has left. Without this script the page has a link that reloads it.
"use strict";
(() => {
  const PAUSE = 2000;
  const PATIENCE = 30000;
  const said = document.getElementById("test-said");
  let wait = PAUSE;
  let timer = 0;

  const region = () => document.getElementById("test-state");

  const replace = (fresh) => {
    const old = region();
    const focused = old.contains(document.activeElement) ? document.activeElement.id : null;
    old.replaceWith(fresh);
    if (focused !== null) {
      const again = focused && document.getElementById(focused);
      (again || fresh).focus();
    }
    if (said.textContent !== fresh.dataset.said) {
      said.textContent = fresh.dataset.said;
    }
  };

  const look = async () => {
    const url = region().dataset.poll;
    if (!url) {
      return;
    }
    try {
      const answer = await fetch(url, { redirect: "error" });
      if (answer.status >= 400 && answer.status < 500) {
        said.textContent = "This page does not follow the test any more. Reload it.";
        return;
      }
      if (!answer.ok) {
        throw new Error(String(answer.status));
      }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("test-state");
      if (!fresh) {
        throw new Error("another page");
      }
      // What waits for long is asked for less often.
      wait = Math.min(wait * 1.2, PATIENCE);
      if (fresh.innerHTML !== region().innerHTML || fresh.dataset.poll !== url) {
        replace(document.importNode(fresh, true));
        wait = PAUSE;
      }
    } catch {
      wait = Math.min(wait * 2, PATIENCE);
    }
    plan();
  };

  const plan = () => {
    clearTimeout(timer);
    if (!document.hidden && region().dataset.poll) {
      timer = setTimeout(look, wait);
    }
  };

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden) {
      look();
    }
  });
  plan();
})();
