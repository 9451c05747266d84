// Rules that look at the page as it is drawn; each returns sentences about what is wrong.
// See accessibility.py, which says them in words.
() => {
  const wrong = [];
  const say = (rule, element, words) => {
    const id = element.id ? `#${element.id}` : element.className?.baseVal ?? element.className;
    wrong.push(`${rule}: ${element.tagName.toLowerCase()} ${id}: ${words}`);
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const seen = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const open = document.querySelector("dialog[open]");
  const reachable = (element) => seen(element) && (!open || open.contains(element));
  const clipped = (element) => {
    const box = element.getBoundingClientRect();
    return box.width <= 1 || box.height <= 1 || element.closest(".unseen, .skip");
  };

  // contrast
  const parse = (text) => {
    const parts = text.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  const over = (top, below) => top.rgb.map((c, i) => c * top.alpha + below[i] * (1 - top.alpha));
  const backgroundOf = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const layer = parse(getComputedStyle(at).backgroundColor);
      layers.push(layer);
      if (layer.alpha === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => {
      const s = c / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const opacityOf = (element) => {
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= getComputedStyle(at).opacity;
    return opacity;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !reachable(element) || clipped(element)) continue;
    if (element.closest(":disabled, script, style, noscript, option")) continue;
    const style = getComputedStyle(element);
    const svg = element instanceof SVGElement;
    const colour = parse(svg ? style.fill : style.color);
    const below = backgroundOf(svg ? element.closest("svg") : element);
    if (colour.alpha === 0) continue; // the tick of what is not chosen
    colour.alpha *= opacityOf(element);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const found = ratio(over(colour, below), below);
    if (found < (large ? 3 : 4.5)) {
      const words = walker.currentNode.textContent.trim().slice(0, 20);
      say("contrast", element, `${found.toFixed(2)} for "${words}"`);
    }
  }
  // contrast of what is not text: parts by which a control or its state is known
  const edges = [["button:not(.plain):not([role=tab]):not(.primary):not(:disabled)", "borderTopColor"],
    ["select", "borderTopColor"], ["input[type=number]", "borderTopColor"],
    [".row .badge", "borderTopColor"], ["[aria-selected=true] > .badge", "backgroundColor"],
    [".primary:not(:disabled)", "backgroundColor"]];
  for (const [selector, property] of edges) {
    for (const element of all(selector).filter(reachable)) {
      const colour = parse(getComputedStyle(element)[property]);
      if (element.closest("#group-sheet")) continue;
      const below = backgroundOf(element.parentElement);
      const found = ratio(over(colour, below), below);
      if (found < 3) say("contrast", element, `${found.toFixed(2)} at its edge`);
    }
  }
  for (const element of all("[role=option][aria-selected=true]").filter(reachable)) {
    const ring = parse(getComputedStyle(element).boxShadow);
    const found = ratio(ring.rgb, backgroundOf(element.parentElement));
    if (found < 3) say("contrast", element, `${found.toFixed(2)} of the ring when chosen`);
  }

  // targets
  const interactive = "button, a[href], input, select, summary, [role=option], [role=tab]";
  for (const element of all(interactive)) {
    if (!reachable(element) || clipped(element)) continue;
    const target = element.closest("label") ?? element;
    const box = target.getBoundingClientRect();
    if (box.width < 24 || box.height < 24) {
      say("target", element, `${box.width.toFixed(0)} x ${box.height.toFixed(0)} pixels`);
    }
    if (innerWidth < 500 && element.closest(".actions, .bar") && box.height < 40) {
      say("target", element, `${box.height.toFixed(0)} pixels high under a thumb`);
    }
  }

  // roles, states and what they refer to
  const roles = new Set(["alert", "complementary", "listbox", "main", "option", "presentation",
    "tablist", "tab", "tabpanel", "status", "img"]);
  for (const element of all("[role]")) {
    if (!roles.has(element.getAttribute("role"))) say("role", element, "is not one that is used here");
  }
  const parents = { option: "[role=listbox]", tab: "[role=tablist]" };
  for (const [role, parent] of Object.entries(parents)) {
    for (const element of all(`[role=${role}]`)) {
      if (!element.parentElement.closest(parent)) say("role", element, `is not in a ${parent}`);
      if (!["true", "false"].includes(element.getAttribute("aria-selected"))) {
        say("role", element, "does not say whether it is selected");
      }
    }
  }
  const refer = ["aria-controls", "aria-labelledby", "aria-describedby", "aria-activedescendant", "for"];
  for (const name of refer) {
    for (const element of all(`[${name}]`)) {
      for (const id of element.getAttribute(name).split(/\s+/)) {
        if (!document.getElementById(id)) say("reference", element, `${name} leads to no ${id}`);
      }
    }
  }
  const ids = all("[id]").map((element) => element.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => wrong.push(`reference: two are ${id}`));
  for (const element of all(`:is(${interactive}) :is(button, a[href], input, select, [tabindex])`)) {
    say("role", element, "is a control within a control");
  }
  for (const element of all("[aria-hidden=true] :is(button, a[href], input, select, [tabindex])")) {
    say("role", element, "is hidden and can be focused");
  }

  // page, landmarks, headings, pictures
  if (!document.documentElement.lang) wrong.push("page: has no language");
  if (!document.title.trim()) wrong.push("page: has no title");
  const viewport = document.querySelector("meta[name=viewport]").content;
  if (/user-scalable\s*=\s*no|maximum-scale/.test(viewport)) wrong.push("page: cannot be enlarged");
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("page: is wider than the window");
  if (all("main, [role=main]").filter(seen).length !== 1) wrong.push("landmark: there is not one main");
  if (all("body > header").length !== 1) wrong.push("landmark: there is not one banner");
  const places = "main, body > header, section[aria-label], section[aria-labelledby], dialog, "
    + "[role=complementary], [role=main], [role=alert], [role=status], .skip, script, noscript";
  for (const element of document.body.children) {
    if (!element.matches(places)) say("landmark", element, "is in no landmark");
  }
  const names = all("section[aria-label], section[aria-labelledby], [role=complementary]").filter(seen).map((element) =>
    element.getAttribute("aria-label")
      ?? document.getElementById(element.getAttribute("aria-labelledby"))?.textContent.trim());
  names.filter((name, i) => !name || names.indexOf(name) !== i)
    .forEach((name) => wrong.push(`landmark: several or none are called "${name}"`));
  const levels = all("h1, h2, h3, h4").filter(reachable).map((element) => Number(element.tagName[1]));
  if (!open && levels.filter((level) => level === 1).length > 1) wrong.push("heading: several h1");
  if (!open && !all("h1").length) wrong.push("heading: no h1");
  let depth = open ? 1 : 0;
  for (const level of levels) {
    if (level > depth + 1) wrong.push(`heading: h${level} follows h${depth}`);
    depth = level;
  }
  for (const element of all("img:not([alt])")) say("name", element, "has no alt");
  for (const element of all("[tabindex]")) {
    if (element.tabIndex > 0) say("focus", element, "jumps the queue");
  }
  if (!document.querySelector("[role=status]")) wrong.push("live: nothing is announced");
  if (!document.querySelector("[role=alert]")) wrong.push("live: there are no alerts");
  return wrong;
}
