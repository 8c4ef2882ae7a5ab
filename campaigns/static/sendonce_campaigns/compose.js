// Writing a campaign: what stands beside the body goes where the cursor is. Without this script
// it is copied by hand.
"use strict";
(() => {
  const TARGETS = ["subject", "preheader", "body", "text_body"];

  const start = () => {
    const palette = document.querySelector(".sendonce-palette");
    const body = document.querySelector("textarea[name=body]");
    if (!palette || !body) {
      return;
    }
    const told = palette.querySelector("[data-inserted]");
    let target = body;
    // Where somebody worked last. Focus alone is not it: the Tab key passes through fields.
    const noted = (event) => {
      const leaves = event.type === "keydown" && ["Tab", "Shift"].includes(event.key);
      if (TARGETS.includes(event.target.name) && !leaves) {
        target = event.target;
      }
    };
    for (const type of ["input", "pointerdown", "keydown"]) {
      body.form.addEventListener(type, noted);
    }

    const insert = (text) => {
      // The browser's own insertion can be undone with its Undo; not every browser has it.
      target.focus();
      if (!document.execCommand("insertText", false, text)) {
        target.setRangeText(text, target.selectionStart, target.selectionEnd, "end");
        target.dispatchEvent(new Event("input", { bubbles: true }));
      }
      told.textContent = `Inserted ${text}`;
    };

    for (const code of palette.querySelectorAll("code[data-insert]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sendonce-insert";
      button.textContent = code.textContent;
      button.addEventListener("click", () => insert(code.dataset.insert));
      code.replaceWith(button);
    }
    for (const hint of palette.querySelectorAll("[data-with-script]")) {
      hint.hidden = false;
    }
  };

  // A finding's link names its field, line and column (in characters); the word there is selected.
  const goToPlace = () => {
    const asked = new URLSearchParams(location.search);
    const [line, column] = ["line", "column"].map((name) => Number(asked.get(name)));
    const field = document.getElementById(location.hash.slice(1));
    if (!(line > 0 && column > 0) || !field || !TARGETS.includes(field.name)) {
      return;
    }
    const lines = field.value.split("\n");
    const before = [...(lines[line - 1] || "")].slice(0, column - 1).join("");
    const at = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, before.length);
    const [word] = /^\S*/.exec(field.value.slice(at));
    field.focus();
    field.setSelectionRange(at, at + word.length);
    field.scrollTop = (field.scrollHeight * (line - 1)) / lines.length - field.clientHeight / 2;
    // What is typed from here on moves the place: the address of the page forgets it.
    history.replaceState(history.state, "", location.pathname + location.hash);
  };

  const begin = () => {
    start();
    goToPlace();
  };
  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", begin);
  } else {
    begin();
  }
})();
