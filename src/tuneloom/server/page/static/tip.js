// One tooltip for everything with a `data-tip`, under the pointer or at what has the focus.
const tip = document.getElementById("tip");

const show = (text, x, y) => {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, x + 14 + box.width > innerWidth ? x - box.width - 14 : x + 14)}px`;
  tip.style.top = `${Math.max(4, y + 16 + box.height > innerHeight ? y - box.height - 12 : y + 16)}px`;
};

const hide = () => { tip.hidden = true; };

export const listen = () => {
  document.addEventListener("pointermove", (event) => {
    const mark = event.target instanceof Element && event.target.closest("[data-tip]");
    if (mark) show(mark.dataset.tip, event.clientX, event.clientY); else hide();
  });
  document.addEventListener("focusin", (event) => {
    const mark = event.target instanceof SVGElement && event.target.closest("[data-tip]");
    if (!mark) return hide();
    const box = mark.getBoundingClientRect();
    show(mark.dataset.tip, box.right, box.top);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("pointerleave", hide);
  addEventListener("scroll", hide, { passive: true });
};
