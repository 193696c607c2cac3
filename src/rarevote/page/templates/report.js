"use strict";
// Sorting, filtering and paging of the page's lists, every table as CSV, commands to copy. Names are only ever written with textContent.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 0 });
  const fine = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });
  const whole = new Intl.NumberFormat("en");
  const byText = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  const share = (value) => {
    // Never "0%" or "100%" for what is neither.
    const isNearEnd = (value > 0 && value < 0.01) || (value > 0.99 && value < 1);
    return (isNearEnd ? fine : percent).format(value);
  };
  // What a cell of each kind says, and what it sorts by, in a list of these classes.
  const kindsOf = (classes, rareCode) => {
    const className = (code) => (typeof code === "number" ? (code < 0 ? "other" : classes[code]) : String(code ?? ""));
    const votesInWords = (votes) => votes.map(([code, n]) => `${className(code)} ×${n}`).join(", ");
    return {
      text: { say: (value) => value, key: (value) => value },
      class: { say: className, key: className },
      share: { say: share, key: (value) => value },
      count: { say: (value) => whole.format(value), key: (value) => value },
      interval: { say: ([value]) => share(value), key: ([value]) => value },
      votes: {
        say: votesInWords,
        // By the share that said the rare class, then by how many said anything.
        key: (votes) => {
          const total = votes.reduce((sum, [, n]) => sum + n, 0);
          const rare = votes.find(([code]) => code === rareCode);
          return (rare ? rare[1] : 0) / total + total * 1e-9;
        },
      },
    };
  };
  const isWords = (kind) => kind === "text" || kind === "class";

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  const range = ([, low, high]) => ` (${share(low)}–${share(high)})`;

  function fillCell(cell, kinds, rare, kind, value) {
    const words = make("span", "", value === null ? "" : kinds[kind].say(value));
    cell.append(words);
    if (kind === "class" && value === rare) words.className = "is-rare";
    if (kind === "interval") words.append(make("span", "soft", range(value)));
    if (kind === "votes") {
      const bar = make("span", "bar");
      bar.setAttribute("aria-hidden", "true");
      for (const [code, n] of value) {
        const part = make("i", code === rare ? "is-rare" : "");
        part.style.flexGrow = n;
        bar.append(part);
      }
      words.append(bar);
    }
  }

  // The words of a cell, as they are shown.
  function inWords(kinds, kind, value) {
    if (value === null) return "";
    return kinds[kind].say(value) + (kind === "interval" ? range(value) : "");
  }

  function csvCell(text) {
    // A spreadsheet would run what begins like a formula; an apostrophe makes it text. Numbers are none.
    const isFormula = /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.,]+%?$/.test(text);
    const safe = isFormula ? `'${text}` : text;
    return /[",\r\n]/.test(safe) || isFormula ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function download(title, lines) {
    const text = lines.map((cells) => cells.map(csvCell).join(",")).join("\r\n");
    const link = make("a");
    // The mark in front tells spreadsheets that this is UTF-8.
    link.href = `data:text/csv;charset=utf-8,${encodeURIComponent(`\ufeff${text}\r\n`)}`;
    link.download = `${title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "table"}.csv`;
    link.click();
  }

  function csvButton(title, lines) {
    const button = make("button", "csv", "CSV");
    button.type = "button";
    button.title = "Download this table as CSV";
    button.setAttribute("aria-label", `Download as CSV: ${title}`);
    button.addEventListener("click", () => download(title, lines()));
    return button;
  }

  for (const table of document.querySelectorAll("table.small")) {
    const words = (cell) => cell.textContent.trim().replace(/\s+/g, " ");
    const lines = () => [...table.rows].map((row) => [...row.cells].map(words));
    table.caption.append(" ", csvButton(words(table.caption), lines));
  }

  for (const box of document.querySelectorAll(".copy")) {
    const button = box.querySelector("[data-part=copy]");
    button.addEventListener("click", () => {
      const code = box.querySelector("code");
      // Selected as well, so that the keyboard copies it where the browser does not allow the script to.
      getSelection().selectAllChildren(code);
      const copied = () => (button.textContent = "Copied");
      const selected = () => (button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C");
      if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(copied, selected);
      else selected();
    });
  }

  function start(name) {
    const root = document.getElementById(name);
    const { columns, rows, choices, groups, at } = data.lists[name];
    const { classes, rare } = data.of[at];
    const kinds = kindsOf(classes, rare);
    const part = (which) => root.querySelector(`[data-part="${which}"]`);
    const noun = root.dataset.noun;
    const flagsAt = columns.length;
    const searchable = columns.map((column, i) => (column.kind === "text" ? i : -1)).filter((i) => i >= 0);
    const texts = rows.map((row) => searchable.map((i) => row[i]).join("\n").toLowerCase());
    let order = { column: -1, down: false };
    let found = rows.map((_, i) => i);
    let page = 0;

    columns.forEach((column, i) => {
      const cell = make("th", column.kind);
      cell.scope = "col";
      const button = make("button", "", column.title);
      button.type = "button";
      button.title = column.help;
      // Words are looked up from A on, numbers from the largest on.
      button.addEventListener("click", () => sortBy(i, order.column === i ? !order.down : !isWords(column.kind)));
      cell.append(button);
      part("head").append(cell);
    });

    const sorts = part("sort");
    sorts.append(new Option("as listed", "-1 0"));
    columns.forEach((column, i) => {
      const ways = isWords(column.kind) ? ["A to Z", "Z to A"] : ["smallest first", "largest first"];
      ways.forEach((way, down) => sorts.append(new Option(`${column.title}, ${way}`, `${i} ${down}`)));
    });
    sorts.addEventListener("change", () => {
      const [column, down] = sorts.value.split(" ").map(Number);
      sortBy(column, down === 1);
    });

    part("group-label").hidden = groups === null;
    if (groups !== null) {
      part("group-label").firstElementChild.textContent = columns[groups].title;
      const say = kinds[columns[groups].kind].say;
      const present = [...new Set(rows.map((row) => row[groups]))].sort((a, b) => byText.compare(say(a), say(b)));
      part("group").append(new Option("any", ""), ...present.map((value) => new Option(say(value), JSON.stringify(value))));
      part("group").addEventListener("change", filter);
    }
    part("choice-label").hidden = choices.length < 2;
    part("choice").append(...choices.map(([words, flags]) => new Option(words, flags)));
    part("choice").addEventListener("change", filter);
    part("search").addEventListener("input", filter);
    part("size").addEventListener("change", () => show(0));
    part("previous").addEventListener("click", () => show(page - 1));
    part("next").addEventListener("click", () => show(page + 1));

    root.querySelector(".pager").append(
      csvButton(noun, () => [
        columns.map((column) => column.title),
        ...found.map((i) => columns.map((column, c) => inWords(kinds, column.kind, rows[i][c]))),
      ]),
    );

    function sortBy(column, down) {
      order = { column, down };
      [...part("head").children].forEach((cell, i) => {
        if (i === column) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        else cell.removeAttribute("aria-sort");
      });
      sorts.value = `${column} ${down ? 1 : 0}`;
      filter();
    }

    function filter() {
      const wanted = part("search").value.trim().toLowerCase();
      const group = groups === null || part("group").value === "" ? undefined : JSON.parse(part("group").value);
      const flags = Number(part("choice").value || 0);
      found = [];
      rows.forEach((row, i) => {
        const fits = (row[flagsAt] & flags) === flags && (group === undefined || row[groups] === group);
        if (fits && texts[i].includes(wanted)) found.push(i);
      });
      if (order.column >= 0) {
        const { kind } = columns[order.column];
        const keys = new Map(found.map((i) => [i, rows[i][order.column] === null ? null : kinds[kind].key(rows[i][order.column])]));
        const compare = isWords(kind) ? byText.compare : (a, b) => a - b;
        const sign = order.down ? -1 : 1;
        // Rows without a value come last either way; equals keep the order in which they were listed.
        found.sort((i, j) => {
          const [a, b] = [keys.get(i), keys.get(j)];
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * compare(a, b);
        });
      }
      show(0);
    }

    function show(wanted) {
      const size = Number(part("size").value);
      const last = Math.max(Math.ceil(found.length / size) - 1, 0);
      page = Math.min(Math.max(wanted, 0), last);
      const from = page * size;
      const lines = found.slice(from, from + size).map((i) => {
        const line = make("tr");
        columns.forEach((column, c) => {
          const cell = make("td", column.kind);
          cell.dataset.title = column.title;
          fillCell(cell, kinds, rare, column.kind, rows[i][c]);
          line.append(cell);
        });
        return line;
      });
      if (!lines.length) {
        const cell = make("td", "empty", `No ${noun} fit these choices.`);
        cell.colSpan = columns.length;
        const line = make("tr");
        line.append(cell);
        lines.push(line);
      }
      part("body").replaceChildren(...lines);
      part("previous").disabled = page === 0;
      part("next").disabled = page === last;
      const range = found.length ? `${whole.format(from + 1)}–${whole.format(Math.min(from + size, found.length))} of ` : "";
      part("status").textContent = `${range}${whole.format(found.length)} ${noun}`;
    }

    // On a phone every row is a card, so fewer of them make a page.
    if (window.matchMedia("(max-width: 44rem)").matches) part("size").value = "10";
    show(0);
  }

  Object.keys(data.lists).forEach(start);
})();
