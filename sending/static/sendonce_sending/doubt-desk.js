// Ticks all messages of the page at once, and counts those ticked. Without it the page works as well.
"use strict";
(() => {
    const form = document.getElementById("doubt-form");
    const place = document.getElementById("doubt-all");
    const count = document.getElementById("doubt-count");
    if (!form || !place) return;
    const boxes = Array.from(form.querySelectorAll('input[name="send"]'));
    const all = document.createElement("input");
    all.type = "checkbox";
    all.setAttribute("aria-label", "All messages of this page");
    place.replaceChildren(all);

    const tell = () => {
        const ticked = boxes.filter((box) => box.checked).length;
        all.checked = ticked === boxes.length;
        all.indeterminate = ticked > 0 && ticked < boxes.length;
        count.textContent = ` (${ticked})`;
    };
    all.addEventListener("change", () => {
        for (const box of boxes) box.checked = all.checked;
        tell();
    });
    form.addEventListener("change", (event) => {
        if (event.target.name !== "send") return;
        const ticked = form.querySelector('input[name="which"][value="ticked"]');
        if (event.target.checked) ticked.checked = true;
        tell();
    });
    tell();
})();
