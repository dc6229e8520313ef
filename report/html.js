"use strict";
(() => {
  const panel = document.getElementById("panel");
  const events = (svg) => [...svg.querySelectorAll(".e")].sort((a, b) => a.dataset.t - b.dataset.t);
  const tell = (g) => {
    const title = g && g.querySelector("title");
    panel.hidden = !title;
    panel.textContent = title ? title.textContent : "";
  };
  const event = (target) => target.closest && target.closest(".e");
  document.addEventListener("pointerover", (e) => tell(event(e.target) || event(document.activeElement || document.body)));
  document.addEventListener("focusin", (e) => tell(event(e.target)));
  document.addEventListener("focusout", () => tell(null));
  document.addEventListener("keydown", (e) => {
    const g = event(e.target);
    if (!g || e.ctrlKey || e.metaKey || e.altKey) return;
    const all = events(g.ownerSVGElement);
    const i = all.indexOf(g);
    const to = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: all.length - 1 }[e.key];
    if (e.key === "Escape") g.blur();
    if (to === undefined || !all[to]) return;
    e.preventDefault();
    g.setAttribute("tabindex", "-1");
    all[to].setAttribute("tabindex", "0");
    all[to].focus();
  });
  const open = () => {
    const at = document.getElementById(location.hash.slice(1));
    const scene = at && at.closest("details.scene");
    if (scene && !scene.open) {
      scene.open = true;
      at.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  open();
})();
