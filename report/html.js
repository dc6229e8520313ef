"use strict";
(() => {
  const panel = document.getElementById("panel");
  const events = (svg) => [...svg.querySelectorAll(".e")].sort((a, b) => a.dataset.t - b.dataset.t);
  const event = (target) => target && target.closest && target.closest(".e");
  const focused = () => event(document.activeElement);
  let told = null; // the event that the panel tells of
  let dismissed = null; // the one that Escape has put away

  // What an event is called moves from its title, which a browser shows by itself, to its label.
  const words = (g) => {
    const title = g.querySelector("title");
    if (title) {
      g.setAttribute("aria-label", title.textContent);
      title.remove();
    }
    return g.getAttribute("aria-label");
  };
  // The panel stands below what it tells of or above it, never on it, and within the window. A bar may be longer than
  // the window is wide: then it stands at the pointer, or at what is seen of the bar.
  const place = (g, x) => {
    const shape = g.querySelector("use, rect:not(.plate), line").getBoundingClientRect();
    const pan = g.closest(".pan").getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    const high = document.documentElement.clientHeight;
    const from = Math.max(shape.left, pan.left, 0);
    const to = Math.min(shape.right, pan.right, wide);
    const middle = x === undefined ? (from + to) / 2 : x;
    panel.style.left = Math.max(8, Math.min(middle - panel.offsetWidth / 2, wide - panel.offsetWidth - 8)) + "px";
    const below = shape.bottom + 12;
    panel.style.top = (below + panel.offsetHeight + 8 <= high ? below : Math.max(8, shape.top - 12 - panel.offsetHeight)) + "px";
  };
  const tell = (g, x) => {
    if (g === told && g) return;
    told = g;
    const text = g && g !== dismissed ? words(g) : "";
    panel.hidden = !text;
    panel.textContent = text;
    if (text) place(g, x);
  };
  document.addEventListener("pointerover", (e) => {
    const g = event(e.target);
    if (g) dismissed = null;
    tell(g || focused(), g ? e.clientX : undefined);
  });
  document.addEventListener("focusin", (e) => {
    dismissed = null;
    tell(event(e.target));
  });
  document.addEventListener("focusout", () => tell(null));
  addEventListener("scroll", () => { if (!panel.hidden) place(told); }, { capture: true, passive: true });
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") {
      dismissed = told;
      tell(null);
    }
    const g = event(e.target);
    if (!g || e.ctrlKey || e.metaKey || e.altKey) return;
    const all = events(g.ownerSVGElement);
    const i = all.indexOf(g);
    const to = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: all.length - 1 }[e.key];
    if (to === undefined || !all[to]) return;
    e.preventDefault();
    g.setAttribute("tabindex", "-1");
    all[to].setAttribute("tabindex", "0");
    words(all[to]);
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
