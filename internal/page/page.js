"use strict";
(() => {
  const canvas = document.getElementById("timeline"), pen = canvas.getContext("2d");
  const detail = document.getElementById("detail");
  const gutter = 70, top = 34, row = 30, axis = 22;
  const height = top + run.keys.length * row + axis;
  const workers = [...new Set(run.holds.map(h => h.w).concat(run.faults.map(f => f.w)))].filter(w => w >= 0).sort((a, b) => a - b);
  const name = w => w < 0 ? "a server" : (run.workers || [])[w] || "worker " + w;
  const hue = w => (w * 137 + 210) % 360;
  const colour = (w, alpha = 1) => w < 0 ? `rgb(128 128 128 / ${alpha})` : `hsl(${hue(w)} 65% 50% / ${alpha})`;
  const common = prefix(run.holds.map(h => h.t).filter(t => t));
  const lanes = run.keys.map((_, k) => run.holds.filter(h => h.k === k).sort((a, b) => a.f - b.f));
  let from = 0, to = run.end || 1, width = 0;

  // prefix is what all tokens begin with.
  function prefix(tokens) {
    let common = tokens[0] || "";
    for (const t of tokens) {
      while (!t.startsWith(common)) common = common.slice(0, -1);
    }
    return common;
  }

  const x = t => gutter + (t - from) / (to - from) * (width - gutter);
  const time = px => from + (px - gutter) / (width - gutter) * (to - from);

  function draw() {
    const scale = devicePixelRatio || 1, ink = getComputedStyle(document.body).color;
    width = canvas.clientWidth;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = height + "px";
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.font = "11px system-ui, sans-serif";
    pen.save();
    pen.beginPath();
    pen.rect(gutter, 0, width - gutter, height);
    pen.clip();
    run.faults.forEach(shade);
    lanes.forEach((holds, k) => lane(holds, top + k * row, ink));
    run.violations.forEach(mark);
    pen.restore();
    ticks(ink);
    pen.textAlign = "right";
    run.keys.forEach((key, k) => pen.fillText(key, gutter - 8, top + k * row + row / 2 + 4));
    pen.fillText("faults", gutter - 8, 20);
  }

  function shade(f) {
    const a = x(f.f), b = Math.max(x(f.e), a + 1.5);
    if (b < gutter || a > width) return;
    pen.fillStyle = colour(f.w, .13);
    pen.fillRect(a, 0, b - a, height - axis);
    pen.fillStyle = colour(f.w, .9);
    pen.fillRect(a, 4, b - a, 4);
    pen.textAlign = "left";
    if (b - a > 4 || to - from < 20000) pen.fillText(f.n, Math.max(a, gutter) + 2, 20 + (f.w + 1) % 2 * 11);
  }

  function lane(holds, y, ink) {
    pen.strokeStyle = "rgb(128 128 128 / .25)";
    pen.strokeRect(gutter - .5, y + .5, width, row);
    for (const h of holds) {
      const a = x(h.f), b = Math.max(x(h.e), a + 1);
      if (b < gutter || a > width) continue;
      const shared = h.m === "shared" || h.m === "slots", inset = shared ? 4 + h.w % 3 * 8 : 4;
      const tall = shared ? 6 : row - 8;
      const c = Math.max(a, Math.min(b, x(h.d)));
      pen.fillStyle = colour(h.w, shared ? .75 : .85);
      pen.fillRect(a, y + inset, Math.max(c - a, 1), tall);
      if (b - c > 2) { // it was no longer held, and its holder did not know
        pen.strokeStyle = colour(h.w, .8);
        pen.strokeRect(c + .5, y + inset + .5, b - c - 1, tall - 1);
      }
      if (h.l) {
        pen.strokeStyle = "#d33";
        pen.setLineDash([3, 2]);
        pen.beginPath();
        pen.moveTo(b, y + 2);
        pen.lineTo(b, y + row - 2);
        pen.stroke();
        pen.setLineDash([]);
      }
      const label = h.t.slice(common.length) || h.t;
      if (!shared && c - a > pen.measureText(label).width + 6) {
        pen.fillStyle = "#fff";
        pen.textAlign = "left";
        pen.fillText(label, Math.max(a, gutter) + 3, y + row / 2 + 4);
      }
    }
  }

  function mark(v) {
    if (v.a < 0) return;
    const y = v.k < 0 ? top : top + v.k * row;
    pen.fillStyle = v.w ? "#888" : "#d33";
    pen.beginPath();
    pen.moveTo(x(v.a), y + 8);
    pen.lineTo(x(v.a) - 5, y - 2);
    pen.lineTo(x(v.a) + 5, y - 2);
    pen.fill();
  }

  function ticks(ink) {
    const rough = (to - from) / Math.max(1, (width - gutter) / 110), unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(n => n * unit).find(n => n >= rough);
    pen.fillStyle = ink;
    pen.textAlign = "center";
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      const label = step >= 1000 ? (t / 1000) + " s" : +t.toFixed(3) + " ms";
      pen.fillText(label, Math.min(x(t), width - pen.measureText(label).width / 2 - 2), height - 7);
    }
  }

  function show(a, b) {
    const least = .05, length = Math.max(b - a, least);
    from = Math.max(0, Math.min(a, (run.end || 1) - length));
    to = Math.min(run.end || 1, from + length);
    draw();
  }

  // at returns what lies under a point.
  function at(px, py) {
    const k = Math.floor((py - top) / row), near = 2 / (width - gutter) * (to - from), t = time(px);
    const holds = (lanes[k] || []).filter(h => h.f - near <= t && t <= h.e + near);
    const faults = run.faults.filter(f => f.f - near <= t && t <= f.e + near);
    return { holds, faults };
  }

  const ms = t => (t / 1000).toFixed(4) + " s";
  function describe(e) {
    const { holds, faults } = at(e.offsetX, e.offsetY);
    const lines = holds.slice(0, 4).map(h => `${run.keys[h.k]}: ${h.n}, ${h.m}, token ${h.t || "unknown"}, asked ${ms(h.a)}, got ${ms(h.f)}, ${h.x} ${ms(h.e)}`);
    lines.push(...faults.slice(0, 3).map(f => `${f.n} of ${name(f.w)}: ${ms(f.f)} to ${ms(f.e)}`));
    detail.innerText = lines.join("\n") || ms(time(e.offsetX));
  }

  let drag = null;
  canvas.addEventListener("wheel", e => {
    e.preventDefault();
    const t = time(e.offsetX), factor = Math.exp(e.deltaY * .002);
    show(t - (t - from) * factor, t + (to - t) * factor);
  }, { passive: false });
  canvas.addEventListener("pointerdown", e => { drag = { px: e.offsetX, from, to }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointermove", e => {
    if (!drag) return describe(e);
    const by = (drag.px - e.offsetX) / (width - gutter) * (drag.to - drag.from);
    show(drag.from + by, drag.to + by);
  });
  canvas.addEventListener("dblclick", () => show(0, run.end));
  canvas.addEventListener("keydown", e => {
    const by = (to - from) / 4, move = { ArrowLeft: [-by, -by], ArrowRight: [by, by], "+": [by, -by], "-": [-by, by] }[e.key];
    if (move) show(from + move[0], to + move[1]);
  });

  const legend = document.getElementById("legend");
  for (const w of workers) {
    const item = document.createElement("span"), box = document.createElement("i");
    box.style.background = colour(w);
    item.append(box, name(w));
    legend.append(item);
  }
  const list = document.getElementById("violations");
  for (const v of run.violations) {
    const item = document.createElement("li");
    item.textContent = `${v.c}${v.k < 0 ? "" : ", " + run.keys[v.k]}: ${v.t}`;
    if (v.w) item.className = "waived";
    if (v.a >= 0) item.addEventListener("click", () => { show(v.a - 200, v.a + 200); canvas.scrollIntoView(); });
    list.append(item);
  }
  addEventListener("resize", draw);
  draw();
})();
