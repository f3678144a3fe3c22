// The one script of the pages. A page works without it; with it, it is live, and what is wrong stands beside the field.
"use strict";
(() => {
  const body = document.body;
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const node = (tag, text, name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });
  const on = (what, then) => document.addEventListener(what, then);
  const here = location.pathname + location.search;

  // Light or dark: what the system says, unless somebody has chosen.
  const root = document.documentElement.dataset;
  if (localStorage.theme) root.theme = localStorage.theme;
  for (const button of $$("button[data-theme]")) button.addEventListener("click", () => {
    const dark = root.theme ? root.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    localStorage.theme = root.theme = dark ? "light" : "dark";
  });

  $("[data-menu]")?.addEventListener("click", (click) => {
    const open = $("#nav").classList.toggle("open");
    click.currentTarget.setAttribute("aria-expanded", String(open));
  });

  // A link to log in has the key behind the hash, which never leaves the browser but for this form.
  const login = $("[data-login]");
  if (login && location.hash.length > 1) {
    login.elements.key.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", here);
    login.submit();
  }

  // The parts of the page that are live, as the server wrote them.
  const written = new Map($$("[data-live][id]").map((part) => [part.id, part.innerHTML]));

  // Times as people say them, with the exact one on top of it.
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const ago = (seconds) => {
    for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]])
      if (Math.abs(seconds) >= size) return words.format(-Math.round(seconds / size), unit);
    return Math.abs(seconds) < 5 ? "now" : words.format(-Math.round(seconds), "second");
  };
  const tell = () => {
    for (const time of $$("time[datetime]")) {
      const at = Date.parse(time.dateTime);
      if (!Number.isNaN(at)) {
        const said = ago((Date.now() - at) / 1000);
        if (time.textContent !== said) time.textContent = said;
      }
    }
  };
  tell();
  setInterval(tell, 1000);

  const toast = (text, bad) => {
    const box = node("div", text, bad ? "toast bad" : "toast");
    $(".toasts")?.append(box);
    setTimeout(() => box.remove(), bad ? 10000 : 4000);
  };

  // Somebody says that they mean it, and why.
  const confirm = (text, button, diff) => new Promise((done) => {
    const dialog = $("dialog.confirm");
    $("[data-text]", dialog).textContent = text;
    const lines = diff?.map(({ place, was, now }) => `${place}\n- ${was ?? "none"}\n+ ${now ?? "none"}`);
    $("[data-diff]", dialog).hidden = !lines;
    $("[data-diff]", dialog).textContent = lines?.join("\n") || "No differences from the failed request.";
    $("[data-yes]", dialog).textContent = button?.textContent.trim() || "Confirm";
    const reason = $("[name=reason]", dialog);
    reason.value = "";
    dialog.returnValue = "no";
    // Enter in the field means yes: the other button is none of the form's.
    $("[data-no]", dialog).onclick = () => dialog.close("no");
    dialog.onclose = () => done(dialog.returnValue === "yes" ? { reason: reason.value } : null);
    dialog.showModal();
    reason.focus();
  });

  // A field wins over the same in a piece of JSON.
  const isObject = (value) => Object(value) === value && !Array.isArray(value);
  const over = (under, top) => {
    if (!isObject(under) || !isObject(top)) return top ?? under;
    const both = { ...under };
    for (const name in top) both[name] = over(under[name], top[name]);
    return both;
  };

  // The fields of a form as the body of a call: the same as the server reads from a form.
  const read = (form, submitter) => {
    const call = { method: "POST", body: {} };
    const wrong = [];
    for (const [name, raw] of new FormData(form, submitter)) {
      if (name === "_csrf") continue;
      if (name[0] === "_") { call[name.slice(1)] = raw; continue; }
      if (raw === "") continue;
      const [path, kind = "text"] = name.split(":");
      let value = raw;
      if (kind === "number") value = Number(raw);
      else if (kind === "flag") value = raw === "on" || raw === "true" || raw === "1";
      else if (kind === "list") value = raw.split(/[,\n]/).map((one) => one.trim()).filter(Boolean);
      else if (kind === "json") {
        try { value = JSON.parse(raw); } catch (error) { wrong.push({ field: path, reason: `must be JSON: ${error.message}` }); continue; }
      }
      else if (kind === "pairs") {
        const lines = raw.split("\n").map((line) => line.trim()).filter(Boolean);
        const odd = lines.find((line) => !line.includes(":"));
        if (odd) { wrong.push({ field: path, reason: `has no colon: ${odd}` }); continue; }
        value = Object.fromEntries(lines.map((line) => /([^:]*):(.*)/.exec(line).slice(1).map((part) => part.trim())));
      }
      const parts = path.split(".");
      const last = parts.pop();
      let place = call.body;
      for (const part of parts) place = isObject(place[part]) ? place[part] : place[part] = {};
      place[last] = kind === "list" ? (place[last] || []).concat(value) : over(value, place[last]);
    }
    if (!Object.keys(call.body).length) delete call.body;
    return wrong.length ? { wrong } : { call };
  };

  const call = async (what) => {
    const response = await fetch("/act", {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrf": body.dataset.csrf },
      body: JSON.stringify(what),
    });
    const answer = await response.json().catch(() => ({}));
    return { ok: response.ok, status: response.status, answer };
  };

  const clear = (form) => {
    for (const wrong of $$(".field-wrong, .form-wrong", form)) wrong.remove();
    for (const field of $$("[aria-invalid]", form)) field.removeAttribute("aria-invalid");
  };

  // What is wrong stands beside its field, and above the form what belongs to none.
  const show = (form, message, errors) => {
    clear(form);
    const rest = [];
    const inputs = $$("[name]", form).filter((one) => one.type !== "hidden" && !one.matches(":disabled"));
    for (const { field, reason } of errors || []) {
      // What has no input of its own is told at the one that it is a part of.
      const parts = field.split(".");
      const at = (count) => inputs.find((one) => one.name.split(":")[0] === parts.slice(0, count).join("."));
      let count = parts.length;
      while (count && !at(count)) count--;
      if (!count) { rest.push(`${field}: ${reason}`); continue; }
      const input = at(count);
      const inner = parts.slice(count).join(".");
      input.closest("details")?.setAttribute("open", "");
      input.setAttribute("aria-invalid", "true");
      input.after(node("span", inner ? `${inner}: ${reason}` : reason, "field-wrong"));
    }
    const words = rest.length ? rest.join("; ") : errors?.length ? "" : message;
    if (words) {
      if (form.classList.contains("action")) toast(words, true);
      else {
        form.prepend(node("p", words, "wrong form-wrong"));
        form.firstChild.role = "alert";
      }
    }
    $("[aria-invalid]", form)?.focus();
  };

  // What a call would come to, if it says so beforehand: how many it is about, or what differs.
  const tried = async (form, what) => {
    const { ok, answer } = await call({ ...what, body: { ...what.body, dryRun: true } });
    if (!ok) show(form, answer.message || "No response from the hub.", answer.errors);
    return ok ? answer.data : null;
  };

  // What is being mended is not wrong any more, as far as anybody knows.
  on("input", ({ target }) => {
    if (!target.matches("form[data-act] [aria-invalid]")) return;
    target.removeAttribute("aria-invalid");
    if (target.nextSibling?.matches?.(".field-wrong")) target.nextSibling.remove();
  });

  on("submit", async (submit) => {
    const form = submit.target;
    if (!form.matches("form[data-act]")) return;
    submit.preventDefault();
    const { call: what, wrong } = read(form, submit.submitter);
    if (wrong) return show(form, "", wrong);
    const text = submit.submitter?.dataset.confirm || form.dataset.confirm;
    if (text) {
      const would = form.matches("[data-try]") ? await tried(form, what).catch(() => ({})) : {};
      if (!would) return;
      if (would.count === 0) return show(form, "No dead letters match.");
      const count = would.count === undefined ? "Some" : would.count.toLocaleString("en") + (would.countIsExact ? "" : " or more");
      const words = text.replace("{chosen}", $$("[data-one]:checked", form).length).replace("{count}", count);
      const said = await confirm(words, submit.submitter, would.diff);
      if (!said) return;
      if (said.reason) what.reason = said.reason;
    }
    const buttons = $$("button", form).filter((button) => !button.disabled);
    for (const button of buttons) button.disabled = true;
    try {
      const { ok, status, answer } = await call(what);
      if (ok) {
        clear(form);
        if (form.dataset.answer) { said(form.dataset.answer, answer.data); refresh(); return; }
        const to = (what.to || "").replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(answer.data?.[name] ?? ""));
        if (to && to !== here) location.assign(to);
        else { toast(what.done || "Done."); refresh(); }
      } else if (status === 401) location.assign("/login?to=" + encodeURIComponent(here));
      else show(form, answer.message || "No response from the hub.", answer.errors);
    } catch {
      toast("The hub is not reachable.", true);
    } finally {
      for (const button of buttons) button.disabled = false;
      // A button that waits has lost the focus, or is gone with what it was for.
      if (document.activeElement === body) (submit.submitter?.isConnected ? submit.submitter : $("#main"))?.focus();
    }
  });

  // One box for all of a list; what can be done to some of it is there when some are chosen.
  const chosen = () => {
    for (const form of $$("form[data-choice]")) {
      const some = $$("[data-one]:checked", form).length;
      for (const button of $$("[data-some]", form)) button.disabled = !some;
      const told = $("[data-chosen]", form);
      if (told) told.textContent = `${some} selected`;
    }
  };
  on("change", (change) => {
    const form = change.target.closest("form[data-choice]");
    if (!form) return;
    if (change.target.matches("[data-all]")) for (const box of $$("[data-one]", form)) box.checked = change.target.checked;
    chosen();
  });
  on("fresh", chosen);
  chosen();

  on("click", async (click) => {
    const button = click.target.closest("[data-copy]");
    if (!button) return;
    const text = byId(button.dataset.copy)?.textContent ?? "";
    await navigator.clipboard?.writeText(text).then(() => toast("Copied."), () => toast("The browser did not allow copying.", true));
  });

  // Charts: times in the zone of the browser, and the values of a point on hover and on focus.
  const clock = (at, second) => new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second });
  let picked = null;
  const unpick = () => {
    const figure = picked && byId(picked.id);
    picked = null;
    if (!figure) return;
    $(".readout", figure).hidden = true;
    $(".guide", figure).setAttribute("visibility", "hidden");
  };
  // Shows the point nearest to the time that `choose` gives, or one that is `step` points after it.
  const pick = (figure, choose, step = 0) => {
    if (picked?.id !== figure.id) unpick();
    const { at, unit, lines } = JSON.parse(figure.dataset.points);
    const wanted = choose(at[0], at.at(-1));
    const nearest = at.reduce((best, time, index) => Math.abs(time - wanted) < Math.abs(at[best] - wanted) ? index : best, 0);
    const index = Math.min(Math.max(nearest + step, 0), at.length - 1);
    picked = { id: figure.id, at: at[index] };
    const share = (at[index] - at[0]) / (at.at(-1) - at[0]);
    const [guide, readout] = [$(".guide", figure), $(".readout", figure)];
    for (const name of ["x1", "x2"]) guide.setAttribute(name, `${100 * share}%`);
    guide.setAttribute("visibility", "visible");
    readout.textContent = [clock(at[index], "2-digit"), ...lines.map(({ name, values }) => `${name}: ${values[index] ?? "—"} ${unit}`)].join("\n");
    readout.classList.toggle("left", share > 0.5);
    readout.hidden = false;
  };
  const figureOf = ({ target }) => target.closest?.("[data-points]");
  on("pointermove", (move) => {
    const figure = figureOf(move);
    const { left, width } = (figure ? $(".axes", figure) : body).getBoundingClientRect();
    if (figure) pick(figure, (first, last) => first + (move.clientX - left) / width * (last - first));
    else if (picked && document.activeElement.id !== picked.id) unpick();
  });
  on("focusin", (focus) => { const figure = figureOf(focus); if (figure && picked?.id !== figure.id) pick(figure, (_, last) => last); });
  on("focusout", (focus) => figureOf(focus) && unpick());
  on("keydown", (press) => {
    const [figure, step] = [figureOf(press), { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[press.key]];
    if (!figure || !step) return;
    press.preventDefault();
    pick(figure, (_, last) => picked?.at ?? last, step);
  });
  const draw = () => {
    for (const text of $$("[data-at]")) text.textContent = clock(Number(text.dataset.at), text.textContent.length > 5 ? "2-digit" : undefined);
    for (const zone of $$("[data-zone]")) zone.textContent = "local time";
    const figure = picked && byId(picked.id);
    if (figure) pick(figure, () => picked.at);
  };
  on("fresh", draw);
  draw();

  // Puts in what has changed; what somebody is typing into or has opened stays as it is, until they go on.
  let late = null;
  const put = (text) => {
    late = null;
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const part of $$("[data-live][id]", fresh)) {
      const old = byId(part.id);
      if (!old || written.get(part.id) === part.innerHTML) continue;
      const open = $$("details[open][id]", old).map((one) => one.id);
      const chosen = $$("input[type=checkbox]:checked[value]", old).map((one) => one.value);
      const at = document.activeElement;
      const inside = old.contains(at) && at !== old;
      if (inside && at.matches("input:not([type=checkbox]), textarea, select")) { late = text; continue; }
      written.set(part.id, part.innerHTML);
      const key = inside ? at.id || at.getAttribute("href") || at.textContent : null;
      old.innerHTML = part.innerHTML;
      for (const id of open) byId(id)?.setAttribute("open", "");
      for (const box of $$("input[type=checkbox]", old)) if (chosen.includes(box.value)) box.checked = true;
      const same = (one) => (one.id || one.getAttribute("href") || one.textContent) === key;
      if (key) ($$("a, button, summary, input, [tabindex]", old).find(same) || $("#main")).focus({ preventScroll: true });
    }
    tell();
    document.dispatchEvent(new CustomEvent("fresh"));
  };
  on("focusout", () => setTimeout(() => late && put(late)));
  const refresh = async () => {
    const response = await fetch(here, { headers: { accept: "text/html" } });
    if (response.ok) put(await response.text());
  };

  // The page anew, whenever it has changed.
  const lamp = $(".live");
  if (body.dataset.page && $("main [data-live]")) {
    const state = (word) => { if (lamp) { lamp.dataset.state = word; $("span", lamp).textContent = word === "on" ? "live" : "offline"; } };
    const stream = new EventSource("/live?page=" + encodeURIComponent(body.dataset.page));
    stream.onopen = () => state("on");
    stream.onerror = () => state("off");
    stream.addEventListener("page", (event) => put(event.data));
    addEventListener("pagehide", () => stream.close());
  } else if (lamp) lamp.hidden = true;

  // What a call has answered, in lines; or `box.field`, that alone.
  const said = (to, data) => {
    const [id, only] = to.split(".");
    const box = byId(id);
    if (only) $("pre", box).textContent = data[only];
    else box.textContent = Object.entries(data || {}).map(([name, value]) => `${name}: ${Object(value) === value ? JSON.stringify(value) : value}`).join("\n");
    box.hidden = false;
    box.scrollIntoView({ block: "center" });
  };

  // A preset fills in what nobody has written.
  const preset = $("[data-preset]");
  preset?.addEventListener("change", () => {
    const values = JSON.parse(preset.selectedOptions[0].dataset.values || "{}");
    for (const field of $$("input[data-filled]", preset.form))
      if (field.value === field.dataset.filled) field.value = field.dataset.filled = values[field.name] ?? field.defaultValue;
  });

  // A page that is a form begins in its first field.
  if (document.activeElement === body) $("form[data-first] :is(input, select, textarea):not([type=hidden], :disabled)")?.focus();

  // Fields of one choice are there, and sent, when it is chosen.
  for (const choice of $$("[data-choose]")) {
    const choose = () => {
      for (const part of $$("[data-when]")) {
        const [of, word] = part.dataset.when.split("=");
        if (of === choice.dataset.choose) part.hidden = part.disabled = !word.split("|").includes(choice.value);
      }
    };
    choice.addEventListener("change", choose);
    choose();
  }

  // A rule's request beside it, as it is typed.
  const rule = $("form[data-preview]");
  if (rule) {
    const [box, chosen, own, sample] = ["", "-event", "-own", "-sample"].map((end) => byId("preview" + end));
    const line = (name, word, text) => {
      const all = node("p", " " + text);
      all.prepend(node("span", word, "badge " + name));
      return [all];
    };
    const drawn = ({ outcome, reason, field, request, orderingKey }) => {
      if (outcome === "otherType") return line("warn", "other type", "the rule does not match this event type");
      if (outcome === "filtered") return line("", "filtered", reason || "the filter does not match");
      if (!request) return line("bad", "Cannot be rendered", `${field}: ${reason}`);
      const { method, url, path, headers, body, bodyText } = request;
      const head = [`${method} ${url || path}`, ...Object.entries(headers).map((pair) => pair.join(": "))];
      const parts = [...line("good", "Request", orderingKey ? `ordering key ${orderingKey}` : ""), node("pre", head.join("\n"))];
      return bodyText ? [...parts, node("pre", body === null ? bodyText : JSON.stringify(body, null, 2))] : parts;
    };
    const made = async () => {
      const { call: what, wrong } = read(rule);
      if (wrong) return wrong.flatMap(({ field, reason }) => line("bad", field, reason));
      const body = { rule: { name: "preview", ...what.body } };
      if (!body.rule.eventType) return box.childNodes;
      if (chosen.value) body.eventId = chosen.value;
      else try { body.event = JSON.parse(sample.value); } catch (error) { return line("bad", "event", error.message); }
      const { ok, answer } = await call({ path: "/api/v1/registry/rules:evaluate", body });
      if (ok) return Object.assign(drawn(answer.data), { good: true });
      return answer.errors?.length ? answer.errors.flatMap(({ field, reason }) => line("bad", field.replace("rule.", ""), reason)) : line("bad", "failed", answer.message);
    };
    let timer, turn = 0, edited = false;
    const look = async () => {
      const mine = ++turn;
      const parts = await made().catch(() => line("bad", "offline", "the hub is not reachable"));
      if (mine !== turn) return;
      // The hub has read all of the rule since it said what is wrong, so that is mended.
      if (parts.good && edited) clear(rule);
      box.replaceChildren(...parts);
    };
    // What was asked for before is of no interest any more.
    const soon = () => { ++turn; own.hidden = !!chosen.value; clearTimeout(timer); timer = setTimeout(look, 250); };
    for (const part of [rule, chosen, sample]) part.addEventListener("input", soon);
    rule.addEventListener("input", () => { edited = true; });
    rule.addEventListener("submit", () => { edited = false; });
    soon();
  }

  // For whoever looks from outside.
  window.seawall = { refresh };
})();
