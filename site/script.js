// Searching, copying and the place in the page, for the pages at /docs. Text from the index becomes text nodes and never markup: the
// pages' policy forbids every sink for HTML. Without this script all pages can still be read.
"use strict";
(() => {
  const FOUND_MAX = 20;
  const SNIPPET_CHARS = 160;
  const indexUrl = document.currentScript.dataset.search;

  const make = (tag, name, ...children) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    node.append(...children);
    return node;
  };

  // Searching

  const words = (text) => text.toLowerCase().split(/[^\p{L}\p{N}_./-]+/u).filter(Boolean);

  // How well a text has a word: as a whole, as a beginning, somewhere in it, not at all.
  const fit = (text, word) => {
    const at = text.indexOf(word);
    if (at < 0) return 0;
    const begins = at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]);
    if (!begins) return 1;
    const after = text[at + word.length];
    return after === undefined || !/[\p{L}\p{N}]/u.test(after) ? 3 : 2;
  };

  const prepare = (index) =>
    index.sections.map(([page, id, title, text]) => ({
      url: `${index.pages[page][0]}#${id}`,
      page: index.pages[page][1],
      title,
      text,
      lowPage: index.pages[page][1].toLowerCase(),
      lowTitle: title.toLowerCase(),
      lowText: text.toLowerCase(),
    }));

  // Sections that have every word, the best first.
  const find = (sections, query) => {
    const wanted = words(query);
    if (wanted.length === 0) return [];
    const found = [];
    for (const section of sections) {
      let score = 0;
      for (const word of wanted) {
        const here = 20 * fit(section.lowTitle, word) + 4 * fit(section.lowPage, word) + 3 * fit(section.lowText, word);
        if (here === 0) { score = 0; break; }
        score += here;
      }
      if (score === 0) continue;
      if (section.lowTitle === query.trim().toLowerCase()) score += 100;
      if (section.url.startsWith("adr-")) score /= 2;
      found.push({ section, score: score - Math.min(section.title.length, 60) / 60 });
    }
    found.sort((one, other) => other.score - one.score);
    return found.slice(0, FOUND_MAX).map((entry) => entry.section);
  };

  // A text with the words in it marked.
  const marked = (text, wanted) => {
    const low = text.toLowerCase();
    const parts = [];
    let at = 0;
    while (at < text.length) {
      let next = -1, length = 0;
      for (const word of wanted) {
        const place = low.indexOf(word, at);
        if (place >= 0 && (next < 0 || place < next)) [next, length] = [place, word.length];
      }
      if (next < 0) break;
      parts.push(text.slice(at, next), make("mark", "", text.slice(next, next + length)));
      at = next + length;
    }
    parts.push(text.slice(at));
    return parts;
  };

  const snippet = (section, wanted) => {
    const places = wanted.map((word) => section.lowText.indexOf(word)).filter((place) => place >= 0);
    const from = places.length > 0 ? Math.max(0, Math.min(...places) - 40) : 0;
    return (from > 0 ? "…" : "") + section.text.slice(from, from + SNIPPET_CHARS) + (section.text.length > from + SNIPPET_CHARS ? "…" : "");
  };

  const box = document.querySelector("search");
  const input = box.querySelector("input");
  const list = document.getElementById("found");
  let loading, chosen = -1;

  const load = () => {
    loading ??= fetch(indexUrl).then((answer) => {
      if (!answer.ok) throw new Error(answer.status);
      return answer.json();
    }).then(prepare);
    return loading;
  };

  const open = (shown) => {
    list.hidden = !shown;
    input.setAttribute("aria-expanded", String(shown));
    if (!shown) choose(-1);
  };

  const choose = (number) => {
    const rows = list.querySelectorAll("a");
    rows[chosen]?.setAttribute("aria-selected", "false");
    chosen = number;
    rows[chosen]?.setAttribute("aria-selected", "true");
    rows[chosen]?.scrollIntoView({ block: "nearest" });
    if (rows[chosen]) input.setAttribute("aria-activedescendant", rows[chosen].id);
    else input.removeAttribute("aria-activedescendant");
  };

  const row = (section, number, wanted) => {
    const link = make("a", "", make("span", "page", section.page), make("b", "", ...marked(section.title, wanted)),
      make("span", "text", ...marked(snippet(section, wanted), wanted)));
    link.href = section.url;
    link.id = `found-${number}`;
    link.tabIndex = -1;
    link.setAttribute("role", "option");
    link.setAttribute("aria-selected", "false");
    return link;
  };

  const show = async () => {
    const query = input.value;
    if (words(query).length === 0) return open(false);
    let sections;
    try {
      sections = await load();
    } catch {
      loading = undefined;
      list.replaceChildren(make("p", "", "The index could not be fetched. Is the gateway there?"));
      return open(true);
    }
    if (query !== input.value) return;
    const found = find(sections, query);
    chosen = -1;
    list.replaceChildren(...(found.length > 0 ? found.map((section, number) => row(section, number, words(query)))
      : [make("p", "", `Nothing has all of these words: ${query}`)]));
    open(true);
    if (found.length > 0) choose(0);
  };

  input.addEventListener("focus", () => load().catch(() => { loading = undefined; }));
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    const count = list.querySelectorAll("a").length;
    if (event.key === "Escape") { open(false); input.blur(); }
    if (event.key === "Enter") list.querySelectorAll("a")[chosen]?.click();
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (count > 0) choose((chosen + (event.key === "ArrowDown" ? 1 : count - 1)) % count);
    }
  });
  list.addEventListener("click", () => open(false));
  document.addEventListener("click", (event) => { if (!box.contains(event.target)) open(false); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "")) return;
    event.preventDefault();
    input.focus();
  });
  box.hidden = false;
  // A search can be sent to others as a link: index.html?q=words.
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) {
    input.value = asked;
    input.focus();
    show();
  }

  // Copying; a page without TLS has no clipboard to write to, and gets no buttons.
  if (navigator.clipboard) {
    for (const block of document.querySelectorAll("main pre")) {
      const button = make("button", "", "Copy");
      button.type = "button";
      button.addEventListener("click", async () => {
        const lines = block.querySelector("code").textContent;
        const commands = [...lines.matchAll(/^\$ ((?:.*\\\n)*.*)$/gm)].map((line) => line[1]).join("\n");
        try {
          await navigator.clipboard.writeText(commands || lines);
          button.textContent = "Copied";
        } catch {
          button.textContent = "Not allowed";
        }
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      block.append(button);
    }
  }

  // The place in the page
  const entries = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const headings = [...entries.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  let now;
  const follow = () => {
    const above = headings.filter((heading) => heading.getBoundingClientRect().top < 100);
    const link = entries.get((above.at(-1) ?? headings[0])?.id);
    if (link === now) return;
    now?.classList.remove("now");
    now = link;
    now?.classList.add("now");
    const side = now?.closest(".contents");
    if (side && side.scrollHeight > side.clientHeight) side.scrollTop = now.offsetTop - side.clientHeight / 2;
  };
  if (headings.length > 0) {
    addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true });
    follow();
  }
  if (matchMedia("(max-width: 760px)").matches) document.querySelector(".pages details").open = false;
  document.querySelector(".pages [aria-current]")?.scrollIntoView({ block: "nearest" });
})();
