// Previews: fills the frames of a page, lists people while an address is typed, and shows a
// campaign while it is written. Without this script each has a button.
"use strict";
(() => {
  const PAUSE = 400;

  const later = (act) => {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(act, PAUSE);
    };
  };

  // The frames of what was typed and not saved: one form after the other, as a form that is
  // sent twice at once is sent once.
  const fill = (forms) => {
    const [form, ...others] = forms;
    if (!form) {
      return;
    }
    form.hidden = true;
    const frame = document.querySelector(`iframe[name="${form.target}"]`);
    frame.addEventListener("load", () => fill(others), { once: true });
    form.submit();
  };
  fill([...document.querySelectorAll("form.sendonce-fill")]);

  // Addresses of the account that begin as it was typed; scoped by the server.
  const suggest = (field, url) => {
    let flight = null;
    field.addEventListener("input", later(async () => {
      if (flight) {
        flight.abort();
      }
      if (!field.value.trim()) {
        return;
      }
      flight = new AbortController();
      try {
        const where = new URL(url, location.href);
        where.searchParams.set("q", field.value.trim());
        const answer = await fetch(where, { signal: flight.signal, redirect: "error" });
        if (answer.ok) {
          const { people } = await answer.json();
          field.list.replaceChildren(...people.map((email) => new Option(email, email)));
        }
      } catch {
        // The field works without a list.
      }
    }));
  };
  for (const field of document.querySelectorAll("input[data-people]")) {
    suggest(field, field.dataset.people);
  }

  const live = (seat) => {
    const form = seat.closest("form");
    const stage = seat.querySelector(".sendonce-stage");
    const told = seat.querySelector(".sendonce-told");
    const shown = seat.querySelector(".sendonce-shown");
    const words = seat.querySelector("[name=preview_q]");
    let flight = null;
    let number = 0;
    let seen = "";
    // What nobody has begun to write lacks nothing yet.
    let begun = Boolean(form.elements.body.value.trim());
    form.elements.body.addEventListener("input", () => {
      begun = true;
    });

    const values = () =>
      [...new FormData(form)].filter(([, value]) => typeof value === "string");

    const tell = (lines, isError) => {
      const text = lines.join("\n");
      if (told.dataset.text === text) {
        return;
      }
      told.dataset.text = text;
      const list = document.createElement(isError ? "ul" : "div");
      list.className = isError ? "errorlist" : "";
      for (const line of lines) {
        const item = document.createElement(isError ? "li" : "p");
        item.textContent = line;
        list.append(item);
      }
      told.replaceChildren(...(lines.length ? [list] : []));
    };

    // A new frame each time: one that is sent somewhere twice is a step of the Back button.
    const show = (given) => {
      for (const old of stage.querySelectorAll(".sendonce-coming")) {
        old.remove();
      }
      const frame = document.createElement("iframe");
      number += 1;
      frame.name = `preview-live-${number}`;
      frame.title = "The message as it is typed";
      frame.setAttribute("sandbox", "");
      frame.className = "sendonce-coming";
      stage.append(frame);
      const post = document.createElement("form");
      post.method = "post";
      post.action = seat.dataset.frame;
      post.target = frame.name;
      post.hidden = true;
      for (const [name, value] of given) {
        const field = document.createElement("textarea");
        field.name = name;
        field.value = value;
        post.append(field);
      }
      document.body.append(post);
      frame.addEventListener("load", () => {
        for (const old of stage.querySelectorAll("iframe")) {
          if (old !== frame) {
            old.remove();
          }
        }
        frame.className = "";
        stage.classList.remove("sendonce-stale");
      });
      HTMLFormElement.prototype.submit.call(post);
      post.remove();
    };

    const describe = (found) => {
      const parts = [`As ${found.as}`];
      if (found.subject) {
        parts.push(`subject: ${found.subject}`);
      }
      if (found.size) {
        parts.push(`${found.size} of HTML`);
      }
      const lacks = found.missing.length ? ` Missing: ${found.missing.join("; ")}.` : "";
      shown.textContent = `${found.said ? `${found.said} ` : ""}${parts.join("; ")}.${lacks}`;
    };

    const look = async () => {
      if (flight) {
        flight.abort();
      }
      if (!begun && !form.elements.body.value.trim()) {
        shown.textContent = "It shows here as soon as there is something in the body.";
        return;
      }
      flight = new AbortController();
      const given = values();
      try {
        const answer = await fetch(seat.dataset.check, {
          method: "POST",
          body: new URLSearchParams(given),
          signal: flight.signal,
          redirect: "error",
        });
        if (!answer.ok) {
          throw new Error(String(answer.status));
        }
        const found = await answer.json();
        tell(found.problems, true);
        describe(found);
        stage.classList.toggle("sendonce-stale", !found.html);
        const part = seat.querySelector("[name=preview_part]:checked");
        stage.dataset.width = part.dataset.width;
        const now = `${found.html} ${part.value}`;
        if (found.html && now !== seen) {
          seen = now;
          show(given);
        }
      } catch (error) {
        if (error.name !== "AbortError") {
          tell(["There is no preview at the moment. The button above may show one."], false);
          seen = "";
        }
      }
    };

    const soon = later(look);
    form.addEventListener("input", soon);
    form.addEventListener("change", soon);
    if (words) {
      suggest(words, seat.dataset.people);
      // Enter here asks for the preview; it does not save the campaign.
      words.addEventListener("keydown", (event) => {
        if (event.key === "Enter") {
          event.preventDefault();
          look();
        }
      });
    }
    seat.hidden = false;
    look();
  };

  const seat = document.getElementById("sendonce-live");
  if (seat) {
    live(seat);
  }
})();
