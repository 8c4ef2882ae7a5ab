// Follows what goes on by itself (an import, a test): asks for the part of the page that changes
// until that part names no URL any more. Without this script the page has a link that reloads it.
"use strict";
(() => {
  const PAUSE = 2000;
  const PATIENCE = 30000;
  const { id, dataset } = document.querySelector("[data-follow]");
  const said = document.getElementById(dataset.follow);
  let wait = PAUSE;
  let timer = 0;

  const region = () => document.getElementById(id);

  // Every answer has another token for its forms; that alone is no news.
  const news = (node) => node.innerHTML.replace(/(csrfmiddlewaretoken" value=")[^"]*/g, "$1");

  // Told to screen readers only when it says something new, not every two seconds.
  const say = (text) => {
    if (text && said.textContent !== text) {
      said.textContent = text;
    }
  };

  const replace = (fresh) => {
    const old = region();
    const focused = old.contains(document.activeElement) ? document.activeElement.id : null;
    old.replaceWith(fresh);
    if (focused !== null) {
      const again = focused && document.getElementById(focused);
      (again || fresh).focus();
    }
    say(fresh.dataset.said);
  };

  const look = async () => {
    const url = region().dataset.poll;
    if (!url) {
      return;
    }
    try {
      const answer = await fetch(url, { redirect: "error" });
      if (answer.status >= 400 && answer.status < 500) {
        say(said.dataset.lost);
        return;
      }
      if (!answer.ok) {
        throw new Error(String(answer.status));
      }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(id);
      if (!fresh) {
        throw new Error("another page");
      }
      // What waits for long is asked for less often.
      wait = Math.min(wait * 1.2, PATIENCE);
      if (news(fresh) !== news(region()) || fresh.dataset.poll !== url) {
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
