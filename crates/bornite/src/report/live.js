"use strict";
(() => {
  const data = JSON.parse(document.getElementById("bn-circuit").textContent);
  const [INPUT, HADAMARD, KRONECKER, SUM] = [0, 1, 2, 3];
  const [KEPT, MARGINALIZED, MIXED] = ["k", "z", "m"];
  const layers = data.layers.map(([kind, width, inputs, size, squared, start, end, fused]) =>
    ({ kind, width: BigInt(width), inputs, size: BigInt(size), squared: BigInt(squared), start, end, fused }));
  const count = data.names.length;
  const position = new Array(count);
  data.order.forEach((variable, at) => { position[variable] = at; });
  const known = new Uint8Array(count);

  // φ_Y, φ_Z or φ_YZ of every layer, from how many variables of its scope are kept.
  function dependences() {
    const before = [0];
    for (const variable of data.order) before.push(before[before.length - 1] + known[variable]);
    return layers.map(({ start, end }) => {
      const kept = before[end] - before[start];
      return kept === end - start ? KEPT : kept === 0 ? MARGINALIZED : MIXED;
    });
  }

  // The kind of each layer's message and its multiply-adds, from the library's own table. Kinds are numbers; a
  // marginalized layer sends the first one, the identity.
  const { kronecker, hadamard, sum, modes, powers } = data.rules;
  function multiplyAdds(sets) {
    const forms = [];
    let total = 0n;
    layers.forEach((layer, id) => {
      if (sets[id] === MARGINALIZED) { forms[id] = 0; return; }
      const width = layer.width;
      if (layer.kind === INPUT) { total += width; forms[id] = 1; return; }
      const product = layer.kind === HADAMARD ? hadamard : kronecker;
      const form = layer.inputs.map((i) => forms[i]).reduce((a, b) => product[a][b]);
      const stored = (length) => length ** BigInt(powers[form]);
      forms[id] = form;
      if (layer.fused) return;
      if (layer.kind === HADAMARD) {
        total += BigInt(layer.inputs.length - 1) * stored(width);
      } else if (layer.kind === KRONECKER) {
        let length = 1n;
        for (const i of layer.inputs) {
          length *= layers[i].width;
          total += stored(length);
        }
      } else {
        const below = layers[layer.inputs[0]].fused ? layers[layer.inputs[0]].inputs : layer.inputs;
        let length = below.reduce((product, i) => product * layers[i].width, width);
        const take = (i) => {
          const { per_entry: entry, per_output: output } = modes[forms[i]];
          total += length * (BigInt(entry) + BigInt(output) * layers[i].width);
        };
        const inputs = [...below].reverse();
        for (const i of inputs.filter((i) => modes[forms[i]].is_summed_out)) {
          take(i);
          length /= layers[i].width;
        }
        const left = inputs.filter((i) => !modes[forms[i]].is_summed_out);
        left.forEach(take);
        if (left.length > 0) total += length * width;
        forms[id] = sum[form];
      }
    });
    return total;
  }

  function counts(sets) {
    const result = { k: 0, z: 0, m: 0, ours: multiplyAdds(sets), bound: 0n, squaring: 0n };
    layers.forEach((layer, id) => {
      result[sets[id]] += 1;
      result.squaring += layer.squared;
      if (sets[id] === KEPT) result.bound += layer.size;
      if (sets[id] === MIXED) result.bound += layer.squared;
    });
    return result;
  }

  const grouped = (n) => n.toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
  function tell(id, value) {
    const element = document.getElementById(id);
    element.dataset.value = value.toString();
    element.textContent = grouped(value);
  }
  function bar(id, value, most) {
    const share = value > 0n ? Math.log10(Number(value) + 1) / Math.log10(Number(most) + 1) : 0;
    document.getElementById(id).style.width = `${(100 * share).toFixed(1)}%`;
  }

  let recolor = () => {};
  function update() {
    const sets = dependences();
    const now = counts(sets);
    tell("bn-kept", now.k); tell("bn-marginalized", now.z); tell("bn-mixed", now.m);
    tell("bn-evaluated", now.k + now.m); tell("bn-layers", layers.length);
    tell("bn-ours", now.ours); tell("bn-bound", now.bound); tell("bn-squaring", now.squaring);
    for (const [id, value] of [["ours", now.ours], ["bound", now.bound], ["squaring", now.squaring]])
      bar(`bn-${id}-bar`, value, now.squaring);
    const saved = now.ours > 0n ? Number(now.squaring) / Number(now.ours) : Infinity;
    document.getElementById("bn-ratio").textContent = now.ours === 0n
      ? "nothing is computed: the circuit is normalized"
      : `${saved >= 100 ? Math.round(saved).toLocaleString("en") : saved.toFixed(1)} times fewer than squaring`;
    const keptVariables = known.reduce((a, b) => a + b, 0);
    document.getElementById("bn-variables").textContent =
      `${keptVariables} of ${count} variables kept, ${count - keptVariables} marginalized`;
    recolor(sets);
  }
  function toggle(variables) {
    const keep = variables.some((v) => !known[v]) ? 1 : 0;
    for (const v of variables) known[v] = keep;
    update();
  }
  const scope = ({ start, end }) => data.order.slice(start, end);

  function act(element, act) {
    element.addEventListener("click", act);
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
    });
  }

  // Boxes: the circuit is already drawn.
  function boxes(svg) {
    const parts = [...svg.querySelectorAll("[data-l]")].map((element) => [element, Number(element.dataset.l)]);
    const inputs = [];
    for (const [element, id] of parts) {
      if (element.tagName !== "g") continue;
      act(element, () => toggle(scope(layers[id])));
      element.style.cursor = "pointer";
      if (layers[id].kind === INPUT) {
        const variable = data.order[layers[id].start];
        element.setAttribute("tabindex", "0");
        element.setAttribute("role", "checkbox");
        element.setAttribute("aria-label", `keep ${data.names[variable]}`);
        inputs.push([element, variable]);
      }
    }
    for (const element of svg.querySelectorAll("[data-v]")) {
      element.style.cursor = "pointer";
      act(element, () => toggle([Number(element.dataset.v)]));
    }
    recolor = (sets) => {
      for (const [element, id] of parts) {
        const shape = element.tagName === "g" ? element.querySelector("rect") : element;
        shape.classList.remove("k", "z", "m", "n");
        shape.classList.add(sets[id]);
      }
      for (const [element, v] of inputs) element.setAttribute("aria-checked", known[v] ? "true" : "false");
    };
  }

  // Regions: a rectangle for every region of a large circuit, its variables from top to bottom.
  function regions(svg) {
    const [width, height] = [920, 600];
    const deepest = Math.max(...data.regions.map((r) => r[1]));
    const step = width / (deepest + 1);
    const shapes = data.regions.map(([layer, depth]) => {
      const { start, end } = layers[layer];
      const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const [y, h] = [(start / count) * height, ((end - start) / count) * height];
      const gap = Math.min(1, h / 8, step / 8);
      rect.setAttribute("x", (width - (depth + 1) * step + gap / 2).toFixed(2));
      rect.setAttribute("y", (y + gap / 2).toFixed(2));
      rect.setAttribute("width", (step - gap).toFixed(2));
      rect.setAttribute("height", Math.max(h - gap, 0.2).toFixed(2));
      const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
      title.textContent = `${end - start} variables: ${data.names[data.order[start]]}` +
        (end - start > 1 ? ` … ${data.names[data.order[end - 1]]}` : "") + `, width ${layers[layer].width}`;
      rect.append(title);
      rect.style.cursor = "pointer";
      rect.addEventListener("click", () => toggle(scope(layers[layer])));
      svg.append(rect);
      return [rect, layer];
    });
    recolor = (sets) => { for (const [rect, layer] of shapes) rect.setAttribute("class", sets[layer]); };
  }

  // Images: a board of pixels to paint on.
  function board(svg) {
    const [height, width, channels] = data.image;
    const cells = [];
    let painting = null;
    const paint = (cell, value) => {
      for (let c = 0; c < channels; c += 1) known[cell * channels + c] = value;
      update();
    };
    for (let cell = 0; cell < width * height; cell += 1) {
      const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      rect.setAttribute("x", cell % width); rect.setAttribute("y", Math.floor(cell / width));
      rect.setAttribute("width", 0.94); rect.setAttribute("height", 0.94);
      rect.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        painting = known[cell * channels] ? 0 : 1;
        paint(cell, painting);
      });
      rect.addEventListener("pointerenter", () => { if (painting !== null) paint(cell, painting); });
      svg.append(rect);
      cells.push(rect);
    }
    window.addEventListener("pointerup", () => { painting = null; });
    const before = recolor;
    recolor = (sets) => {
      before(sets);
      cells.forEach((rect, cell) => rect.setAttribute("class", known[cell * channels] ? KEPT : MARGINALIZED));
    };
  }

  const presets = {
    all: () => true,
    none: () => false,
    half: (v) => position[v] < count / 2,
    other: (v) => position[v] % 2 === 0,
  };
  if (data.image) {
    const [height, width, channels] = data.image;
    const x = (v) => Math.floor(v / channels) % width;
    const y = (v) => Math.floor(v / channels / width);
    Object.assign(presets, {
      left: (v) => x(v) < width / 2, right: (v) => x(v) >= width / 2,
      top: (v) => y(v) < height / 2, bottom: (v) => y(v) >= height / 2,
    });
  }
  function preset(name) {
    for (let v = 0; v < count; v += 1) known[v] = presets[name](v) ? 1 : 0;
    update();
  }
  for (const button of document.querySelectorAll("[data-preset]"))
    button.addEventListener("click", () => preset(button.dataset.preset));

  const drawn = document.querySelector("#bn-stage .scroll > svg");
  if (drawn) boxes(drawn); else regions(document.getElementById("bn-regions"));
  if (data.image) board(document.getElementById("bn-board"));

  // #keep=0,2,5 keeps these variables, so that a state can be shared as a link.
  const asked = /#keep=([\d,]*)$/.exec(location.hash);
  if (asked) {
    for (const v of asked[1].split(",").filter(Boolean).map(Number)) if (v < count) known[v] = 1;
    update();
  } else preset(data.image ? "left" : "half");
})();
