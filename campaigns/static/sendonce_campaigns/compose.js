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

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", start);
  } else {
    start();
  }
})();
